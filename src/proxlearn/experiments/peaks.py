"""All peaks of random landscapes, found and counted: an operator beside the methods of today.

Every landscape has up to eight optima that are known exactly. The peak ratio is the share of them
that a method lists; a false optimum is one that it lists and that is none, or is listed twice. The
interval for the number of optima (`px.unseen`) should hold the true one in at least 90% of runs.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.answers.unseen import unseen
from proxlearn.common.devices import pick_device
from proxlearn.common.provenance import Row, row
from proxlearn.experiments._shared import DESCENT, INK, PROXIMAL, Folder, markdown, tidy
from proxlearn.figures.draw import new_figure, save
from proxlearn.measure.metrics import NEAR
from proxlearn.operators.operator import Operator
from proxlearn.problems import problem
from proxlearn.problems.base import Problem, held_out
from proxlearn.solvers.solve import solve

POLISH = "operator + safeguard + polish"
SCIPY = "SciPy multistart"
METHODS = ("operator", "operator + safeguard", POLISH, "descent", "lbfgs", SCIPY)
AUTO_METHODS = (POLISH, "lbfgs")  # that converge: "auto" counts what has settled
ASKED = 0.9  # of the intervals should hold the true number
SEED = 0


@dataclass(frozen=True)
class Sizes:
    """Every number the experiment depends on."""

    training: dict[str, Any]
    landscapes: int = 200
    starts: tuple[int, ...] = (64, 256)
    descent: dict[str, Any] | None = None  # None: as `px.solve` has it
    methods: tuple[str, ...] = METHODS
    automatic: tuple[str, ...] = AUTO_METHODS


FULL = Sizes(training={"steps": 20_000, "seed": SEED})
QUICK = Sizes(
    training={"seconds": 60.0, "instances": 128, "points": 8, "seed": SEED},
    landscapes=40,
    starts=(64,),
    descent={"steps": 1_000, "rate": 2e-3},
)
LEFT_OUT = (
    "It trains for 60 seconds instead of 20,000 steps, and measures 40 landscapes instead of 200, "
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
    operator = folder.train("operator", peaks, sizes.training)
    rows = []
    for method in sizes.methods:
        # One point at a time belongs on a CPU, and takes its time.
        alone = method == SCIPY
        device, counts = ("cpu", sizes.starts[:1]) if alone else (folder.device, sizes.starts)
        how = _solver(peaks, method, operator, sizes, device)
        rows += [fixed_row(peaks, method, how, starts, sizes, device) for starts in counts]
        if method in sizes.automatic:
            rows.append(automatic_row(peaks, method, how, sizes, device))
    trained = {f"trained_{each}": operator.provenance[each] for each in ("steps", "seconds")}
    rows = [each | trained for each in rows]
    draw(rows, folder)
    return rows, table(rows)


def _solver(
    peaks: Problem, method: str, operator: Operator, sizes: Sizes, device: str
) -> Callable[[Tensor, int | str], Solutions]:
    """Solutions of landscapes from so many starts, by a method of the table."""
    name, settings = {
        "operator": ("operator", {"operator": operator}),
        "operator + safeguard": ("safeguarded", {"operator": operator}),
        POLISH: ("safeguarded", {"operator": operator}),
        "descent": ("descent", sizes.descent or {}),
        "lbfgs": ("lbfgs", {}),
        SCIPY: ("multistart", {}),
    }[method]

    def solve_them(tau: Tensor, starts: int | str) -> Solutions:
        found = solve(peaks, tau, name, starts, SEED, device, **settings)
        done = method != POLISH or starts == "auto"  # which polishes itself
        return found if done else found.polished()

    return solve_them


def fixed_row(
    peaks: Problem,
    method: str,
    how: Callable[[Tensor, int | str], Solutions],
    starts: int,
    sizes: Sizes,
    device: str,
) -> Row:
    """All landscapes at once, from a fixed number of starts each."""
    tau = held_out(peaks, sizes.landscapes, SEED)
    begun = time.perf_counter()
    solutions = how(tau, starts).cpu()
    seconds = time.perf_counter() - begun
    truth = peaks.truth(tau)
    assert truth is not None
    counts = [count(solutions[k], known) for k, known in enumerate(truth)]
    return _row(device, method, str(starts), counts, seconds)


def automatic_row(
    peaks: Problem,
    method: str,
    how: Callable[[Tensor, int | str], Solutions],
    sizes: Sizes,
    device: str,
) -> Row:
    """One landscape after the other, each from as many starts as it takes."""
    tau, counts, seconds = held_out(peaks, sizes.landscapes, SEED), [], 0.0
    truth = peaks.truth(tau)
    assert truth is not None
    for k, known in enumerate(truth):
        begun = time.perf_counter()
        solutions = how(tau[k : k + 1], "auto").cpu()
        seconds += time.perf_counter() - begun
        counts.append(count(solutions, known))
    return _row(device, method, "auto", counts, seconds)


def count(solutions: Solutions, known: Float[Tensor, "k d"]) -> Count:
    """What the distinct optima of one landscape are worth, given the true ones. Where there are
    certificates, what is no optimum by them is not listed."""
    listed = solutions.unique(smallest_share=0.0).certified()
    estimate = unseen(listed.hits.tolist())
    return Count(
        found_of(listed.points, known, NEAR * solutions.space.diameter),
        len(listed),
        len(known),
        estimate.low <= len(known) <= estimate.high,
        estimate.high - estimate.low,
        listed.starts,
    )


def found_of(listed: Float[Tensor, "n d"], known: Float[Tensor, "k d"], tolerance: float) -> int:
    """How many of the known optima are listed."""
    if not len(listed):
        return 0
    return int((torch.cdist(known, listed).amin(1) <= tolerance).sum())


def _row(device: str, method: str, starts: str, counts: list[Count], seconds: float) -> Row:
    runs = len(counts)
    found, known = sum(each.found for each in counts), sum(each.known for each in counts)
    return row(
        pick_device(device),
        problem="peaks",
        label=method,
        starts=starts,
        peak_ratio=found / known,
        complete=sum(each.found == each.known for each in counts) / runs,
        false_optima=sum(each.listed - each.found for each in counts) / runs,
        covered=sum(each.covered for each in counts) / runs,
        interval_width=sum(each.width for each in counts) / runs,
        mean_starts=sum(each.starts for each in counts) / runs,
        found=found,
        known=known,
        landscapes=runs,
        seconds=seconds,
        seed=SEED,
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


def draw(rows: list[Row], folder: Folder) -> None:
    """The peak ratio, false optima and coverage of every method; the more starts, the darker."""
    figure = new_figure(11.0, 0.55 * len({r["label"] for r in rows}) + 1.4)
    every = figure.subplots(1, 3, sharey=True)
    columns = {
        "peak_ratio": "true optima found",
        "false_optima": "false optima a landscape",
        "covered": "intervals with the true number",
    }
    methods = list(dict.fromkeys(r["label"] for r in rows))
    kinds = list(dict.fromkeys(r["starts"] for r in rows))
    looks = dict(zip(kinds, _looks(kinds)))
    for axes, (column, words) in zip(every, columns.items()):
        tidy(axes, xlabel=words, ylim=(len(methods) - 0.5, -0.5))
        for kind in kinds:
            own = [r for r in rows if r["starts"] == kind]
            y = [methods.index(r["label"]) for r in own]
            axes.plot([r[column] for r in own], y, label=kind, linestyle="none", **looks[kind])
        axes.set_yticks(range(len(methods)), methods)
        axes.set_xlim(*((None, 1.03) if column != "false_optima" else (-0.05, None)))
    every[2].axvline(ASKED, color="0.5", linewidth=0.8, linestyle="dashed")
    marks, words = every[0].get_legend_handles_labels()
    words = [word if word == "auto" else f"{word} starts" for word in words]
    figure.legend(
        marks, words, loc="outside lower center", ncols=len(words), frameon=False, labelcolor=INK
    )
    save(figure, folder.path / "peaks.png")


def _looks(kinds: list[str]) -> list[dict[str, Any]]:
    """Marks: circles for fixed numbers of starts, a diamond for auto."""
    fixed = [kind for kind in kinds if kind != "auto"]
    alphas = {kind: (k + 1) / len(fixed) for k, kind in enumerate(fixed)}
    return [
        {"marker": "D", "color": DESCENT, "markersize": 6, "markerfacecolor": "none"}
        if kind == "auto"
        else {"marker": "o", "color": PROXIMAL, "markersize": 7, "alpha": alphas[kind]}
        for kind in kinds
    ]
