"""Sparse recovery (paper, 5.2 and D.5): POL, GOL, particle descent and proximal gradient."""

from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers.clusters import TOLERANCE
from proxlearn.answers.solutions import Solutions
from proxlearn.answers.starts import starting_points
from proxlearn.calculus.loop import Loop, now
from proxlearn.common.batch import Batch
from proxlearn.common.provenance import Row
from proxlearn.experiments._shared import SEED, Folder, grouped, markdown, spread, trained_for
from proxlearn.experiments._sparse_figures import draw_convergence, draw_histograms, draw_planes
from proxlearn.gpu.capture import WARM_UP
from proxlearn.gpu.devices import pick_device
from proxlearn.operators.operator import Operator
from proxlearn.problems import problem
from proxlearn.problems.base import Problem, held_out
from proxlearn.show.terminal import say
from proxlearn.solvers.base import Learned, Solver, solver
from proxlearn.solvers.descent import Descent
from proxlearn.solvers.proximal_gradient import ProximalGradient

ALPHA = 0.627  # of the convergence curves
AT_REST = {"steps": 300, "accelerated": True}  # what must not move a solution that is a minimum
TEST = 10  # the seed of test instances that no choice of lam or hops was made on


@dataclass(frozen=True)
class Sizes:
    training: dict[str, Any]  # of POL and GOL alike: the same budget
    sets: tuple[str, ...] = ("sparse", "sparse-half", "sparse-mcp")
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


FULL = Sizes(training={"seconds": 30.0, "depth": 10, "applications": 20})
QUICK = Sizes(
    training={"seconds": 25.0, "rate": 3e-3, "instances": 96, "points": 3}
    | {"applications": 20, "architecture": {"width": 64, "shared": 64}},
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


@dataclass(frozen=True)
class Then(Solver):
    """One method from where another ended."""

    first: Solver
    second: Solver

    def run(self, problem, tau, starts):
        return self.second.run(problem, tau, self.first.run(problem, tau, starts))


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    rows: list[Row] = []
    for name in sizes.sets:
        operators = train(name, sizes, folder)
        own, shown = solved(name, operators, sizes, folder)
        rows += own
        if name == "sparse":
            draw_histograms(shown, folder, "histograms.png")
            draw_planes(shown, folder)
        if name == "sparse-half":
            curves = values_at_alpha(problem(name), operators["POL"], sizes, folder.device)
            converging = convergence_rows(name, curves, sizes, folder)
            draw_convergence(converging, {k: each[-1].cpu() for k, each in curves.items()}, folder)
            rows += converging
        if name == "sparse-mcp":
            draw_histograms(shown, folder, "mcp.png")
    rows += skglm_rows(sizes, folder)
    return rows, table(rows) + ("" if find_spec("skglm") else f"\n{WITHOUT_SKGLM}\n")


def train(name: str, sizes: Sizes, folder: Folder) -> dict[str, Operator]:
    """The operators of one problem, by what the table calls them; GOL and other values of lam are
    trained for `sparse` alone, which keeps the run short."""
    asked: dict[str, tuple[str, dict[str, Any]]] = {"POL": ("pol", {"lam": sizes.lam})}
    if name == "sparse":
        asked |= {f"POL, lam = {lam:g}": (f"pol-{lam:g}", {"lam": lam}) for lam in sizes.lams}
        asked["GOL"] = ("gol", {"rule": "gradient"})
    return {
        label: folder.train(f"{name}-{ending}", problem(name), sizes.training | own)
        for label, (ending, own) in asked.items()
    }


def solved(
    name: str, operators: dict[str, Operator], sizes: Sizes, folder: Folder
) -> tuple[list[Row], dict[str, Solutions]]:
    """One set of instances: rows on the operators and on every method from the same starts, and
    what these found, by label. Descent and proximal gradient run as many steps as POL and its
    settling, then for as many seconds, and then until they have converged."""
    chosen, picked = problem(name), pick_device(folder.device)
    tau = held_out(chosen, sizes.instances, TEST, picked)
    starts = starting_points(chosen.space, sizes.starts, len(tau), SEED, picked)
    rows, shown = {}, {}

    def measure(method: Method) -> None:
        rows[method.label], shown[method.label] = measured(chosen, method, tau, starts, folder)

    for each in learned(operators, sizes):
        measure(each)
    budget, accelerated = rows["POL, then PGD"], partial(ProximalGradient, accelerated=True)
    yardsticks = {"PD": descent, "PGD": ProximalGradient, "accelerated PGD": accelerated}
    for label, make in yardsticks.items():
        long = sizes.descent if label == "PD" else sizes.proximal_gradient
        _, as_many = Loop(make(long), chosen, tau, starts).run_for(budget["seconds"])
        lengths = {"as many evaluations": budget["evaluations"], "as many seconds": as_many}
        for words, steps in (lengths | {"long": long}).items():
            measure(Method(f"{label}, {words}", make(steps), steps))
    about = {"measure": "training", "problem": name}
    trained = [
        folder.row(**about, label=label, lam=each.lam, **trained_for(each.provenance))
        for label, each in operators.items()
    ]
    return [*trained, *rows.values()], shown


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


def descent(steps: int) -> Descent:
    """Particle descent whose steps together could cross the space, if there are few: Adam moves
    every coordinate by about its rate."""
    return Descent(steps, rate=min(max(4 / max(steps, 1), 5e-4), 0.05))


def measured(
    chosen: Problem, method: Method, tau: Batch, starts: Tensor, folder: Folder
) -> tuple[Row, Solutions]:
    """A line of the table, means over the instances of the solutions inside the space, and these;
    the time is that of the fourth call for what is captured on a GPU."""
    points, seconds = starts, 0.0
    warm = WARM_UP if starts.is_cuda and isinstance(method.solver, Learned | Then) else 0
    for _ in range(warm + 1):
        began = now(starts.device)
        points = method.solver.run(chosen, tau, starts)
        seconds = now(starts.device) - began
    found = Solutions.of(chosen.space, points, starts).valued(chosen, tau).rounded()
    assert found.values is not None
    values = found.values.double().masked_fill(~found.inside, torch.nan)
    resting = at_rest(chosen, found).cpu()
    quantiles = {"best": 0.0, "q05": 0.05, "q50": 0.5, "q95": 0.95}
    fields = {
        "measure": "objective",
        "problem": chosen.name,
        "label": method.label,
        "evaluations": method.evaluations,
        "seconds": seconds,
        "mean": values.nanmean(1).nanmean().item(),
        **{name: values.nanquantile(q, 1).nanmean().item() for name, q in quantiles.items()},
        "distinct": sum(len(resting[k].unique(verify=False)) for k in range(len(tau))) / len(tau),
        "at_rest": resting.inside.float().mean().item(),
        "inside": found.inside.float().mean().item(),
        "instances": len(tau),
        "starts": starts.shape[1],
    }
    return folder.row(**fields), found


def at_rest(chosen: Problem, solutions: Solutions) -> Solutions:
    """The solutions, with those that are no minimum, since proximal gradient leads away from them,
    counted as outside: what has not arrived is no optimum found."""
    assert solutions.tau is not None
    moved = ProximalGradient(**AT_REST).run(chosen, solutions.tau, solutions.points)
    way = chosen.space.squared_distance(solutions.points, moved).sqrt()
    still = way <= TOLERANCE * chosen.space.diameter
    return replace(solutions, inside=solutions.inside & still)


def convergence_rows(
    name: str, curves: dict[str, list[Tensor]], sizes: Sizes, folder: Folder
) -> list[Row]:
    """Objective values along the way for p = 1/2 and the paper's alpha, inside the space."""
    about = {"measure": "convergence", "problem": name, "alpha": ALPHA, "starts": sizes.starts}
    return [
        folder.row(**about, label=label, steps=k, **spread(each), inside=len(each) / sizes.starts)
        for label, every in curves.items()
        for k, each in zip(sizes.curve, every, strict=True)
    ]


def values_at_alpha(
    chosen: Problem, operator: Operator, sizes: Sizes, device: str
) -> dict[str, list[Float[Tensor, " n"]]]:
    """The values of the solutions inside the space, at every point of each method's curve."""
    picked = pick_device(device)
    tau = torch.tensor([[ALPHA]], device=picked)
    starts = starting_points(chosen.space, sizes.starts, 1, SEED, picked)
    methods: dict[str, Solver] = {
        "PD": Descent(rate=0.05),
        "PGD": ProximalGradient(),
        "accelerated PGD": ProximalGradient(accelerated=True),
        "POL": solver("operator", operator=operator),
    }

    def inside(found: Solutions) -> Float[Tensor, " n"]:
        found = found.valued(chosen, tau).rounded()
        assert found.values is not None
        return found.values[0][found.inside[0]]

    return {
        label: [inside(each) for each in method.curve(chosen, tau, starts, sizes.curve)]
        for label, method in methods.items()
    }


def skglm_rows(sizes: Sizes, folder: Folder) -> list[Row]:
    """skglm, where it is installed, on the same instances from the same starts, on the CPU."""
    if not find_spec("skglm"):
        say(WITHOUT_SKGLM)
        return []
    rows, on_cpu = [], replace(folder, device="cpu")
    for name in ("sparse-half", "sparse-mcp"):
        chosen = problem(name)
        tau = held_out(chosen, sizes.instances, TEST)
        starts = starting_points(chosen.space, sizes.starts, len(tau), SEED, "cpu")
        method = Method("skglm, on the CPU", solver("skglm"), 0)
        method.solver.run(chosen, tau[:1], starts[:1, :1])  # compiles
        row, _ = measured(chosen, method, tau, starts, on_cpu)
        rows.append(row | {"evaluations": None})  # it updates one coordinate at a time
    return rows


WITHOUT_SKGLM = (
    "skglm is not installed here, so its rows are left out: where it is, "
    "`python benchmarks/sparse_skglm.py FOLDER` adds them."
)
COLUMNS = {"label": "method", "evaluations": "evaluations", "seconds": "seconds", "mean": "mean"}
COLUMNS |= {"best": "best", "q05": "5%", "q50": "50%", "q95": "95%", "distinct": "distinct minima"}
COLUMNS |= {"at_rest": "at a minimum", "inside": "inside"}


def table(rows: list[Row]) -> str:
    """One for each set of instances. The paper shows its own as figures, without numbers."""
    text = [ABOUT]
    for name, own in grouped(grouped(rows, "measure")["objective"], "problem").items():
        size = f"{own[0]['instances']} instances, {own[0]['starts']} starts"
        lines = [[each[column] for column in COLUMNS] for each in own]
        text.append(f"## {name}: {size}\n\n{markdown([*COLUMNS.values()], lines)}")
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
