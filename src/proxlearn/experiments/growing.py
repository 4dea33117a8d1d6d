"""Growing steps (paper, section 6, future work): one operator for a range of lam, lam falling.

Theorem 3.1 asks for a lam above the weak convexity constant, but only where the objective curves
downwards: a large lam at first keeps points in their basins, and near an optimum a small one
arrives in a few applications. The error is how far a solution is from the optimum that
gradient flow leads its start to.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from proxlearn.common.provenance import Row
from proxlearn.experiments._look import DESCENT, GRADIENT, INK, PROXIMAL, Axes, tidy
from proxlearn.experiments._shared import SEED, Folder, columns, grouped, markdown, trained_for
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import Problem, held_out
from proxlearn.solvers.solve import curve
from proxlearn.spaces import Box

LAMS = (2.0, 20.0, 200.0)  # one at a time; the operator is trained for all between the outer ones
FALLING = "falling"
SHRINK = 0.3  # of lam from one application to the next, where it falls
NEAR = 0.1  # an optimum is reached within this distance; the nearest two are some 3 apart
COLORS = {FALLING: PROXIMAL, 2.0: DESCENT, 20.0: GRADIENT, 200.0: "#b08d2e"}
FLOW = {"steps": 10_000, "rate": 1e-4, "adam": False}  # gradient flow, as small steps downhill


@dataclass(frozen=True)
class Sizes:
    training: dict[str, Any]
    instances: int = 32
    starts: int = 512
    applications: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30)


RANGE = {"lam": (LAMS[0], LAMS[-1])}
FULL = Sizes(training={"seconds": 60.0} | RANGE)
QUICK = Sizes(training={"seconds": 30.0} | RANGE, instances=8, starts=128)
LEFT_OUT = (
    "It trains for 30 seconds instead of 60, and measures 8 instances from 128 starts instead of "
    "32 from 512."
)


def himmelblau() -> Problem:
    """Himmelblau's function with its two constants as tau: four minima each, all of value 0."""

    def f(x: Tensor, tau: Tensor) -> Tensor:
        (u, v), (a, b) = x.unbind(-1), tau.unbind(-1)
        return (u**2 + v - a) ** 2 + (u + v**2 - b) ** 2

    return Problem.from_function(f, Box(-5, 5, dim=2), Box([9, 5], [13, 9]), "himmelblau")


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    problem = himmelblau()
    operator = folder.train("range", problem, sizes.training)
    rows = error_rows(problem, operator, sizes, folder)
    with folder.figure("error.png", 6.4, 4.2) as figure:
        draw_error(figure.subplots(), rows)
    return rows, table(rows)


def schedules(most: int) -> dict[str | float, list[float]]:
    """The lam of each of so many applications."""
    falling = [max(LAMS[0], LAMS[-1] * SHRINK**k) for k in range(most)]
    return {FALLING: falling} | {lam: [lam] * most for lam in LAMS}


def error_rows(problem: Problem, operator: Operator, sizes: Sizes, folder: Folder) -> list[Row]:
    """How far solutions are from the optima of their starts' basins, after every application."""
    tau, rows = held_out(problem, sizes.instances, SEED), []
    flow = folder.solve(problem, tau, "descent", sizes.starts, **FLOW).polished()
    about = {"instances": sizes.instances, "starts": sizes.starts}
    about |= trained_for(operator.provenance)
    for lam, lams in schedules(max(1, *sizes.applications)).items():
        how = {"starts": flow.starts, "device": folder.device, "operator": operator, "lam": lams}
        every = curve(problem, tau, "operator", sizes.applications, **how)
        for k, found in zip(sizes.applications, every):
            error = torch.linalg.vector_norm(found.points - flow.points, dim=-1)
            far = {"error": error.mean().item(), "reached": (error <= NEAR).float().mean().item()}
            rows.append(folder.row(problem=problem.name, lam=lam, applications=k, **far, **about))
    return rows


def table(rows: list[Row]) -> str:
    """Errors at some of the applications, a line for each schedule."""
    shown = [k for k in (1, 2, 3, 5, 10, 20, 30) if any(r["applications"] == k for r in rows)]
    lines = []
    for lam, some in grouped(rows, "lam").items():
        own = {each["applications"]: each for each in some}
        name = f"{LAMS[-1]:g} falling to {LAMS[0]:g}" if lam == FALLING else f"{lam:g}"
        lines.append((name, *(own[k]["error"] for k in shown), own[shown[-1]]["reached"]))
    said = (
        "The mean distance from solutions to the optimum of their start's basin after so many "
        f"applications; the last column is the share within {NEAR} of it in the end.\n\n"
    )
    return said + markdown(("lam", *map(str, shown), "reached"), lines)


def draw_error(axes: Axes, rows: list[Row]) -> None:
    """The error against applications: falling lam beside single ones."""
    tidy(axes, xlabel="applications", yscale="log", xlim=(0, rows[-1]["applications"]))
    for lam, own in grouped(rows, "lam").items():
        name = f"λ from {LAMS[-1]:g} to {LAMS[0]:g}" if lam == FALLING else f"λ = {lam:g}"
        look = {"color": COLORS[lam], "linewidth": 2.4 if lam == FALLING else 1.4}
        axes.plot(*columns(own, "applications", "error"), label=name, **look)
    axes.set_ylabel("distance to the optimum of the start's basin", color=INK)
    axes.legend(frameon=False, fontsize="small")
