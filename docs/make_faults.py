"""Write docs/faults.md from the rows in results/fuzz:

python docs/make_faults.py
"""

from collections import Counter
from pathlib import Path

from proxlearn.common.files import read_rows, write_atomically
from proxlearn.common.provenance import Row
from proxlearn.experiments._shared import markdown

ROOT = Path(__file__).parent.parent
ROWS, PAGE = ROOT / "results" / "fuzz", ROOT / "docs" / "faults.md"
SPEED = ROOT / "results" / "speed"
BAD = {  # what a case must not end in, in a row's words and in those of the page
    "raw": "raw",
    "wrong": "wrong",
    "hang": "over a limit",
    "memory": "over a limit",
    "limit": "over a limit",
    "killed": "crashed",
    "lost": "lost",
    "left": "left files behind",
}
GOOD = ("sentence", "fine", "warned")

BEGINNING = """# Files, faults and bad input

A damaged file, an argument that makes no sense, an objective that misbehaves, a run that is
killed: each should end in a sentence that says what was given, what is expected and what to do. It
should not end in a wrong answer, a traceback, a hang or a full memory. What needs more memory than
there is (starts, taus, graphs, meshes, images) should be refused before any work is done, with the
number. This page says how that is tested, and how often it is so.

## How it is tested

[benchmarks/fuzz.py](../benchmarks/fuzz.py) provokes every kind of fault with fixed seeds, each case
in a process of its own with limits of time and memory, and counts how each case ends. A kind is a
file in [benchmarks/fuzzing](../benchmarks/fuzzing), which says what is done; put another one there,
and it joins.

    python benchmarks/fuzz.py                       # everything
    python benchmarks/fuzz.py meshes --share 0.1    # a tenth of one kind
    python benchmarks/fuzz.py --quick --out quick   # a few of each

`results/fuzz/rows.jsonl` then holds the counts, a row for each kind, and `faults-KIND.jsonl` beside
it the cases that ended badly, with what was done and the traceback. To see one again, give the same
`--seed`: a case is drawn alike whatever runs beside it.

## Before and after

A case ends well with a **sentence** (an error that says what is wrong), **fine**, or **warned** (it
goes on, and says that the answer is not to be trusted). It ends badly with a raw error, with a
wrong or not finite answer without a warning, over a limit (10 s or 2 GiB, where its kind needs no
more), or in a crash. The table has the number of cases and how many ended badly, before and now;
kinds of which "now" is empty have not been counted again.

"""
COLUMNS = ("fault", "before", "bad", "now", "bad", "sentence / fine / warned")


def main() -> None:
    print(write_atomically(PAGE, faults()))


def faults() -> str:
    """The page, in Markdown: every number from a row."""
    before, now = (read_rows(ROWS / name) for name in ("before.jsonl", "rows.jsonl"))
    by_kind = {row["kind"]: row for row in now}
    lines, told = [], set()
    for earlier in before:
        own = [by_kind[kind] for kind in earlier["kinds"] if kind in by_kind]
        told |= {row["kind"] for row in own}
        lines.append(_line(earlier["what"], [earlier], own))
    others = [row for row in now if row["kind"] not in told]
    lines += [_line(row["what"], [], [row]) for row in others]
    lines.append(_line("**all**", before, now))
    header = f"| {' | '.join(COLUMNS)} |\n|---|{'---:|' * (len(COLUMNS) - 1)}"
    counts = "\n".join((header, *lines)) + "\n\n" + _of_before(before) + _source(now)
    return BEGINNING + counts + _stopped(by_kind["interruptions"]) + _cost()


def _line(what: str, before: list[Row], now: list[Row]) -> str:
    """Rows before and now, each summed, as a line of the table."""
    well = " / ".join(_sum(now, name) for name in GOOD) if now else ""
    cells = [_short(what), *_cells(before), *_cells(now), well]
    return f"| {' | '.join(cells)} |"


def _cells(rows: list[Row]) -> list[str]:
    """How many cases, and what ended badly; empty where there are no rows."""
    return [_sum(rows, "cases"), _bad(rows)] if rows else ["", ""]


def _sum(rows: list[Row], name: str) -> str:
    return f"{sum(row.get(name, 0) for row in rows):,}"


def _short(what: str) -> str:
    """A kind of fault without what is in brackets."""
    return what.partition(" (")[0]


def _bad(rows: list[Row]) -> str:
    """What ended badly, in words."""
    found: Counter[str] = Counter()
    for row in rows:
        for name, words in BAD.items():
            found[words] += row.get(name, 0)
    return ", ".join(f"{count:,} {words}" for words, count in found.items() if count) or "0"


def _of_before(before: list[Row]) -> str:
    """Which versions the counts before are of."""
    of: dict[str, list[str]] = {}
    for row in before:
        version = f"version {row['proxlearn']}, commit {row['commit']}"
        of.setdefault(version, []).append(_short(row["what"]))
    first, *others = of
    said = [f'The counts "before" are of {first}, where other cases of the same kinds were tried']
    said += [
        f"those of {', '.join(of[each])} are of {each}, and the cases the same" for each in others
    ]
    return "; ".join(said) + ".\n\n"


def _source(now: list[Row]) -> str:
    seconds = sum(row["seconds"] for row in now)
    machines = ", ".join(dict.fromkeys(row["machine"] for row in now))
    return (
        f"Rows: [results/fuzz](../results/fuzz), by `python benchmarks/fuzz.py`, which took "
        f"{seconds / 60:.0f} minutes in all ({machines}); `python docs/make_faults.py` writes this "
        "page.\n"
    )


def _stopped(row: Row) -> str:
    """How often each signal came in each part of a training, as a table."""
    found: dict[str, Counter[str]] = {}
    for moment, count in row["moments"].items():
        number, _, part = moment.partition(", ")
        found.setdefault(part, Counter())[number] = count
    signals = sorted({number for counted in found.values() for number in counted})
    lines = [[part, *(counted[number] for number in signals)] for part, counted in found.items()]
    lines.append(["**all**", *(sum(each[number] for each in found.values()) for number in signals)])
    return (
        "\n## Trainings that are stopped\n\n"
        f"Of {row['cases']:,} trainings that were stopped in some part of their work and then "
        f"resumed, {row['fine']:,} ended in the weights and the card of one that was not, bit for "
        "bit, on a CPU, with no temporary file left over. Where the signals came (elsewhere is "
        "before the training, while it is set up, and between its parts):\n\n"
        + markdown(["part of the training", *signals], lines)
    )


def _cost() -> str:
    """What the checks take, of loading an operator and of a training on a CPU."""
    loading = [row for row in read_rows(SPEED / "loading.jsonl") if row["way"] == "checked"]
    checks = read_rows(SPEED / "checks.jsonl")
    times = [1e3 * row["seconds"] for row in loading]
    lines = [
        (row["training"], f"{1e3 * row['seconds']:.3g}", _share(row["over"] - 1))
        + (f"{_share(row['over_low'] - 1)} to {_share(row['over_high'] - 1)}",)
        + (_share(row["checkpoint_share"]),)
        for row in checks
    ]
    header = ("training", "ms a step", "longer by the checks", "quartiles", "checkpoints")
    return (
        "\n## What the checks cost\n\n"
        f"Loading one of the {len(loading)} shipped operators takes {min(times):.1f} to "
        f"{max(times):.1f} ms, all checks included (`{loading[0]['command']}`). Training on a CPU, "
        "steps with checks and steps without in turns, by the processor's time; beside it, what a "
        "checkpoint every 30 s takes, with the look at the objective before it "
        f"(`{checks[0]['command']}`, {checks[0]['machine']}):\n\n" + markdown(header, lines)
    )


def _share(value: float) -> str:
    return f"{value:.1%}"


if __name__ == "__main__":
    main()
