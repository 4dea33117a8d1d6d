"""Provoke every fault that a user, a disk or a network could, and count how each case ends.

    python benchmarks/fuzz.py                      # all of it, about an hour on two cores
    python benchmarks/fuzz.py operator_files --share 0.01
    python benchmarks/fuzz.py --quick              # a few cases of each, as the tests do

Cases are drawn with fixed seeds, each in a process of its own with 2 GiB and 10 s, or what its kind
needs. The rows say how many ended in a sentence, went well, or went well with a warning; and how
many in a raw error, a wrong answer said with certainty, too long, too large, or a crash: those have
to be none, and are listed in `faults-KIND.jsonl`.
"""

import argparse
import importlib
import os
import pkgutil
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a process that was forked could not use it
os.environ["OMP_NUM_THREADS"] = "1"

import fuzzing
import torch
from _shared import show
from fuzzing import frame
from rich.progress import track

from proxlearn.common.files import read_rows, write_rows
from proxlearn.common.provenance import row

OUT = Path("results/fuzz")
COMMAND = "python benchmarks/fuzz.py"
QUICK = 5  # cases of a kind that says no other number


def kinds() -> list[str]:
    """The name of every kind of fault there is."""
    names = [each.name for each in pkgutil.iter_modules(fuzzing.__path__)]
    return [name for name in names if name != "frame" and not name.startswith("_")]


def provoke(
    name: str, count: int, seed: int, jobs: int
) -> tuple[dict[str, object], list[frame.Outcome]]:
    """The row of so many cases of a kind of fault, and those that ended badly."""
    kind = of_kind(name)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        every = frame.outcomes(kind, range(count), seed, Path(folder), jobs)
        ended = [_told(name, each) for each in track(every, kind.WHAT, total=count)]
    seconds = round(time.monotonic() - began, 1)
    about = {"kind": name, "what": kind.WHAT, "cases": count, **frame.counts(ended)}
    about |= kind.more(ended) if hasattr(kind, "more") else {}
    made = row(**about, seconds=seconds, seed=seed, command=COMMAND)
    bad = sorted((each for each in ended if each.kind in frame.BAD), key=lambda each: each.case)
    return made, bad


def _told(name: str, ended: frame.Outcome) -> frame.Outcome:
    """The same; one that ended badly is shown at once."""
    if ended.kind in frame.BAD:
        print(f"{name}, case {ended.case}: {ended.kind} of {ended.about}", flush=True)
    return ended


def of_kind(name: str) -> ModuleType:
    return importlib.import_module(f"fuzzing.{name}")


def how_many(name: str, asked: argparse.Namespace) -> int:
    """The cases of a kind that are asked for."""
    if asked.quick:
        return getattr(of_kind(name), "QUICK", QUICK)
    return max(1, round(asked.share * of_kind(name).CASES))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(kinds())} (default: all)")
    parser.add_argument("--share", type=float, default=1.0, help="of the cases (default: all)")
    parser.add_argument("--quick", action="store_true", help="a few cases of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder of the rows ({OUT})")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows = read_rows(asked.out / "rows.jsonl") if (asked.out / "rows.jsonl").is_file() else []
    for name in asked.kinds or kinds():
        made, bad = provoke(name, how_many(name, asked), asked.seed, asked.jobs)
        rows = [each for each in rows if each["kind"] != name] + [made]
        write_rows(asked.out / "rows.jsonl", sorted(rows, key=lambda each: each["kind"]))
        faults = asked.out / f"faults-{name}.jsonl"
        if bad:
            write_rows(faults, map(asdict, bad))
        else:
            faults.unlink(missing_ok=True)
    columns = ("kind", "cases", *frame.GOOD, *frame.BAD)
    show("How the cases ended", columns, [[each[name] for name in columns] for each in rows])


if __name__ == "__main__":
    main()
