"""The iterated operator where it knows when a point has arrived: no objective, no fixed number of
applications."""

from dataclasses import dataclass

from proxlearn.solvers import Learned


@dataclass(frozen=True)
class Arriving(Learned):
    """Apply a trained operator, by default the one shipped, until every point has arrived."""

    steps: int = 100  # at most
    lam: float | None = None

    def run(self, problem, tau, starts):
        return self.counted(problem, tau, starts)[0]

    def counted(self, problem, tau, starts):
        operator = self.fitting(problem, starts.device)
        found = operator.arrive(problem.observe(tau), starts, self.steps, self.lam)
        return found.points, found.applications
