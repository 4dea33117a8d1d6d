"""A learned particle swarm (Cao et al. 2019): starts are moved in populations of four."""

from dataclasses import dataclass, replace

import torch

from proxlearn.errors import InputError
from proxlearn.problems.base import Problem
from proxlearn.solvers.base import Solver
from proxlearn.solvers.swarm.network import STEPS, Swarm, learn_swarm


@dataclass(frozen=True)
class Swarming(Solver):
    """Move a trained swarm; where none is given, one is trained for the problem first."""

    swarm: Swarm | None = None
    steps: int = 100
    training: int = STEPS  # steps of that training

    def __post_init__(self):
        if not isinstance(self.swarm, Swarm | None):
            raise InputError(
                f"swarm must be one that learn_swarm or load_swarm gave, not {self.swarm!r}."
            )

    def ready(self, problem, device):
        return replace(self, swarm=self.fitting(problem, device))

    def fitting(self, problem: Problem, device: torch.device) -> Swarm:
        """The swarm, on the device and seen to be of the problem."""
        swarm = self.swarm or learn_swarm(problem, steps=self.training, device=str(device))
        swarm.check_fits(problem)
        return swarm.to(device)

    def run(self, problem, tau, starts):
        return self.fitting(problem, starts.device).run(problem, tau, starts, self.steps)
