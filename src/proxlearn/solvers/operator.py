"""The iterated operator: the method this library is about."""

from collections.abc import Sequence
from dataclasses import dataclass

from proxlearn.operator import Operator
from proxlearn.pretrained import pretrained
from proxlearn.solvers import Solver


@dataclass(frozen=True)
class Iterated(Solver):
    """Apply a trained operator; by default the one shipped for the problem."""

    operator: Operator | None = None
    steps: int | None = None
    lam: float | Sequence[float] | None = None

    def knows(self, problem, tau):
        operator = self.operator or pretrained(problem.name)
        return operator.encoder.knows(problem.observe(tau))

    def run(self, problem, tau, starts):
        operator = (self.operator or pretrained(problem.name)).to(starts.device)
        operator.check_fits(problem)
        steps = operator.applications if self.steps is None else self.steps
        return operator.iterate(problem.observe(tau), starts, steps, self.lam)
