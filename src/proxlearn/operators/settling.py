"""Applications until points stay where they are, by an operator that keeps points where it leads
them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from proxlearn.calculus.loop import Method
from proxlearn.common.batch import Points, Values
from proxlearn.operators.applying import points_at_once
from proxlearn.spaces import Space

if TYPE_CHECKING:
    from proxlearn.operators.operator import Operator

SETTLED = 1e-4  # of the space's diameter: a point that goes no further has arrived


@dataclass(frozen=True)
class Settling(Method):
    """Beside `Arriving`, which needs to be taught: here the length of its last step says whether a
    point goes on, since a network that `settles` makes none at the optima that it leads to."""

    operator: "Operator"
    space: Space
    lam: float | None = None

    def prepare(self, problem, tau, starts):
        return self.operator.prepare(self.operator.encode(tau), self.lam)

    def init(self, prepared, x):
        return OnItsWay(x, torch.full_like(x[..., 0], torch.inf))

    def one_step(self, prepared, state):
        y = self.operator.repeated(state.x, prepared, steps=1, space=self.space)
        return OnItsWay(y, self.space.squared_distance(state.x, y))

    def moving(self, state):
        return state.squared_step > (SETTLED * self.space.diameter) ** 2

    def at_once(self, x):
        return points_at_once(x)


class OnItsWay(NamedTuple):
    """Points that are at x, and how far the last application took them."""

    x: Points
    squared_step: Values
