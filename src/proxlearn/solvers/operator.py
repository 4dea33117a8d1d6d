"""The iterated operator: the method this library is about."""

from collections.abc import Sequence
from dataclasses import dataclass

from proxlearn.solvers.base import Learned


@dataclass(frozen=True)
class Iterated(Learned):
    """Apply a trained operator; by default the one shipped for the problem."""

    steps: int | None = None
    lam: float | Sequence[float] | None = None

    def apply(self, bound, starts):
        return bound.run(starts, self.steps, self.lam)
