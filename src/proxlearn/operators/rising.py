"""Applying an operator whose network rates points until their ratings stop rising."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from proxlearn.calculus.loop import Method
from proxlearn.common.batch import Batch, Points, Values
from proxlearn.operators.applying import points_at_once
from proxlearn.operators.cores import on_cores
from proxlearn.spaces import Space

if TYPE_CHECKING:
    from proxlearn.operators.operator import Operator

RISE = 0.01  # of the quality: less does not count as a rise
PATIENCE = 4  # applications without a rise after which a point stops


@dataclass(frozen=True)
class Rising(Method):
    """Like `Arriving`, but nothing needs to be taught: the network itself says how good a point is,
    and that rises until the point is where it belongs."""

    operator: "Operator"
    space: Space
    lam: float | None = None

    def prepare(self, problem, tau, starts):
        """A function of points: where they go next, and how good they are."""
        operator = self.operator
        known = operator.prepare(operator.encode(tau), self.lam)

        def judged(x: Points, known: Batch) -> tuple[Points, Values]:
            y, rating = operator.rated_step(x, known, self.space)
            assert rating is not None
            return y, rating.sigmoid()

        return lambda x: on_cores(judged, x, known, operator.network.widest(x.shape[-1]))

    def init(self, prepared, x):
        y, quality = prepared(x)
        return OnTheRise(x, quality, y, torch.zeros_like(quality))

    def one_step(self, prepared, state):
        best, quality, x, waited = state
        y, new = prepared(x)
        rose = new > quality + RISE
        best = torch.where((new > quality - RISE)[..., None], x, best)
        waited = torch.where(rose, 0, waited + 1)
        return OnTheRise(best, torch.where(rose, new, quality), y, waited)

    def moving(self, state):
        return state.waited < PATIENCE

    def found(self, prepared, state):
        return state.best

    def rated(self, prepared, x):
        return prepared(x)[1]

    def at_once(self, x):
        return points_at_once(x)


class OnTheRise(NamedTuple):
    """Points that are at x, and whose quality rose for the last time `waited` applications ago. The
    best place is the latest that is about as good: points of one object are nearest there."""

    best: Points
    quality: Values  # after the last rise
    x: Points
    waited: Tensor
