"""The iterated operator: the method this library is about."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from proxlearn.solvers import Learned


@dataclass(frozen=True)
class Iterated(Learned):
    """Apply a trained operator; by default the one shipped for the problem."""

    steps: int | None = None
    lam: float | Sequence[float] | None = None

    def run(self, problem, tau, starts):
        return self.counted(problem, tau, starts)[0]

    def counted(self, problem, tau, starts):
        operator = self.fitting(problem, starts.device)
        steps = operator.applications if self.steps is None else self.steps
        found = operator.iterate(problem.observe(tau), starts, steps, self.lam)
        return found, torch.full_like(found[..., 0], steps, dtype=torch.int32)
