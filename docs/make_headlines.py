"""Write the README's table of results from the rows in results/:

python docs/make_headlines.py
"""

from statistics import mean
from typing import Any

from sections._section import RESULTS
from sections.shapes import of_mcb

from proxlearn.common.files import read_rows, write_atomically
from proxlearn.common.provenance import Row
from proxlearn.experiments._shared import all_published, published

README = RESULTS.parent / "README.md"
BEGIN, END = "<!-- results: begin -->\n", "<!-- results: end -->\n"
Line = tuple[str, str, str, str]  # what, ours, published, the best that a method can have


def main() -> None:
    before, rest = README.read_text().split(BEGIN)
    _, after = rest.split(END)
    print(write_atomically(README, before + BEGIN + headlines() + END + after))


def headlines() -> str:
    """The table, in Markdown: every number from a row."""
    lines = [conics(), cuts(), planes(), boxes(), literature(), arms(), honesty(), time()]
    head = "| | proxlearn | published | best possible |\n|---|---:|---:|---:|\n"
    return head + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def conics() -> Line:
    ours = rows("conic", "shipped", label="plain", applications=5)[0]
    best = rows("conic", label="PD, other starts", threshold=0.05)[0]
    theirs = published("conic", "POL", 0.05)["WP"][0]
    what = "conics: witnessed precision at 0.05, after 5 applications"
    return what, f"{ours['wp@0.05']:.3f}", f"{theirs:.3f}", f"{best['wp@0.05']:.3f}"


def cuts() -> Line:
    ours, best = (
        rows("maxcut", label=label, threshold=0.995)[0]["wp@0.3714"]
        for label in ("POL", "PD, other starts")
    )
    theirs = published("maxcut", "POL", 0.995)["WP"][7]
    what = "maximum cuts of graphs with 8 vertices: witnessed precision at 0.371"
    return what, f"{ours:.3f}", f"{theirs:.3f}", f"{best:.3f}"


def planes() -> Line:
    kinds = [
        rows("symmetry", label=label, pose="own pose", threshold=1e-4)
        for label in ("looking, 20 applications", "descent, other starts")
    ]
    ours, best = (mean([row["wp@0.041"] for row in each]) for each in kinds)
    of = f"mirror planes of {kinds[0][0]['parts']} real parts (t = 1e-4)"
    what = f"{of}: witnessed precision at 0.041"
    return what, f"{ours:.3f}", f"{of_mcb():.3f} (on other parts)", f"{best:.3f}"


def boxes() -> Line:
    row = rows("detection", label="looking longer, until they stop")[0]
    theirs = all_published("detection")["POL"]["wp@0.1"]
    what = f"boxes in {row['images']:,} real images: witnessed precision at 0.1"
    return what, f"{row['wp@0.1']:.3f}", f"{theirs:.3f} (trained on all of COCO)", ""


def literature() -> Line:
    every = rows("multimodal")
    found, known = (sum(row[name] for row in every) for name in ("found", "known"))
    what = f"global minima of {len(every)} test functions, one minute of training each on a CPU"
    return what, f"{found} of {known}", "", ""


def arms() -> Line:
    row = rows("arm", label="operator")[0]
    what = f"minima of a three-link arm that reaches for {row['targets']} targets, after polish"
    return what, f"{row['found']} of {row['minima']}", "", ""


def honesty() -> Line:
    every = rows("trust")
    what = "briefly trained families for which more is claimed than is true"
    return what, f"{sum(row['too_much'] for row in every)} of {len(every)}", "", ""


def time() -> Line:
    ours = rows("speed", "quality", variant="time to quality", kernels="none", ran_on="cuda")[0]
    theirs = next(row for row in rows("speed", "quality") if row.get("hours"))
    what = f"training to the published quality on conics, on one {ours['machine']}"
    published_procedure = f"{theirs['hours']:.1f} hours (its procedure, timed here)"
    return what, f"{ours['seconds']:.1f} s", published_procedure, ""


def rows(folder: str, file: str = "rows", **fields: Any) -> list[Row]:
    """The rows of a result that have these fields."""
    every = read_rows(RESULTS / folder / f"{file}.jsonl")
    return [row for row in every if all(row.get(key) == each for key, each in fields.items())]


if __name__ == "__main__":
    main()
