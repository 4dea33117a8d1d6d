"""What the sections of docs/results.md share: their rows, and how one is written."""

from collections.abc import Sequence
from pathlib import Path

from proxlearn.common.files import read_rows
from proxlearn.common.provenance import Row

RESULTS = Path(__file__).parents[2] / "results"


def _headed(title: str) -> list[str]:
    """A heading of what a section's first words in bold are, and the text, which need not say it
    again where it is a sentence without."""
    _, name, rest = title.split("**", 2)
    text = rest[2].upper() + rest[3:] if rest.startswith(": ") else title
    return [f"## {name}\n", text]


def _command(folder: str) -> str:
    if folder == "gset":
        known = "--known best_known.json --starts 64"
        return f"python benchmarks/gset.py --graphs gset {known} --out results/gset/rows.jsonl"
    if folder == "symmetry":
        return "python benchmarks/symmetries.py --each 4 --out results/symmetry"
    if folder == "branches":
        return "python benchmarks/branches.py --device cpu --methods L-BFGS"
    if folder in ("multimodal", "arm"):
        return f"python benchmarks/{folder}.py --out results/{folder}/rows.jsonl"
    return f"proxlearn reproduce {folder}"


def rows_of(folder: str) -> list[Row]:
    return read_rows(RESULTS / folder / "rows.jsonl")


def section(
    title: str, header: str, lines: list[str], folder: str, command: str | None = None
) -> str:
    source = f"Rows: [results/{folder}](../results/{folder}), by `{command or _command(folder)}`."
    return "\n".join([*_headed(title), "", header, *lines, "", source, ""])


def applications(first: str, counts: Sequence[int]) -> str:
    """A header with a column for each number of applications."""
    return f"| {first} | {' | '.join(map(str, counts))} |\n|---{'|---:' * len(counts)}|"
