"""Counting and certifying: every optimum of the cosine grid and of springs, beside the truth."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from proxlearn.answers.optima import Optima
from proxlearn.answers.unseen import unseen
from proxlearn.common.provenance import Row
from proxlearn.experiments._look import DESCENT, GRADIENT, PROXIMAL, Axes, bare, tidy
from proxlearn.experiments._shared import SEED, Folder, columns, grouped, markdown, nearby
from proxlearn.problems.base import Problem, held_out
from proxlearn.problems.cosine import Cosine
from proxlearn.problems.springs.springs import Springs

TOLERANCE = 1e-3  # an optimum is a known one if it is this near, a share of the diameter
SHOWN = 16  # chains of springs in the picture
METHODS = {"lbfgs": "L-BFGS", "operator": "operator", "safeguarded": "safeguarded operator"}


@dataclass(frozen=True)
class Sizes:
    cosine: dict[str, Any]  # how their operators are trained
    springs: dict[str, Any]
    starts: int = 16_384  # and "auto" besides
    unseen_level: float = 1e-4  # to which L-BFGS, the cheapest, goes on with "auto"
    instances: int = 32  # of springs


FULL = Sizes(cosine={"steps": 3_000}, springs={"steps": 20_000})
QUICK = Sizes({"seconds": 40.0}, {"seconds": 40.0}, starts=1024, unseen_level=0.01, instances=8)
LEFT_OUT = (
    "It trains each operator for 40 seconds instead of 3,000 and 20,000 steps, and counts on 8 "
    "chains of springs from 1,024 starts instead of 32 from 16,384."
)


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    """Train an operator for each problem and count with it and without: rows and a table."""
    rows: list[Row] = []
    found: dict[str, list[Optima]] = {}  # by the last method
    for problem, training in ((Cosine(), sizes.cosine), (Springs(), sizes.springs)):
        operator = folder.train(problem.name, problem, training)
        tau = held_out(problem, sizes.instances if problem.family else 1, SEED)
        for method in METHODS:
            for starts in (sizes.starts, "auto"):
                settings = {} if method == "lbfgs" else {"operator": operator}
                if starts == "auto" and method == "lbfgs":
                    settings = {"unseen_level": sizes.unseen_level}
                found[problem.name] = optima(problem, tau, method, starts, folder, **settings)
                about = {"method": method, "asked": str(starts)}
                rows += count_rows(problem, tau, found[problem.name], folder, **about)
    with folder.figure("counting.png", 11.0, 4.6) as figure:
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.7))
        draw_grid(left, found["cosine"][0])
        springs = grouped(rows, "problem")["springs"]
        draw_counts(right, [each for each in springs if each["instance"] < SHOWN])
    return rows, table(rows)


def optima(
    problem: Problem, tau: Tensor, method: str, starts: Any, folder: Folder, **how: Any
) -> list[Optima]:
    """The distinct optima of every instance, polished and certified; one hit is enough."""
    found = folder.solve(problem, tau, method, starts, **how)
    found = found.polished() if found.certificates is None else found  # "auto" has done so
    return [found[k].unique(smallest_share=0.0) for k in range(len(found))]


def count_rows(
    problem: Problem, tau: Tensor, every: list[Optima], folder: Folder, **about: str
) -> list[Row]:
    """A row for each instance: how many optima, what they are, and how many of the known ones."""
    known, rows = problem.truth(tau), []
    assert known is not None
    for k, (found, truth) in enumerate(zip(every, known, strict=True)):
        hits, certificates = found.hits.tolist(), found.certificates or []
        fields = {
            "starts": found.starts,
            "instance": k,
            "known": len(truth),
            "right": nearby(problem.space, truth, found.points, TOLERANCE),
            "found": len(found),
            "known_of_found": nearby(problem.space, found.points, truth, TOLERANCE),
            "minima": certificates.count("minimum"),
            "boundary": certificates.count("boundary"),
            "fewest_hits": min(hits, default=0),
            "unseen_mass": unseen(hits).unseen_mass,
            "estimated": unseen(hits).total,
            "tolerance": TOLERANCE,
        }
        rows.append(folder.row(problem=problem.name, **about, **fields))
    return rows


def table(rows: list[Row]) -> str:
    """A line for each problem, method and way to choose the starts, summed over instances."""
    lines = []
    for (problem, method, asked), some in kinds(rows).items():
        right, known, found, known_of_found, minimum, boundary = totals(some)
        complete = sum(r["right"] == r["known"] == r["found"] for r in some)
        starts = f"auto, {some[0]['starts']}" if asked == "auto" else asked
        about = (problem, METHODS[method], starts, f"{right} of {known}", found - known_of_found)
        certified = (minimum, boundary, found - minimum - boundary)
        lines.append((*about, f"{complete} of {len(some)}", *certified))
    said = (
        "Distinct optima by `solutions.polished()` and `unique(smallest_share=0)`, one hit being "
        "enough, beside the known ones. `minimum` and `boundary` (a minimum on the edge of the "
        "space) are certificates; an instance is complete if exactly the known ones were found.\n\n"
    )
    header = ("problem", "method", "starts", "known ones found", "others found")
    return said + markdown((*header, "instances complete", "minimum", "boundary", "neither"), lines)


def kinds(rows: list[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Rows by problem, method and way to choose the starts."""
    return grouped(rows, "problem", "method", "asked")


def totals(rows: list[Row]) -> list[int]:
    """Sums of right, known, found, known_of_found, minima and boundary over instances."""
    names = ("right", "known", "found", "known_of_found", "minima", "boundary")
    return [int(each.sum()) for each in columns(rows, *names)]


def draw_grid(axes: Axes, grid: Optima) -> None:
    """Every optimum found by the last method, in the colour of its certificate."""
    named = grid.certificates or []
    for name, color in (("minimum", PROXIMAL), ("boundary", DESCENT)):
        points = grid.points[torch.tensor([each == name for each in named], dtype=torch.bool)]
        axes.plot(*points.T, "o", color=color, markersize=5, label=f"{len(points)} {name}")
    bare(axes, 5.7)
    axes.set_title("cosine: certified optima", fontsize="medium")
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2)


def draw_counts(axes: Axes, rows: list[Row]) -> None:
    """Known rests as grey bars, those that were found as marks upon them, side by side."""
    tidy(axes, xlabel="chain of springs", ylabel="distinct rest configurations", xticks=[])
    axes.set_title("springs: rests found", fontsize="medium")
    axes.grid(axis="x", visible=False)
    known = {r["instance"]: r["known"] for r in rows}
    place = {k: at for at, k in enumerate(sorted(known, key=lambda k: known[k]))}
    axes.bar(list(place.values()), [known[k] for k in place], color="0.88", label="there are")
    marks = {"lbfgs": (DESCENT, "s"), "operator": (PROXIMAL, "o"), "safeguarded": (GRADIENT, "D")}
    for at, ((_, method, asked), some) in enumerate(kinds(rows).items()):
        color, mark = marks[method]
        look: dict[str, Any] = {"label": f"{METHODS[method]}, {asked}", "color": color}
        look["markerfacecolor"] = "white" if asked == "auto" else color
        x = [place[r["instance"]] + 0.14 * (at - 2.5) for r in some]
        axes.plot(x, [r["right"] for r in some], mark, markersize=3.5, **look)
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.08), "ncols": 3}
    axes.legend(frameon=False, fontsize="small", **below)
