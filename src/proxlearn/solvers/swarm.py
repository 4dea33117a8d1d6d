"""A learned particle swarm (Cao et al. 2019): starts are moved in populations of four."""

from dataclasses import dataclass, replace

from proxlearn.solvers import Solver
from proxlearn.swarm import STEPS, Swarm, learn_swarm


@dataclass(frozen=True)
class Swarming(Solver):
    """Move a trained swarm; where none is given, one is trained for the problem first."""

    swarm: Swarm | None = None
    steps: int = 100
    training: int = STEPS  # steps of that training

    def ready(self, problem, device):
        swarm = self.swarm or learn_swarm(problem, steps=self.training, device=str(device))
        swarm.check_fits(problem)
        return replace(self, swarm=swarm.to(device))

    def run(self, problem, tau, starts):
        swarm = self.ready(problem, starts.device).swarm
        return swarm.run(problem, tau, starts, self.steps)
