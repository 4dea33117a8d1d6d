"""The iterated operator with the objective at hand: no step is taken that does not pay.

An application is taken where it lowers the proximal objective, `f(y) + lam/2 |y - x|^2 < f(x)`.
Where it does not, a short step down the gradient is tried; a point that neither moves has arrived,
and costs nothing more.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from proxlearn.batch import Batch
from proxlearn.derivatives import gradient
from proxlearn.operator import Operator
from proxlearn.precision import products_in
from proxlearn.problem import Problem
from proxlearn.solvers import Learned
from proxlearn.stopping import until_arrived

TRIES = 6  # lengths of the short step, before a point stands still
WORTH = 1e-6  # a step has to lower the value by this share of what there is between best and median


@dataclass(frozen=True)
class Safeguarded(Learned):
    """Apply a trained operator, by default the one shipped, until every point has arrived."""

    steps: int = 100  # at most

    def run(self, problem, tau, starts):
        operator = self.fitting(problem, starts.device)
        return safeguarded(operator, problem, tau, starts, self.steps)[0]


@torch.no_grad()
def safeguarded(
    operator: Operator, problem: Problem, tau: Batch, x: Float[Tensor, "i n d"], steps: int
) -> tuple[Float[Tensor, "i n d"], Int[Tensor, "i n"]]:
    """Where every point ends, and how many applications it used."""
    with products_in(operator.precision):
        prepared = operator.prepare(operator.encode(problem.observe(tau)))
        values = problem.objective(x, tau).nan_to_num(torch.inf, torch.inf)
        usual = (values.median(1).values - values.amin(1)).nan_to_num(0.0, 0.0)
        least = WORTH * usual[:, None]

        def step(at: Tensor, value: Tensor):
            new, lower = _step(operator, problem, tau, prepared, at, value, least)
            return (new, lower), lower < value - least

        found = x.clone()
        used, _ = until_arrived((found, values), steps, step)
    return found, used


def _step(
    operator: Operator,
    problem: Problem,
    tau: Batch,
    prepared: Tensor,
    x: Float[Tensor, "i n d"],
    value: Float[Tensor, "i n"],
    least: Float[Tensor, "i 1"],
) -> tuple[Float[Tensor, "i n d"], Float[Tensor, "i n"]]:
    """The operator's step where it pays, else a short one down the gradient: points and values."""
    new = operator(x, prepared)
    lower = problem.objective(new, tau)
    pull = operator.lam / 2 * problem.space.squared_distance(x, new)
    pays = (lower + pull < value - least) & problem.space.contains(new)
    if pays.all():
        return new, lower
    short, short_value = _down(problem, tau, x, value, operator.lam)
    return torch.where(pays[..., None], new, short), torch.where(pays, lower, short_value)


def _down(
    problem: Problem, tau: Batch, x: Float[Tensor, "i n d"], value: Float[Tensor, "i n"], lam: float
) -> tuple[Float[Tensor, "i n d"], Float[Tensor, "i n"]]:
    """The first of 1, 1/4, 1/16, ... of the step -gradient/lam that lowers the value; x where none
    does."""
    _, slope = gradient(problem, x, tau)
    longest = 0.01 * problem.space.diameter
    step = -slope / lam
    step = step * (longest / step.norm(dim=-1, keepdim=True).clamp(min=longest))
    best, lowest = x, value
    for _ in range(TRIES):
        trial = problem.space.project(x + step)
        there = problem.objective(trial, tau)
        better = (there < lowest) & (lowest == value)
        best, lowest = (
            torch.where(better[..., None], trial, best),
            torch.where(better, there, lowest),
        )
        step = step / 4
    return best, lowest
