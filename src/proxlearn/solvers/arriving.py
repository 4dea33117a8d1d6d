"""The iterated operator, until points have arrived: no objective, no set number of applications."""

from dataclasses import dataclass

from proxlearn.solvers.base import Learned


@dataclass(frozen=True)
class Arriving(Learned):
    """Apply a trained operator, by default the one shipped, until every point has arrived."""

    steps: int = 100  # at most
    lam: float | None = None

    def along(self, bound, starts, at):
        return bound.arrive(starts, at, self.lam)
