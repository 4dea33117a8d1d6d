"""Proximal gradient: a gradient step on the smooth part of an objective, then a proximal step on
the rest. With soft thresholds it is ISTA, accelerated FISTA."""

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.calculus.curvature import extreme_curvatures
from proxlearn.calculus.derivatives import gradient
from proxlearn.common.batch import Batch, Points, Values
from proxlearn.common.checks import positive
from proxlearn.common.seeds import generator_for
from proxlearn.problems.base import Problem
from proxlearn.problems.objectives import values_of
from proxlearn.solvers.base import Stepwise

SHARE = 0.99  # of the longest step that can only lead down
LOOKED_AT = 8  # points where the curvature of every instance's smooth part is measured


class State(NamedTuple):
    """Where the points are, and where they were before with what acceleration needs besides."""

    x: Points
    before: Points
    age: Float[Tensor, "i n 1"]  # Nesterov's t
    value: Values


class _Task(NamedTuple):
    """Instances with the smooth part of their objective, and the length of their steps."""

    problem: Any  # one that has `prox`
    part: Problem
    tau: Batch
    length: Float[Tensor, "i 1 1"]

    def forward_backward(self, x: Points) -> Points:
        _, slope = gradient(self.part, x, self.tau)
        moved = self.problem.prox(x - self.length * slope, self.tau, self.length)
        return self.problem.space.retract(moved)


@dataclass(frozen=True)
class ProximalGradient(Stepwise):
    """Every start on its own; for problems whose objective is `smooth + rest` and that define
    `smooth(x, tau)`, its differentiable part, and `prox(x, tau, step)`, the proximal operator of
    the rest: `argmin_y rest(y) + |y - x|^2 / (2 step)`, where step is (i 1 1)."""

    steps: int = 2000
    step: float | None = None  # None: one over the largest curvature of the smooth part
    accelerated: bool = False  # Nesterov's momentum, begun anew where the objective would rise
    captures = True

    def __post_init__(self):
        if self.step is not None:
            positive("step", self.step)

    def refuses(self, problem):
        if hasattr(problem, "smooth") and hasattr(problem, "prox"):
            return None
        return (
            f"Problem {problem.name!r} does not say which part of its objective is smooth and how "
            "to take a proximal step on the rest, which proximal gradient needs: define "
            "smooth(x, tau) and prox(x, tau, step), or use descent or lbfgs."
        )

    def prepare(self, problem, tau, starts):
        part = copy.copy(problem)
        part.objective = problem.smooth
        if self.step is not None:
            return _Task(problem, part, tau, starts.new_full((len(starts), 1, 1), self.step))
        drawn = part.space.sample(len(starts), LOOKED_AT, generator=generator_for(0, "curvature"))
        _, most = extreme_curvatures(part, drawn.to(starts), tau)
        return _Task(problem, part, tau, SHARE / most.amax(1)[:, None, None])

    def init(self, prepared, x):
        value = values_of(prepared.problem, x, prepared.tau)
        return State(x, x, torch.ones_like(x[..., :1]), value)

    def one_step(self, prepared, state):
        if not self.accelerated:
            return state._replace(x=prepared.forward_backward(state.x))
        older = (1 + (1 + 4 * state.age.square()).sqrt()) / 2
        ahead = state.x + (state.age - 1) / older * (state.x - state.before)
        ahead = prepared.problem.space.retract(ahead)
        new = prepared.forward_backward(ahead)
        value = values_of(prepared.problem, new, prepared.tau)
        lower = (value <= state.value)[..., None]
        x, age = torch.where(lower, new, state.x), torch.where(lower, older, 1.0)
        return State(x, state.x, age, torch.minimum(value, state.value))
