"""All peaks of random landscapes, found and counted: an operator beside the methods of today.

Every landscape has up to eight optima that are known exactly. The peak ratio is the share of them
that a method lists; a false optimum is one that it lists and that is none, or is listed twice. The
interval for the number of optima (`px.unseen`) should hold the true one in at least 90% of runs.

One operator is trained for a range of lam. Alone it has to take points all the way, and does so
with the smallest one; where a safeguard looks after them, with the largest, which loses no peaks.
"""

import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers.metrics import NEAR
from proxlearn.answers.solutions import Solutions
from proxlearn.answers.unseen import unseen
from proxlearn.common.provenance import Row
from proxlearn.experiments._look import DESCENT, INK, PROXIMAL, tidy
from proxlearn.experiments._shared import SEED, Folder, grouped, markdown, nearby, trained_for
from proxlearn.problems import problem
from proxlearn.problems.base import Problem, held_out

LAMS = (15.0, 100.0)
APPLICATIONS = 100  # of the operator alone: with fewer, points are still on their way
POLISH = "operator + safeguard + polish"
SCIPY = "SciPy multistart"
METHODS = {  # of `px.solve`, by what they are called here
    "operator": "operator",
    "operator + safeguard": "safeguarded",
    POLISH: "safeguarded",
    "descent": "descent",
    "lbfgs": "lbfgs",
    SCIPY: "multistart",
}
COLUMNS = {
    "peak_ratio": "true optima found",
    "false_optima": "false optima a landscape",
    "covered": "intervals with the true number",
}


@dataclass(frozen=True)
class Sizes:
    training: dict[str, Any]
    landscapes: int = 200
    starts: tuple[int, ...] = (64, 256)
    descent: dict[str, Any] | None = None  # None: as `px.solve` has it
    automatic: tuple[str, ...] = (POLISH, "lbfgs")  # they converge: "auto" counts what has settled


FULL = Sizes(training={"seconds": 25.0, "instances": 1_024, "points": 8})
QUICK = Sizes(
    training={"seconds": 60.0, "instances": 252, "points": 4},
    landscapes=40,
    starts=(64,),
    descent={"steps": 1_000, "rate": 2e-3},
)
LEFT_OUT = (
    "It trains for 60 seconds instead of 25 on a GPU, and measures 40 landscapes instead of 200, "
    "from 64 starts and not from 256, with a shorter descent."
)


class Count(NamedTuple):
    """What was listed of one landscape."""

    found: int  # of the true optima
    listed: int
    known: int
    covered: bool  # whether the interval holds the true number
    width: int  # of that interval
    starts: int


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    """Train, solve every landscape by every method, draw: rows and a table."""
    peaks = problem("peaks")
    operator = folder.train("operator", peaks, sizes.training | {"lam": LAMS})
    alone, guarded = ({"operator": operator, "lam": lam} for lam in LAMS)
    alone |= {"steps": APPLICATIONS}
    settings = {"operator": alone, "safeguarded": guarded, "descent": sizes.descent or {}}
    tau, rows = held_out(peaks, sizes.landscapes, SEED), []
    for label, method in METHODS.items():
        where, kinds = folder, [*sizes.starts, *(["auto"] if label in sizes.automatic else [])]
        if label == SCIPY:  # one point at a time belongs on a CPU, and takes its time
            where, kinds = replace(folder, device="cpu"), sizes.starts[:1]
        how = settings.get(method, {})
        rows += [_row(peaks, tau, label, starts, how, where) for starts in kinds]
    rows = [each | trained_for(operator.provenance) for each in rows]
    with folder.figure("peaks.png", 11.0, 0.55 * len(METHODS) + 1.4) as figure:
        draw(figure.subplots(1, len(COLUMNS), sharey=True), rows)
    return rows, table(rows)


def _row(
    peaks: Problem, tau: Tensor, label: str, starts: int | str, how: dict[str, Any], folder: Folder
) -> Row:
    """All landscapes at once, from a fixed number of starts each; or one after the other, each from
    as many starts as it takes ("auto", which polishes itself)."""
    counts: list[Count] = []
    truth, seconds = peaks.truth(tau), 0.0
    assert truth is not None
    for some in tau.split(1 if starts == "auto" else len(tau)):
        begun = time.perf_counter()
        found = folder.solve(peaks, some, METHODS[label], starts, **how)
        found = (found.polished() if label == POLISH and starts != "auto" else found).cpu()
        seconds += time.perf_counter() - begun
        counts += [count(found[k], truth[len(counts) + k]) for k in range(len(found))]
    hits, listed, known, covered, width, used = (sum(each) for each in zip(*counts))
    return folder.row(
        problem="peaks",
        label=label,
        starts=str(starts),
        peak_ratio=hits / known,
        complete=sum(each.found == each.known for each in counts) / len(counts),
        false_optima=(listed - hits) / len(counts),
        covered=covered / len(counts),
        interval_width=width / len(counts),
        mean_starts=used / len(counts),
        found=hits,
        known=known,
        landscapes=len(counts),
        seconds=seconds,
    )


def count(solutions: Solutions, known: Float[Tensor, "k d"]) -> Count:
    """What the distinct optima of one landscape are worth, given the true ones. What was not
    polished is taken as it is, so that each method shows what it leads to by itself."""
    listed = solutions.unique(smallest_share=0.0, verify=False)
    estimate = unseen(listed.hits.tolist())
    return Count(
        nearby(solutions.space, known, listed.points, NEAR),
        len(listed),
        len(known),
        estimate.low <= len(known) <= estimate.high,
        estimate.high - estimate.low,
        listed.starts,
    )


def table(rows: list[Row]) -> str:
    """A line for each method and number of starts."""
    said = (
        f"{rows[0]['landscapes']} landscapes with {rows[0]['known']} optima; one is found if a "
        f"listed optimum is within {NEAR:.0%} of the diameter of it. False optima are a mean over "
        "landscapes; covered is the share of intervals that hold the true number.\n\n"
    )
    header = ("method", "starts", "peak ratio", "all found", "false optima", "covered")
    lines = []
    for r in rows:
        starts = f"auto, {r['mean_starts']:,.0f}" if r["starts"] == "auto" else r["starts"]
        shares = [f"{r[each]:.1%}" for each in ("peak_ratio", "complete")]
        lines.append(
            (r["label"], starts, *shares, f"{r['false_optima']:.2f}", f"{r['covered']:.1%}")
            + (f"{r['interval_width']:.2f}", r["seconds"])
        )
    return said + markdown((*header, "interval's width", "seconds"), lines)


def draw(every: np.ndarray, rows: list[Row]) -> None:
    """The peak ratio, false optima and coverage of every method; the more starts, the darker."""
    methods, kinds = list(grouped(rows, "label")), grouped(rows, "starts")
    fixed = [kind for kind in kinds if kind != "auto"]
    looks: dict[str, dict[str, Any]] = {
        kind: {"marker": "o", "color": PROXIMAL, "markersize": 7, "alpha": (k + 1) / len(fixed)}
        for k, kind in enumerate(fixed)
    }
    looks["auto"] = {"marker": "D", "color": DESCENT, "markersize": 6, "markerfacecolor": "none"}
    for axes, (column, words) in zip(every, COLUMNS.items()):
        tidy(axes, xlabel=words, ylim=(len(methods) - 0.5, -0.5))
        for kind, own in kinds.items():
            y = [methods.index(r["label"]) for r in own]
            label = kind if kind == "auto" else f"{kind} starts"
            axes.plot([r[column] for r in own], y, label=label, linestyle="none", **looks[kind])
        axes.set_yticks(range(len(methods)), methods)
        axes.set_xlim(*((None, 1.03) if column != "false_optima" else (-0.05, None)))
    every[2].axvline(0.9, color="0.5", linewidth=0.8, linestyle="dashed")  # the share asked for
    marks, words = every[0].get_legend_handles_labels()
    where = {"loc": "outside lower center", "ncols": len(words), "frameon": False}
    every[0].figure.legend(marks, words, labelcolor=INK, **where)
