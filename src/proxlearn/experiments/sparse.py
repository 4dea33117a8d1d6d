"""Sparse recovery (paper, 5.2 and D.5): POL, GOL, particle descent and proximal gradient."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers.solutions import TOLERANCE, Solutions
from proxlearn.answers.starts import starting_points
from proxlearn.calculus.loop import Loop, now
from proxlearn.common.batch import Batch
from proxlearn.common.devices import pick_device
from proxlearn.common.provenance import Row, row
from proxlearn.experiments._shared import Folder, markdown
from proxlearn.experiments._sparse_figures import draw_convergence, draw_histograms, draw_planes
from proxlearn.gpu.capture import WARM_UP
from proxlearn.operators.operator import Operator
from proxlearn.problems import problem
from proxlearn.problems.base import held_out
from proxlearn.problems.sparse.recovery import Recovery
from proxlearn.show.terminal import say
from proxlearn.solvers.base import Learned, Solver, Stepwise, solver
from proxlearn.solvers.descent import Descent
from proxlearn.solvers.proximal_gradient import ProximalGradient

SETS = ("sparse", "sparse-half", "sparse-mcp")
ALPHA = 0.627  # of the convergence curves
AT_REST = {"steps": 300, "accelerated": True}  # what must not move a solution that is a minimum
SEED = 0
TEST = 10  # the seed of test instances that no choice of lam or hops was made on


@dataclass(frozen=True)
class Sizes:
    """Every number the experiment depends on."""

    training: dict[str, Any]  # of POL and GOL alike: the same budget
    sets: tuple[str, ...] = SETS
    lam: float | None = None  # of POL; None is the problem's own
    lams: tuple[float, ...] = (5.0,)  # of more operators for `sparse`, besides the problem's own
    applications: int = 50  # of POL alone
    hops: int = 1  # of POL before it settles
    gol_applications: int = 100
    settling: int = 200  # steps of accelerated proximal gradient after the operator
    descent: int = 20_000  # steps of the long particle descent
    proximal_gradient: int = 2_000  # steps of the long proximal gradient
    instances: int = 128
    starts: int = 1024
    curve: tuple[int, ...] = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200)
    """steps at which the convergence curves are read"""


FULL = Sizes(training={"seconds": 30.0, "depth": 10, "applications": 20, "seed": SEED})
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
    "It trains a small network for 25 seconds, with a larger lam, instead of 30 on a GPU, and "
    "one instead of two for `sparse`; it solves 8 instances from 256 starts instead of 128 from "
    "1,024, so that its numbers are not those of the full run; POL is far from trained."
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
        operators, own, shown = solved(name, sizes, folder)
        rows += own
        if name == "sparse":
            draw_histograms(shown, folder, "histograms.png")
            draw_planes(shown, folder)
        if name == "sparse-half":
            curves = values_at_alpha(recovery(name), operators["POL"], sizes, folder.device)
            converging = convergence_rows(name, curves, sizes, folder.device)
            last = {label: values[-1].cpu() for label, values in curves.items()}
            draw_convergence(converging, last, folder)
            rows += converging
        if name == "sparse-mcp":
            draw_histograms(shown, folder, "mcp.png")
    rows += skglm_rows(sizes)
    note = "" if find_spec("skglm") else f"\n{WITHOUT_SKGLM}\n"
    return rows, table(rows) + note


def solved(
    name: str, sizes: Sizes, folder: Folder
) -> tuple[dict[str, Operator], list[Row], dict[str, Solutions]]:
    """One set of instances: its operators, rows on them and on every method, and what these
    found, by label."""
    chosen, operators = recovery(name), train(name, sizes, folder)
    rows = [trained(label, each, folder.device) for label, each in operators.items()]
    results = compare(chosen, operators, sizes, folder.device)
    rows += [summary(chosen, each, folder.device) for each in results]
    return operators, rows, {each.method.label: each.solutions for each in results}


def recovery(name: str) -> Recovery:
    """A problem of sparse recovery."""
    chosen = problem(name)
    assert isinstance(chosen, Recovery)
    return chosen


def train(name: str, sizes: Sizes, folder: Folder) -> dict[str, Operator]:
    """The operators of one problem, by what the table calls them; GOL is trained for `sparse`
    alone, which keeps the run short."""
    chosen = recovery(name)
    operators = {"POL": folder.train(f"{name}-pol", chosen, sizes.training | {"lam": sizes.lam})}
    for lam in sizes.lams if name == "sparse" else ():
        settings = sizes.training | {"lam": lam}
        operators[f"POL, lam = {lam:g}"] = folder.train(f"{name}-pol-{lam:g}", chosen, settings)
    if name == "sparse":
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
    tau = held_out(chosen, sizes.instances, TEST, picked)
    starts = starting_points(chosen.space, sizes.starts, len(tau), SEED, picked)

    def solve(method: Method) -> Result:
        return timed(chosen, method, tau, starts)

    results = [solve(each) for each in learned(operators, sizes)]
    budget = next(each for each in results if each.method.label == "POL, then PGD")
    for label, make, long in yardsticks(sizes):
        _, as_many = Loop(make(long), chosen, tau, starts).run_for(budget.seconds)
        for said, steps in (
            ("as many evaluations", budget.method.evaluations),
            ("as many seconds", as_many),
            ("long", long),
        ):
            results.append(solve(Method(f"{label}, {said}", make(steps), steps)))
    return results


def learned(operators: dict[str, Operator], sizes: Sizes) -> list[Method]:
    """Every operator on its own, and a little of POL followed by a little proximal gradient."""
    settling = ProximalGradient(sizes.settling, accelerated=True)
    methods = []
    for label, operator in operators.items():
        steps = sizes.gol_applications if label == "GOL" else sizes.applications
        methods.append(Method(label, solver("operator", operator=operator, steps=steps), steps))
        if label != "GOL":
            hops = solver("operator", operator=operator, steps=sizes.hops)
            both = Method(f"{label}, then PGD", Then(hops, settling), sizes.hops + sizes.settling)
            methods.append(both)
    return methods


def yardsticks(sizes: Sizes) -> list[tuple[str, Callable[[int], Stepwise], int]]:
    """Labels, methods of so many steps, and how many make a long one."""
    accelerated = partial(ProximalGradient, accelerated=True)
    return [
        ("PD", descent, sizes.descent),
        ("PGD", ProximalGradient, sizes.proximal_gradient),
        ("accelerated PGD", accelerated, sizes.proximal_gradient),
    ]


def descent(steps: int) -> Descent:
    """Particle descent whose steps together could cross the space, if there are few: Adam moves
    every coordinate by about its rate."""
    return Descent(steps, rate=min(max(4 / max(steps, 1), 5e-4), 0.05))


def timed(chosen: Recovery, method: Method, tau: Batch, starts: Tensor) -> Result:
    """Solve with the clock running; on a GPU at the fourth call, when graphs are captured."""
    found, seconds = starts, 0.0
    warm = WARM_UP if starts.is_cuda and isinstance(method.solver, Learned | Then) else 0
    for _ in range(warm + 1):
        began = now(starts.device)
        found = method.solver.run(chosen, tau, starts)
        seconds = now(starts.device) - began
    found = Solutions.of(chosen.space, found, starts).valued(chosen, tau).rounded()
    return Result(method, found, seconds)


def summary(chosen: Recovery, result: Result, device: str) -> Row:
    """A line of the table: means over the instances, of the solutions inside the space."""
    method, solutions, seconds = result
    assert solutions.values is not None
    inside = solutions.inside
    values = solutions.values.double().masked_fill(~inside, torch.nan)
    low, median, high = (values.nanquantile(q, 1).nanmean().item() for q in (0.05, 0.5, 0.95))
    resting = at_rest(chosen, solutions).cpu()
    counts = [len(resting[k].unique()) for k in range(len(resting))]
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
        "starts": solutions.points.shape[1],
        "seed": SEED,
    }
    return row(pick_device(device), **fields)


def at_rest(chosen: Recovery, solutions: Solutions) -> Solutions:
    """The solutions, with those that are no minimum, since proximal gradient leads away from them,
    counted as outside: what has not arrived is no optimum found."""
    assert solutions.tau is not None
    moved = ProximalGradient(**AT_REST).run(chosen, solutions.tau, solutions.points)
    way = chosen.space.squared_distance(solutions.points, moved).sqrt()
    still = way <= TOLERANCE * chosen.space.diameter
    return replace(solutions, inside=solutions.inside & still)


def convergence_rows(
    problem: str, curves: dict[str, list[Tensor]], sizes: Sizes, device: str
) -> list[Row]:
    """Objective values along the way for p = 1/2 and the paper's alpha, inside the space."""
    rows = []
    for label, every in curves.items():
        for steps, values in zip(sizes.curve, every, strict=True):
            fields = {
                "measure": "convergence",
                "problem": problem,
                "label": label,
                "alpha": ALPHA,
                "steps": steps,
                "mean": values.mean().item(),
                "std": values.std().item(),
                "inside": len(values) / sizes.starts,
                "starts": sizes.starts,
                "seed": SEED,
            }
            rows.append(row(pick_device(device), **fields))
    return rows


def at_alpha(operator: Operator) -> dict[str, Solver]:
    """What is compared step by step."""
    return {
        "PD": Descent(rate=0.05),
        "PGD": ProximalGradient(),
        "accelerated PGD": ProximalGradient(accelerated=True),
        "POL": solver("operator", operator=operator),
    }


def values_at_alpha(
    chosen: Recovery, operator: Operator, sizes: Sizes, device: str
) -> dict[str, list[Float[Tensor, " n"]]]:
    """The values of the solutions inside the space, at every point of each method's curve."""
    picked = pick_device(device)
    tau = torch.tensor([[ALPHA]], device=picked)
    starts = starting_points(chosen.space, sizes.starts, 1, SEED, picked)

    def inside(found: Solutions) -> Float[Tensor, " n"]:
        found = found.valued(chosen, tau).rounded()
        assert found.values is not None
        return found.values[0][found.inside[0]]

    return {
        label: [inside(each) for each in method.trace(chosen, tau, starts, sizes.curve)]
        for label, method in at_alpha(operator).items()
    }


def skglm_rows(sizes: Sizes) -> list[Row]:
    """skglm on the same instances from the same starts, on the CPU; nothing where it is not
    installed."""
    if not find_spec("skglm"):
        say(WITHOUT_SKGLM)
        return []
    rows = []
    for name in ("sparse-half", "sparse-mcp"):
        chosen = recovery(name)
        tau = held_out(chosen, sizes.instances, TEST)
        starts = starting_points(chosen.space, sizes.starts, len(tau), SEED, "cpu")
        method = Method("skglm, on the CPU", solver("skglm"), 0)
        method.solver.run(chosen, tau[:1], starts[:1, :1])  # compiles
        rows.append(summary(chosen, timed(chosen, method, tau, starts), "cpu"))
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
        lines = [[each[column] for column in COLUMNS] for each in own]
        text.append(f"## {name}: {size}\n\n{markdown(HEADER, lines)}")
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
