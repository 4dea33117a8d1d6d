"""The iterated operator with the objective at hand: a step is taken only if it pays.

An application pays if it lowers the proximal objective, `f(y) + lam/2 |y - x|^2 < f(x)`; twice as
long a step is taken where that pays too and leads lower (a relaxed proximal step). Where it pays
little or not at all, the best of some short steps down the gradient is tried, too. A point that no
step moves has arrived, and costs nothing more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.calculus.derivatives import gradient
from proxlearn.calculus.loop import Method
from proxlearn.common.batch import Batch, Flags, Points, Values, pieces
from proxlearn.errors import InputError
from proxlearn.networks.base import Prepared
from proxlearn.operators.applying import Lam, points_at_once
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import Problem
from proxlearn.problems.objectives import values_of
from proxlearn.solvers.base import Learned, needs_whole

TRIES, SHORTER = 8, 3  # lengths of the short step, each so many times shorter than the one before
LONGEST = 0.05  # of them, a share of the diameter
WORTH = 1e-6  # a step has to lower the value by this share of what there is between best and median
PLENTY = 1e4  # times `WORTH`: an application that gains more is taken without a look at others

PerInstance = Float[Tensor, "i 1"]


@dataclass(frozen=True)
class Safeguarded(Learned):
    """Apply a trained operator, by default the one shipped, until every point has arrived."""

    steps: int = 100  # at most
    lam: Lam = None

    def along(self, bound, starts, at):
        if bound.problem is None or bound.tau is None:
            raise InputError(needs_whole("safeguarded", bound.problem))
        lams = bound.operator.lam_of_each(self.lam, max(at))
        return bound.follow(Guarding(bound.operator, lams), bound.tau, starts, at)


class Guarded(NamedTuple):
    """Where points are, the values there, which of them go on, and after how many steps."""

    x: Points
    value: Values
    goes: Flags
    done: int


@dataclass(frozen=True)
class Guarding(Method):
    """The method of the loop; it looks at the objective at every step."""

    operator: Operator
    lams: Sequence[float]  # of every step

    def prepare(self, problem, tau, starts):
        operator, observed = self.operator, problem.observe(tau)
        values = torch.empty_like(starts[..., 0])
        for rows, columns, some, x in pieces(tau, starts, self.at_once(starts)):
            values[rows, columns] = values_of(problem, x, some).nan_to_num(torch.inf, torch.inf)
        usual = (values.median(1).values - values.amin(1)).nan_to_num(0.0, 0.0)
        prepare = lru_cache(maxsize=1)(partial(operator.prepare, operator.encode(observed)))
        scale = operator.network.lam_scale(observed)
        return _Ground(operator, problem, tau, prepare, scale[:, None], WORTH * usual[:, None])

    def init(self, prepared, x):
        value = values_of(prepared.problem, x, prepared.tau).nan_to_num(torch.inf, torch.inf)
        return Guarded(x, value, torch.ones_like(value, dtype=torch.bool), 0)

    def one_step(self, prepared, state):
        x, value, _, done = state
        new, lower = prepared.step(x, value, self.lams[done])
        return Guarded(new, lower, lower < value - prepared.least, done + 1)

    def moving(self, state):
        return state.goes

    def at_once(self, x):
        return points_at_once(x)


@dataclass(frozen=True)
class _Ground:
    """What steps on some instances need: the `scale` of lam, the `least` that a step must gain."""

    operator: Operator
    problem: Problem
    tau: Batch
    prepare: Callable[[float], Prepared]
    scale: PerInstance
    least: PerInstance

    def step(self, x: Points, value: Values, usual_lam: float) -> tuple[Points, Values]:
        """The operator's step where it pays plenty, else the better of it and a short one down the
        gradient: points and values."""
        new = self.operator.step(x, self.prepare(usual_lam), self.problem.space)
        lam = usual_lam * self.scale
        pays, lower = self.pays(x, value, new, lam)
        twice = self.problem.space.retract(2 * new - x)
        pays_too, still_lower = self.pays(x, value, twice, lam)
        farther = pays & pays_too & (still_lower < lower)
        new = torch.where(farther[..., None], twice, new)
        lower = torch.where(farther, still_lower, lower)
        plenty = pays & (value - lower > PLENTY * self.least)
        if plenty.all():
            return new, lower
        short, short_value = self.short_step(x, value, lam)
        takes = plenty | (pays & (lower <= short_value))
        return torch.where(takes[..., None], new, short), torch.where(takes, lower, short_value)

    def pays(self, x: Points, value: Values, y: Points, lam: PerInstance) -> tuple[Flags, Values]:
        """Whether going from x to y lowers the proximal objective, and the value there."""
        space, there = self.problem.space, values_of(self.problem, y, self.tau)
        pull = lam / 2 * space.squared_distance(x, y)
        return (there + pull < value - self.least) & space.contains(y), there

    def short_step(self, x: Points, value: Values, lam: PerInstance) -> tuple[Points, Values]:
        """The lowest of 1, 1/3, ... of the step -gradient/lam, cut short; x where none is lower."""
        space, (_, slope) = self.problem.space, gradient(self.problem, x, self.tau)
        longest = LONGEST * space.diameter
        step = -slope / lam.clamp(min=torch.finfo(lam.dtype).tiny)[..., None]
        step = step * (longest / step.norm(dim=-1, keepdim=True).clamp(min=longest))
        best, lowest = x, value
        for _ in range(TRIES):
            trial = space.project(x + step)
            there = values_of(self.problem, trial, self.tau)
            best = torch.where((there < lowest)[..., None], trial, best)
            lowest = torch.where(there < lowest, there, lowest)
            step = step / SHORTER
        return best, lowest
