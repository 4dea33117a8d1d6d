"""Growing steps (paper, section 6, future work): one operator for a range of lam, lam falling.

Theorem 3.1 asks for a lam above the weak convexity constant, but only where the objective curves
downwards: a large lam at first keeps points in their basins, and near an optimum a small one
arrives in a few applications. The error is how far a start's solution is from the optimum that
gradient flow leads that start to.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.devices import pick_device
from proxlearn.common.provenance import Row, row
from proxlearn.experiments._shared import DESCENT, GRADIENT, INK, PROXIMAL, Folder, markdown, tidy
from proxlearn.figures.draw import new_figure, save
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import Problem, held_out
from proxlearn.solvers.solve import solve, trace
from proxlearn.spaces import Box

LAMS = (2.0, 20.0, 200.0)  # one at a time; the operator is trained for all between the outer ones
FALLING = "falling"
SHRINK = 0.3  # of lam from one application to the next, where it falls
NEAR = 0.1  # an optimum is reached within this distance; the nearest two are some 3 apart
COLORS = {FALLING: PROXIMAL, 2.0: DESCENT, 20.0: GRADIENT, 200.0: "#b08d2e"}
FLOW = {"steps": 10_000, "rate": 1e-4, "adam": False}  # gradient flow, as small steps downhill
SEED = 0


@dataclass(frozen=True)
class Sizes:
    """Every number the experiment depends on."""

    training: dict[str, Any]
    instances: int = 32
    starts: int = 512
    applications: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30)


FULL = Sizes(training={"seconds": 60.0, "lam": (LAMS[0], LAMS[-1]), "seed": SEED})
QUICK = Sizes(
    training={"seconds": 30.0, "lam": (LAMS[0], LAMS[-1]), "seed": SEED}, instances=8, starts=128
)
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
    """Train, follow every schedule, draw: rows and a table."""
    problem = himmelblau()
    operator = folder.train("range", problem, sizes.training)
    rows = error_rows(problem, operator, sizes, folder.device)
    draw_error(rows, folder)
    return rows, table(rows)


def schedules(most: int) -> dict[str | float, list[float]]:
    """The lam of each of so many applications."""
    falling = [max(LAMS[0], LAMS[-1] * SHRINK**k) for k in range(most)]
    return {FALLING: falling} | {lam: [lam] * most for lam in LAMS}


def error_rows(problem: Problem, operator: Operator, sizes: Sizes, device: str) -> list[Row]:
    """How far solutions are from the optima of their starts' basins, after every application."""
    tau, picked, rows = held_out(problem, sizes.instances, SEED), pick_device(device), []
    flow = solve(problem, tau, "descent", sizes.starts, SEED, device, **FLOW).polished()
    for name, lams in schedules(max(1, *sizes.applications)).items():
        how = {"starts": flow.starts, "device": device, "operator": operator, "lam": lams}
        every = trace(problem, tau, "operator", sizes.applications, **how)
        for k, found in zip(sizes.applications, every):
            error = _distance(found.points, flow.points)
            fields = {
                "problem": problem.name,
                "lam": str(name) if name == FALLING else name,
                "applications": k,
                "error": error.mean().item(),
                "reached": (error <= NEAR).float().mean().item(),
                "instances": sizes.instances,
                "starts": sizes.starts,
                "trained_steps": operator.provenance["steps"],
                "trained_seconds": operator.provenance["seconds"],
                "seed": SEED,
            }
            rows.append(row(picked, **fields))
    return rows


def _distance(x: Float[Tensor, "i n d"], y: Float[Tensor, "i n d"]) -> Float[Tensor, "i n"]:
    return torch.linalg.vector_norm(x - y, dim=-1)


def table(rows: list[Row]) -> str:
    """Errors at some of the applications, a line for each schedule."""
    shown = [k for k in (1, 2, 3, 5, 10, 20, 30) if any(r["applications"] == k for r in rows)]
    lines = []
    for lam in dict.fromkeys(r["lam"] for r in rows):
        own = {r["applications"]: r for r in rows if r["lam"] == lam}
        name = f"{LAMS[-1]:g} falling to {LAMS[0]:g}" if lam == FALLING else f"{lam:g}"
        lines.append((name, *(own[k]["error"] for k in shown), own[shown[-1]]["reached"]))
    said = (
        "The mean distance from solutions to the optimum of their start's basin after so many "
        f"applications; the last column is the share within {NEAR} of it in the end.\n\n"
    )
    return said + markdown(("lam", *map(str, shown), "reached"), lines)


def draw_error(rows: list[Row], folder: Folder) -> None:
    """The error against applications: falling lam beside single ones."""
    figure = new_figure(6.4, 4.2)
    axes = figure.subplots()
    last = max(each["applications"] for each in rows)
    tidy(axes, xlabel="applications", yscale="log", xlim=(0, last))
    for lam, color in COLORS.items():
        own = [each for each in rows if each["lam"] == lam]
        name = f"λ from {LAMS[-1]:g} to {LAMS[0]:g}" if lam == FALLING else f"λ = {lam:g}"
        width = 2.4 if lam == FALLING else 1.4
        k, error = [r["applications"] for r in own], [r["error"] for r in own]
        axes.plot(k, error, color=color, linewidth=width, label=name)
    axes.set_ylabel("distance to the optimum of the start's basin", color=INK)
    axes.legend(frameon=False, fontsize="small")
    save(figure, folder.path / "error.png")
