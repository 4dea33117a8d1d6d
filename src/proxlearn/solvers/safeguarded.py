"""The iterated operator with the objective at hand: no step is taken that does not pay.

An application is taken where it lowers the proximal objective, `f(y) + lam/2 |y - x|^2 < f(x)`, and
twice as far where that pays too and leads lower (a relaxed proximal step). Where it does not pay,
or hardly, the best of some short steps down the gradient may lead lower; a point that neither moves
has arrived, and costs nothing more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.calculus.derivatives import gradient
from proxlearn.common.batch import Batch
from proxlearn.common.precision import products_in
from proxlearn.common.splitting import pieces
from proxlearn.errors import InputError
from proxlearn.networks.base import Prepared
from proxlearn.operators.bound import Bound, points_at_once
from proxlearn.operators.operator import Operator
from proxlearn.operators.stopping import until_arrived
from proxlearn.problems.base import Problem
from proxlearn.solvers.base import Learned

TRIES, SHORTER = 8, 3  # lengths of the short step, each so many times shorter than the one before
LONGEST = 0.05  # of them, a share of the diameter
WORTH = 1e-6  # a step has to lower the value by this share of what there is between best and median
PLENTY = 1e4  # times as much, and no other step is tried


@dataclass(frozen=True)
class Safeguarded(Learned):
    """Apply a trained operator, by default the one shipped, until every point has arrived."""

    steps: int = 100  # at most
    lam: float | Sequence[float] | None = None

    def apply(self, bound, starts):
        found, used = safeguarded(bound, starts, self.steps, self.lam)
        return Solutions.of(bound.space, found, starts, used)


@torch.no_grad()
def safeguarded(
    bound: Bound,
    x: Float[Tensor, "i n d"],
    steps: int,
    lam: float | Sequence[float] | None = None,
) -> tuple[Float[Tensor, "i n d"], Int[Tensor, "i n"]]:
    """Where every point ends, and how many applications it used; some points at a time."""
    operator, problem, tau = bound.operator, bound.problem, bound.tau
    if problem is None or tau is None:
        raise InputError(
            "The method 'safeguarded' looks at the objective, which knows more of a tau than the "
            "operator sees: give whole instances, or use the method 'operator'."
        )
    schedule = [each for each, count in operator.schedule(lam, steps) for _ in range(count)]
    most = points_at_once(x)
    found, used = x.clone(), torch.zeros(x.shape[:2], dtype=torch.int32, device=x.device)
    values = torch.empty_like(x[..., 0])
    for rows, columns, some, piece in pieces(tau, x, most):
        values[rows, columns] = problem.objective(piece, some).nan_to_num(torch.inf, torch.inf)
    usual = (values.median(1).values - values.amin(1)).nan_to_num(0.0, 0.0)
    least = WORTH * usual[:, None]
    for rows, columns, some, piece in pieces(tau, x, most):
        walk = _Walk(operator, problem, some, least[rows])
        with products_in(operator.precision):
            found[rows, columns], used[rows, columns] = walk.follow(
                piece, values[rows, columns], schedule
            )
    return found, used


@dataclass(frozen=True)
class _Walk:
    """Points of some instances on their way; `least` (i 1) is what a step has to gain."""

    operator: Operator
    problem: Problem
    tau: Batch
    least: Float[Tensor, "i 1"]

    def follow(
        self, x: Float[Tensor, "i n d"], values: Float[Tensor, "i n"], schedule: list[float]
    ) -> tuple[Float[Tensor, "i n d"], Int[Tensor, "i n"]]:
        """Where the points end, and after how many applications, with a lam for each of these."""
        observed = self.problem.observe(self.tau)
        code, scale = self.operator.encode(observed), self.operator.network.lam_scale(observed)
        prepare = lru_cache(maxsize=1)(partial(self.operator.prepare, code))
        lams, found = iter(schedule), x.clone()

        def step(at: Tensor, value: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
            lam = next(lams)
            new, lower = self.step(at, value, prepare(lam), lam * scale[:, None])
            return (new, lower), lower < value - self.least

        used, _ = until_arrived((found, values.clone()), len(schedule), step)
        return found, used

    def step(
        self,
        x: Float[Tensor, "i n d"],
        value: Float[Tensor, "i n"],
        prepared: Prepared,
        lam: Float[Tensor, "i 1"],
    ) -> tuple[Float[Tensor, "i n d"], Float[Tensor, "i n"]]:
        """The operator's step where it pays plenty, else the better of it and a short one down the
        gradient: points and values."""
        new = self.operator(x, prepared, self.problem.space)
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

    def pays(
        self,
        x: Float[Tensor, "i n d"],
        value: Float[Tensor, "i n"],
        y: Tensor,
        lam: Float[Tensor, "i 1"],
    ) -> tuple[Bool[Tensor, "i n"], Float[Tensor, "i n"]]:
        """Whether going from x to y lowers the proximal objective, and the value there."""
        space, there = self.problem.space, self.problem.objective(y, self.tau)
        pull = lam / 2 * space.squared_distance(x, y)
        return (there + pull < value - self.least) & space.contains(y), there

    def short_step(
        self, x: Float[Tensor, "i n d"], value: Float[Tensor, "i n"], lam: Float[Tensor, "i 1"]
    ) -> tuple[Float[Tensor, "i n d"], Float[Tensor, "i n"]]:
        """The lowest of 1, 1/3, 1/9, ... of the step -gradient/lam, cut short; x where none leads
        lower."""
        space, (_, slope) = self.problem.space, gradient(self.problem, x, self.tau)
        longest = LONGEST * space.diameter
        step = -slope / lam.clamp(min=torch.finfo(lam.dtype).tiny)[..., None]
        step = step * (longest / step.norm(dim=-1, keepdim=True).clamp(min=longest))
        best, lowest = x, value
        for _ in range(TRIES):
            trial = space.project(x + step)
            there = self.problem.objective(trial, self.tau)
            best = torch.where((there < lowest)[..., None], trial, best)
            lowest = torch.where(there < lowest, there, lowest)
            step = step / SHORTER
        return best, lowest
