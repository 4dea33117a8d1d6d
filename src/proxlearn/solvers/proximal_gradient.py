"""Proximal gradient: a gradient step on the smooth part of an objective, then a proximal step on
the rest. With soft thresholds it is ISTA, accelerated FISTA."""

import copy
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.calculus.curvature import extreme_curvatures
from proxlearn.calculus.derivatives import gradient
from proxlearn.common.batch import Batch
from proxlearn.common.checks import check_positive
from proxlearn.common.seeds import generator_for
from proxlearn.gpu.capture import captured
from proxlearn.problems.base import Problem
from proxlearn.solvers.base import Solver

SHARE = 0.99  # of the longest step that can only lead down
LOOKED_AT = 8  # points where the curvature of every instance's smooth part is measured


@dataclass(frozen=True)
class ProximalGradient(Solver):
    """Every start on its own; for problems that give `smooth` and `prox`."""

    steps: int = 2000
    step: float | None = None  # None: one over the largest curvature of the smooth part
    accelerated: bool = False  # Nesterov's momentum, begun anew where the objective would rise

    def __post_init__(self):
        if self.step is not None:
            check_positive("step", self.step)

    def run(self, problem, tau, starts):
        part = smooth_part(problem)
        if self.step is None:
            step = SHARE / largest_curvature(part, tau, starts)
        else:
            step = starts.new_full((len(starts), 1, 1), self.step)
        walk = _Walk(problem, part, tau, starts, step)
        once = captured(walk.accelerated if self.accelerated else walk.plain, starts.device)
        for _ in range(self.steps):
            once()
        return walk.x


class _Walk:
    """Where every start has come to; a step changes it in place."""

    def __init__(self, problem: Problem, part: Problem, tau: Batch, starts: Tensor, step: Tensor):
        self.problem, self.part, self.tau, self.step = problem, part, tau, step
        self.x, self.before = starts.clone(), starts.clone()
        self.age = torch.ones_like(starts[..., :1])  # Nesterov's t
        self.value = problem.objective(starts, tau)

    def plain(self) -> None:
        self.x.copy_(self._forward_backward(self.x))

    def accelerated(self) -> None:
        older = (1 + (1 + 4 * self.age.square()).sqrt()) / 2
        ahead = self.x + (self.age - 1) / older * (self.x - self.before)
        new = self._forward_backward(ahead)
        value = self.problem.objective(new, self.tau)
        lower = (value <= self.value)[..., None]
        self.before.copy_(self.x)
        self.x.copy_(torch.where(lower, new, self.x))
        self.value.copy_(torch.minimum(value, self.value))
        self.age.copy_(torch.where(lower, older, 1.0))

    def _forward_backward(self, x: Float[Tensor, "i n d"]) -> Float[Tensor, "i n d"]:
        _, slope = gradient(self.part, x, self.tau)
        moved = self.problem.prox(x - self.step * slope, self.tau, self.step)
        return self.problem.space.retract(moved)


def smooth_part(problem: Problem) -> Problem:
    """The problem with only the smooth part for an objective."""
    part = copy.copy(problem)
    part.objective = problem.smooth
    return part


def largest_curvature(
    part: Problem, tau: Batch, starts: Float[Tensor, "i n d"]
) -> Float[Tensor, "i 1 1"]:
    """The largest of the smooth part's Hessians at a few points of the space: where it is a
    quadratic, the Lipschitz constant of its gradient."""
    drawn = part.space.sample(len(starts), LOOKED_AT, generator=generator_for(0, "curvature"))
    _, most = extreme_curvatures(part, drawn.to(starts), tau)
    return most.amax(1)[:, None, None]
