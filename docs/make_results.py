"""Write docs/results.md from the rows in results/, and the tables of benchmarks beside their rows:

python docs/make_results.py
"""

from collections.abc import Callable
from pathlib import Path

from sections import boxes, cuts, landscapes, level_sets, recovery, shapes, speed
from sections._section import RESULTS

from proxlearn.common.files import write_atomically

PAGE = Path(__file__).parent / "results.md"
INTRODUCTION = """# Results

Every number here is from a row of [results](../results), which `proxlearn reproduce NAME` or a
script in [benchmarks](../benchmarks) makes again; `python docs/make_results.py` writes this page.
[The paper's experiments](experiments.md) says which part of the paper is which command.

The names in the tables are the paper's:

* **POL** is the learned proximal operator, **GOL** the paper's baseline that learns gradient
  descent, and **PD** particle descent: gradient descent from many starts.
* **t** is a threshold: a solution counts only if it lies inside the space and its objective value
  is at most t.
* **WD** and **WP** say how well the solutions found match the true ones. They are measured from
  random points of the space, the witnesses. For each witness take the solution found that is
  nearest to it and its distance to the true ones, and the true solution that is nearest to it and
  its distance to those found. WD (witnessed divergence) is the mean of these distances: smaller is
  better. WP at 0.05 (witnessed precision) is the share of witnesses for which the mean of the two
  is below 0.05: larger is better, and 1 is the best. [Metrics](metrics.md) has the details.
"""
FIGURES = {  # of a section, below its table
    "conic": "precision.png",
    "collapse": "collapse.png",
    "sparse": "convergence.png",
    "maxcut": "precision.png",
    "cosine": "minima.png",
    "peaks": "peaks.png",
    "trust": "trust.png",
    "symmetry": "planes.png",
    "detection": "recall.png",
}


SECTIONS: dict[str, Callable[[], str]] = {
    "conic": level_sets.conics,
    "collapse": level_sets.collapse,
    "sparse": recovery.sparse,
    "measurements": recovery.measurements,
    "maxcut": cuts.maxcut,
    "gset": cuts.gset,
    "shrinkage": level_sets.shrinkage,
    "cosine": landscapes.cosine,
    "counting": landscapes.counted,
    "peaks": landscapes.peaks,
    "growing": level_sets.growing,
    "multimodal": landscapes.multimodal,
    "trust": landscapes.trusted,
    "arm": landscapes.arm,
    "bounded": landscapes.bounded,
    "branches": landscapes.branches,
    "symmetry": shapes.symmetry,
    "detection": boxes.detection,
    "speed": speed.speed,
}
TABLES = ("arm", "bounded", "branches", "gset", "multimodal", "speed")  # of no experiment's own


def main() -> None:
    print(write_atomically(PAGE, results()))
    for name in TABLES:
        print(write_atomically(RESULTS / name / "table.md", table(name)))


def results() -> str:
    """The page, in Markdown: every number from a row."""
    there = [name for name in SECTIONS if (RESULTS / name).is_dir()]
    return "\n".join((INTRODUCTION, *(SECTIONS[name]() + _figure(name) for name in there)))


def table(name: str) -> str:
    """A section by itself, as experiments write theirs, for reports."""
    title, _, rest = SECTIONS[name]().partition("\n\n")
    said, _, _ = rest.partition("\nRows: ")
    return f"{title.removeprefix('#')}\n\n{said}"


def _figure(name: str) -> str:
    file = FIGURES.get(name)
    return f"\n![{name}](../results/{name}/{file})\n" if file else ""


if __name__ == "__main__":
    main()
