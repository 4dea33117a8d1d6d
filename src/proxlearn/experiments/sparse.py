"""Sparse recovery (paper, 5.2 and D.5): POL, GOL, particle descent and proximal gradient."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.batch import Batch
from proxlearn.experiments._shared import (
    DESCENT,
    GRADIENT,
    INK,
    PROXIMAL,
    Folder,
    bare,
    markdown,
    tidy,
)
from proxlearn.operator import Operator, pick_device, starting_points
from proxlearn.plots import new_figure, save
from proxlearn.problem import held_out
from proxlearn.problems import problem
from proxlearn.problems._sparse import Recovery
from proxlearn.runs import Row, row
from proxlearn.screen import say
from proxlearn.solutions import TOLERANCE, Solutions
from proxlearn.solvers import Solver, solver

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SETS = ("sparse", "sparse-half", "sparse-mcp", "sparse-general")
PAPER = SETS[:3]  # the paper has no operator for new measurements, nor GOL for it
ALPHA = 0.627  # of the convergence curves
HISTOGRAMS, PLANES = 4, 8  # instances shown
AT_REST = {"steps": 300, "accelerated": True}  # what must not move a solution that is a minimum
PROXIMAL_GRADIENT = "#e0912f"
GREEK = "\N{GREEK SMALL LETTER ALPHA}"
SEED = 0


@dataclass(frozen=True)
class Sizes:
    """Every number the experiment depends on."""

    training: dict[str, Any]  # of POL and GOL alike: the same budget
    sets: tuple[str, ...] = SETS
    lam: float | None = None  # of POL; None is the problem's own
    lams: tuple[float, ...] = (20.0,)  # of more operators for `sparse`, besides the problem's own
    applications: int = 50  # of POL alone
    hops: int = 10  # of POL before it settles
    gol_applications: int = 100
    settling: int = 100  # steps of accelerated proximal gradient after the operator
    descent: int = 20_000  # steps of the long particle descent
    proximal_gradient: int = 2_000  # steps of the long proximal gradient
    instances: int = 128
    counted: int = 64  # of them, whose distinct minima are counted
    starts: int = 4096
    curve: tuple[int, ...] = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200)
    """steps at which the convergence curves are read"""


FULL = Sizes(training={"seconds": 100.0, "depth": 10, "applications": 20, "seed": SEED})
QUICK = Sizes(
    training={
        "seconds": 25.0,
        "rate": 3e-3,
        "instances": 96,
        "points": 3,
        "applications": 20,
        "architecture": {"width": 64, "shared": 64},
        "seed": SEED,
    },
    sets=PAPER,
    lam=20.0,
    lams=(),
    applications=20,
    descent=1_000,
    proximal_gradient=500,
    instances=8,
    starts=256,
    curve=(0, 1, 2, 5, 10, 20, 50, 100, 200),
)
LEFT_OUT = (
    "It trains a small network for 25 seconds, with a larger lam, instead of 100 on a GPU, solves "
    "8 instances from 256 starts instead of 128 from 4,096, and leaves the operator for new "
    "measurements out, so that its numbers are not those of the full run; POL is far from trained."
)


class Method(NamedTuple):
    """A line of the table: what it is called and how it solves."""

    label: str
    solver: Solver
    evaluations: int  # of a gradient or of an operator, for each start


class Result(NamedTuple):
    """What a method found, with the zeros that it stands for, and how long that took."""

    method: Method
    solutions: Solutions
    seconds: float


@dataclass(frozen=True)
class Then(Solver):
    """One method from where another ended."""

    first: Solver
    second: Solver

    def run(self, problem, tau, starts):
        return self.second.run(problem, tau, self.first.run(problem, tau, starts))


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    """Train, solve, draw: rows and a table."""
    rows: list[Row] = []
    for name in sizes.sets:
        chosen, operators = recovery(name), train(name, sizes, folder)
        rows += [trained(label, each, folder.device) for label, each in operators.items()]
        results = compare(chosen, operators, sizes, folder.device)
        rows += [summary(chosen, each, sizes.counted, folder.device) for each in results]
        shown = {each.method.label: each.solutions for each in results}
        if name == "sparse":
            draw_histograms(shown, folder, "histograms.png")
            draw_planes(shown, folder)
        if name == "sparse-half":
            curves = convergence_rows(chosen, operators["POL"], sizes, folder.device)
            draw_convergence(
                curves, shown_at_alpha(chosen, operators["POL"], sizes, folder), folder
            )
            rows += curves
        if name == "sparse-mcp":
            draw_histograms(shown, folder, "mcp.png")
    rows += skglm_rows(sizes)
    return rows, table(rows)


def recovery(name: str) -> Recovery:
    """A problem of sparse recovery."""
    chosen = problem(name)
    assert isinstance(chosen, Recovery)
    return chosen


def train(name: str, sizes: Sizes, folder: Folder) -> dict[str, Operator]:
    """The operators of one problem, by what the table calls them."""
    chosen = recovery(name)
    operators = {"POL": folder.train(f"{name}-pol", chosen, sizes.training | {"lam": sizes.lam})}
    for lam in sizes.lams if name == "sparse" else ():
        settings = sizes.training | {"lam": lam}
        operators[f"POL, lam = {lam:g}"] = folder.train(f"{name}-pol-{lam:g}", chosen, settings)
    if name in PAPER:
        settings = sizes.training | {"rule": "gradient"}
        operators["GOL"] = folder.train(f"{name}-gol", chosen, settings)
    return operators


def trained(label: str, operator: Operator, device: str) -> Row:
    """How an operator came about."""
    told = operator.provenance
    return row(
        pick_device(device),
        measure="training",
        problem=told["problem"],
        label=label,
        lam=operator.lam,
        trained_steps=told["steps"],
        trained_seconds=told["seconds"],
        seed=SEED,
    )


def compare(
    chosen: Recovery, operators: dict[str, Operator], sizes: Sizes, device: str
) -> list[Result]:
    """Every method from the same starts. Descent and proximal gradient run as many steps as POL
    and its settling, then for as many seconds, and then until they have converged."""
    picked = pick_device(device)
    tau = held_out(chosen, sizes.instances, SEED, picked)
    starts = starting_points(chosen.space, sizes.starts, len(tau), SEED, picked)

    def solve(method: Method) -> Result:
        return timed(chosen, method, tau, starts)

    results = [solve(each) for each in learned(operators, sizes)]
    budget = next(each for each in results if each.method.label == "POL, then PGD")
    for label, make, long in yardsticks(sizes):
        as_many = math.floor(budget.seconds / seconds_per_step(chosen, make, tau, starts))
        for said, steps in (
            ("as many evaluations", budget.method.evaluations),
            ("as many seconds", max(1, as_many)),
            ("long", long),
        ):
            results.append(solve(Method(f"{label}, {said}", make(steps), steps)))
    return results


def learned(operators: dict[str, Operator], sizes: Sizes) -> list[Method]:
    """Every operator on its own, and a little of POL followed by a little proximal gradient."""
    settling = solver("proximal_gradient", accelerated=True, steps=sizes.settling)
    methods = []
    for label, operator in operators.items():
        steps = sizes.gol_applications if label == "GOL" else sizes.applications
        methods.append(Method(label, solver("operator", operator=operator, steps=steps), steps))
        if label != "GOL":
            hops = solver("operator", operator=operator, steps=sizes.hops)
            both = Method(f"{label}, then PGD", Then(hops, settling), sizes.hops + sizes.settling)
            methods.append(both)
    return methods


def yardsticks(sizes: Sizes) -> list[tuple[str, Callable[[int], Solver], int]]:
    """Labels, methods of so many steps, and how many make a long one."""
    return [
        ("PD", descent, sizes.descent),
        ("PGD", lambda steps: solver("proximal_gradient", steps=steps), sizes.proximal_gradient),
        (
            "accelerated PGD",
            lambda steps: solver("proximal_gradient", steps=steps, accelerated=True),
            sizes.proximal_gradient,
        ),
    ]


def descent(steps: int) -> Solver:
    """Particle descent whose steps together could cross the space, if there are few: Adam moves
    every coordinate by about its rate."""
    return solver("descent", steps=steps, rate=min(max(4 / max(steps, 1), 5e-4), 0.02))


def timed(chosen: Recovery, method: Method, tau: Batch, starts: Tensor) -> Result:
    """Solve with the clock running; on a GPU at the fourth call, when graphs are captured."""
    solve, seconds = method.solver.run, 0.0
    found = starts
    warm = 3 if starts.is_cuda and method.label.startswith(("POL", "GOL")) else 0
    for _ in range(warm + 1):
        began = _now(starts)
        found = solve(chosen, tau, starts)
        seconds = _now(starts) - began
    found = Solutions.of(chosen.space, found, starts).valued(chosen, tau).rounded()
    return Result(method, found, seconds)


def seconds_per_step(
    chosen: Recovery, make: Callable[[int], Solver], tau: Batch, starts: Tensor
) -> float:
    """Of a method's steps alone: what it takes to begin with is left out, to its advantage."""
    took = []
    for steps in (5, 5, 45):
        began = _now(starts)
        make(steps).run(chosen, tau, starts)
        took.append(_now(starts) - began)
    return max(took[2] - took[1], 1e-6) / 40


def _now(like: Tensor) -> float:
    if like.is_cuda:
        torch.cuda.synchronize(like.device)
    return time.perf_counter()


def summary(chosen: Recovery, result: Result, counted: int, device: str) -> Row:
    """A line of the table: means over the instances, of the solutions inside the space."""
    method, solutions, seconds = result
    assert solutions.values is not None
    inside = solutions.inside
    values = solutions.values.double().masked_fill(~inside, torch.nan)
    low, median, high = (values.nanquantile(q, 1).nanmean().item() for q in (0.05, 0.5, 0.95))
    resting = at_rest(chosen, solutions)
    counts = [len(resting[k].unique()) for k in range(min(counted, len(resting)))]
    fields = {
        "measure": "objective",
        "problem": chosen.name,
        "label": method.label,
        "evaluations": method.evaluations,
        "seconds": seconds,
        "mean": values.nanmean(1).nanmean().item(),
        "best": values.nanquantile(0, 1).nanmean().item(),
        "q05": low,
        "q50": median,
        "q95": high,
        "distinct": sum(counts) / len(counts),
        "at_rest": resting.inside.float().mean().item(),
        "inside": inside.float().mean().item(),
        "instances": len(solutions),
        "counted": len(counts),
        "starts": solutions.points.shape[1],
        "seed": SEED,
    }
    return row(pick_device(device), **fields)


def at_rest(chosen: Recovery, solutions: Solutions) -> Solutions:
    """The solutions, with those that are no minimum, since proximal gradient leads away from them,
    counted as outside: what has not arrived is no optimum found."""
    assert solutions.tau is not None
    moved = solver("proximal_gradient", **AT_REST).run(chosen, solutions.tau, solutions.points)
    way = chosen.space.squared_distance(solutions.points, moved).sqrt()
    still = way <= TOLERANCE * chosen.space.diameter
    return replace(solutions, inside=solutions.inside & still)


def convergence_rows(chosen: Recovery, operator: Operator, sizes: Sizes, device: str) -> list[Row]:
    """Objective values along the way for p = 1/2 and the paper's alpha."""
    rows = []
    for label, make in at_alpha(operator).items():
        for steps in sizes.curve:
            values = _values_at_alpha(chosen, make(steps), sizes, device)
            fields = {
                "measure": "convergence",
                "problem": chosen.name,
                "label": label,
                "alpha": ALPHA,
                "steps": steps,
                "mean": values.mean().item(),
                "std": values.std().item(),
                "starts": sizes.starts,
                "seed": SEED,
            }
            rows.append(row(pick_device(device), **fields))
    return rows


def at_alpha(operator: Operator) -> dict[str, Callable[[int], Solver]]:
    """What is compared step by step."""
    return {
        "PD": lambda steps: solver("descent", steps=steps, rate=0.05),
        "PGD": lambda steps: solver("proximal_gradient", steps=steps),
        "accelerated PGD": lambda steps: solver("proximal_gradient", steps=steps, accelerated=True),
        "POL": lambda steps: solver("operator", operator=operator, steps=steps),
    }


def shown_at_alpha(
    chosen: Recovery, operator: Operator, sizes: Sizes, folder: Folder
) -> dict[str, Tensor]:
    """The values after the last step of the curves."""
    return {
        label: _values_at_alpha(chosen, make(sizes.curve[-1]), sizes, folder.device).cpu()
        for label, make in at_alpha(operator).items()
    }


def _values_at_alpha(
    chosen: Recovery, method: Solver, sizes: Sizes, device: str
) -> Float[Tensor, " n"]:
    picked = pick_device(device)
    tau = torch.tensor([[ALPHA]], device=picked)
    starts = starting_points(chosen.space, sizes.starts, 1, SEED, picked)
    found = Solutions.of(chosen.space, method.run(chosen, tau, starts), starts)
    values = found.valued(chosen, tau).rounded().values
    assert values is not None
    return values[0]


def skglm_rows(sizes: Sizes) -> list[Row]:
    """skglm on the same instances from the same starts, on the CPU; nothing where it is not
    installed."""
    if not find_spec("skglm"):
        say(WITHOUT_SKGLM)
        return []
    rows = []
    for name in ("sparse-half", "sparse-mcp"):
        chosen = recovery(name)
        tau = held_out(chosen, sizes.instances, SEED)
        starts = starting_points(chosen.space, sizes.starts, len(tau), SEED, "cpu")
        method = Method("skglm, on the CPU", solver("skglm"), 0)
        method.solver.run(chosen, tau[:1], starts[:1, :1])  # compiles
        rows.append(summary(chosen, timed(chosen, method, tau, starts), sizes.counted, "cpu"))
        rows[-1]["evaluations"] = None  # it updates one coordinate at a time
    return rows


WITHOUT_SKGLM = (
    "skglm is not installed here, so its rows are left out: where it is, "
    "`python benchmarks/sparse_skglm.py FOLDER` adds them."
)
HEADER = (
    "method", "evaluations", "seconds", "mean", "best", "5%", "50%", "95%", "distinct minima",
    "at a minimum", "inside",
)  # fmt: skip
COLUMNS = ("label", "evaluations", "seconds", "mean", "best", "q05", "q50", "q95", "distinct",
           "at_rest", "inside")  # fmt: skip


def table(rows: list[Row]) -> str:
    """One for each set of instances. The paper shows its own as figures, without numbers."""
    measured = [each for each in rows if each["measure"] == "objective"]
    text = [ABOUT]
    for name in dict.fromkeys(each["problem"] for each in measured):
        own = [each for each in measured if each["problem"] == name]
        size = f"{own[0]['instances']} instances, {own[0]['starts']} starts"
        if own[0]["counted"] < own[0]["instances"]:
            size += f", minima counted on the first {own[0]['counted']}"
        lines = [[each[column] for column in COLUMNS] for each in own]
        text.append(f"## {name}: {size}\n\n{markdown(HEADER, lines)}")
    if not any(each["label"].startswith("skglm") for each in measured):
        text.append(WITHOUT_SKGLM + "\n")
    return "\n".join(text)


ABOUT = (
    "Every method minimizes the sum of squared residuals plus the penalty, from the same starts. "
    "Values are of the exact penalty, at solutions inside the space whose entries below 0.01 (for "
    "l_p) are set to 0; quantiles and counts are means over instances. A solution is at a minimum "
    f"if {AT_REST['steps']} steps of accelerated proximal gradient do not lead away from it; only "
    "those are counted as distinct minima (the MCP is flat beyond 1 / (2 tau), so that many of its "
    "minima are of one plateau). PD is particle descent, PGD proximal gradient; POL, then PGD ends "
    "with steps of accelerated PGD. An application of an operator counts as an evaluation. "
    "Seconds are of all instances together.\n"
)
LOOKS = {  # of the lines of the table that figures show
    "PD, long": ("PD", DESCENT),
    "GOL": ("GOL", GRADIENT),
    "PGD, long": ("PGD", PROXIMAL_GRADIENT),
    "POL": ("POL", PROXIMAL),
    "POL, then PGD": ("POL, PGD", "#7b3fa0"),
}
CURVES = {"PD": DESCENT, "PGD": PROXIMAL_GRADIENT, "accelerated PGD": "#b0b0b0", "POL": PROXIMAL}


def draw_histograms(shown: dict[str, Solutions], folder: Folder, name: str) -> None:
    """Objective values on the first instances, a row for each method."""
    methods = [label for label in LOOKS if label in shown]
    figure = new_figure(3.0 * HISTOGRAMS, 1.3 * len(methods) + 0.5)
    grid = figure.subplots(len(methods), HISTOGRAMS, sharex="col", squeeze=False)
    for column in range(HISTOGRAMS):
        values = {label: _inside(shown[label], column) for label in methods}
        edges = _edges(list(values.values()))
        grid[0, column].set_title(_title(shown[methods[0]], column), fontsize="small")
        for axes, label in zip(grid[:, column], methods):
            tidy(axes, yticks=[])
            axes.hist(np.clip(values[label], edges[0], edges[-1]), edges, color=LOOKS[label][1])
            if len(values[label]):
                mean = min(values[label].mean(), edges[-1])
                axes.axvline(mean, color=INK, linewidth=0.8, linestyle=(0, (3, 3)))
    for axes, label in zip(grid[:, 0], methods):
        axes.set_ylabel(LOOKS[label][0], color=LOOKS[label][1])
    figure.supxlabel("objective (dashed: the mean; the last bin holds all above)", fontsize="small")
    save(figure, folder.path / name)


def _inside(solutions: Solutions, instance: int) -> np.ndarray:
    assert solutions.values is not None
    return solutions.values[instance][solutions.inside[instance]].cpu().numpy()


def _edges(values: list[np.ndarray]) -> np.ndarray:
    """Bins from the lowest value to where the best method's solutions end."""
    values = [each for each in values if each.size] or [np.zeros(1)]
    low = min(each.min() for each in values)
    high = min(np.quantile(each, 0.98) for each in values)
    return np.linspace(low, low + 1.6 * max(high - low, 1e-3), 41)


def _title(solutions: Solutions, instance: int) -> str:
    assert isinstance(solutions.tau, Tensor)
    names = (GREEK, "p") if solutions.tau.shape[1] == 2 else ("τ",)
    parts = zip(names, solutions.tau[instance].tolist())
    return ", ".join(f"{name} = {value:.3f}" for name, value in parts)


def draw_planes(shown: dict[str, Solutions], folder: Folder) -> None:
    """Solutions on the last two coordinates: rows are methods, columns instances."""
    methods = [label for label in LOOKS if label in shown]
    figure = new_figure(1.6 * PLANES, 1.7 * len(methods) + 0.3)
    grid = figure.subplots(len(methods), PLANES, squeeze=False)
    for line, label in zip(grid, methods):
        line[0].set_ylabel(LOOKS[label][0], color=LOOKS[label][1], fontsize="large")
        for column, axes in enumerate(line):
            _show_plane(axes, shown[label], column, LOOKS[label][1])
    for column, axes in enumerate(grid[0]):
        axes.set_title(_title(shown[methods[0]], column), fontsize="x-small")
    save(figure, folder.path / "solutions.png")


def _show_plane(axes: "Axes", solutions: Solutions, instance: int, color: str) -> None:
    points = solutions.points[instance][solutions.inside[instance]].cpu()
    axes.scatter(points[:, -2], points[:, -1], s=5, color=color, alpha=0.35, linewidths=0)
    bare(axes, (-2.05, -2.05), (2.05, 2.05))


def draw_convergence(rows: list[Row], last: dict[str, Tensor], folder: Folder) -> None:
    """Left, the mean objective against steps with a band of one standard deviation; right, where
    the values end."""
    figure = new_figure(10.5, 3.8)
    left, right = figure.subplots(1, 2)
    tidy(left, xlabel="steps, or applications of POL", ylabel="objective", yscale="log")
    for label, color in CURVES.items():
        curve = [each for each in rows if each["label"] == label]
        steps, mean, std = (np.array([r[key] for r in curve]) for key in ("steps", "mean", "std"))
        left.plot(steps, mean, color=color, linewidth=2, label=label)
        low = np.maximum(mean - std, 0.5 * mean.min())
        left.fill_between(steps, low, mean + std, color=color, alpha=0.12, linewidth=0)
    left.set_xscale("symlog", linthresh=10)
    left.set_xlim(0, max(each["steps"] for each in rows))
    left.legend(frameon=False, fontsize="small")
    values = [each.numpy() for each in last.values()]
    edges = _edges(values)
    tidy(right, xlabel=f"objective after {rows[-1]['steps']} steps", ylabel="solutions")
    for label, each in zip(last, values):
        clipped = np.clip(each, edges[0], edges[-1])
        right.hist(clipped, edges, color=CURVES[label], histtype="step", linewidth=1.6)
    figure.suptitle(f"p = 1/2, {GREEK} = {ALPHA}", fontsize="medium")
    save(figure, folder.path / "convergence.png")
