"""Particle descent (paper, section 4): every start follows the gradient on its own."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim.adam import adam

from proxlearn.calculus.derivatives import held_back
from proxlearn.common.batch import Batch, Points
from proxlearn.common.checks import positive
from proxlearn.gpu.capture import compiled
from proxlearn.problems.objectives import values_of
from proxlearn.solvers.base import Stepwise

LONG = 30_000  # steps on a GPU from which it pays to compile the objective
ADAM = {"amsgrad": False, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0}


class State(NamedTuple):
    """Where the points are, and Adam's two running means and the number of steps."""

    x: Points
    slope: Points
    square: Points
    taken: Float[Tensor, ""]


@dataclass(frozen=True)
class Descent(Stepwise):
    """Projected gradient descent, with Adam's step sizes unless `adam` is False.

    Where the objective has kinks, a constant rate keeps points jumping to and fro across them:
    `falling` lets it fall to 0 along a cosine, over all `steps` (of a curve, over the longest)."""

    steps: int = 4000
    rate: float | None = None  # None: 5e-4 of the space's diameter
    adam: bool = True
    falling: bool = False
    captures = True

    def __post_init__(self):
        if self.rate is not None:
            positive("rate", self.rate)

    def prepare(self, problem, tau, starts):
        space = problem.space

        def total(x: Tensor, tau: Batch) -> Tensor:
            return values_of(problem, space.retract(x), tau).sum()

        long = starts.is_cuda and self.steps >= LONG
        rate = 5e-4 * space.diameter if self.rate is None else self.rate
        return compiled(total) if long else total, tau, space, rate

    def init(self, prepared, x):
        return State(x, torch.zeros_like(x), torch.zeros_like(x), torch.zeros((), device=x.device))

    def one_step(self, prepared, state):
        total, tau, space, rate = prepared
        if self.falling:
            rate = self._fallen(rate, state.taken)
        with torch.enable_grad():
            x = state.x.detach().requires_grad_()
            (slope,) = torch.autograd.grad(total(x, tau), x)
        if space.closed:  # a slope into an edge would make Adam's steps short ever after
            slope = slope.masked_fill(held_back(space, state.x, slope), 0.0)
        slope = slope.contiguous()  # the fused optimizer reads it number by number
        if self.adam:
            moments = [slope], [state.slope], [state.square], [], [state.taken]
            adam([state.x], *moments, fused=True, lr=rate, maximize=False, **ADAM)
        else:
            state.x.sub_(rate * slope)
            state.taken.add_(1)
        return state._replace(x=space.retract(state.x).contiguous())

    def _fallen(self, rate: float, taken: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """The rate after so many steps, computed on the device so that no step waits for it."""
        spent = (taken / max(1, self.steps)).clamp(max=1.0)
        return 0.5 * rate * (1 + (math.pi * spent).cos())
