"""The iterated operator: the method this library is about."""

from dataclasses import dataclass

from proxlearn.operators.applying import Lam
from proxlearn.solvers.base import Learned


@dataclass(frozen=True)
class Iterated(Learned):
    """Apply a trained operator; by default the one shipped for the problem."""

    steps: int | None = None
    lam: Lam = None

    def apply(self, bound, starts):
        return bound.run(starts, self.steps, self.lam)

    def along(self, bound, starts, at):
        return bound.apply(starts, at, self.lam)
