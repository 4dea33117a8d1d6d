"""A learned particle swarm (Cao et al. 2019): starts are moved in populations of four."""

from dataclasses import dataclass, replace

import torch

from proxlearn.answers.solutions import Solutions
from proxlearn.calculus.derivatives import gradient
from proxlearn.errors import InputError
from proxlearn.problems.objectives import values_of
from proxlearn.solvers.base import Stepwise
from proxlearn.solvers.swarm.learn import STEPS, learn_swarm
from proxlearn.solvers.swarm.network import POPULATION, Swarm, best_so_far

MAX_POINTS = 1 << 16  # moved at once, a multiple of the population


@dataclass(frozen=True)
class Swarming(Stepwise):
    """Move a trained swarm; where none is given, one is trained for the problem first. A solution
    is the best place inside the space that a particle came to."""

    swarm: Swarm | None = None
    steps: int = 100
    training: int = STEPS  # steps of that training

    def __post_init__(self):
        if not isinstance(self.swarm, Swarm | None):
            raise InputError(
                f"swarm must be one that learn_swarm or load_swarm gave, not {self.swarm!r}."
            )

    def ready(self, problem, device):
        swarm = self.swarm or learn_swarm(problem, steps=self.training, device=str(device))
        swarm.check_fits(problem)
        swarm.space = problem.space  # which knows whether its bounds bind
        return replace(self, swarm=swarm.to(device))

    def curve(self, problem, tau, starts, at):
        """The number of starts is filled up to a multiple of four by the first of them."""
        count = starts.shape[1]
        places = torch.arange(count + -count % POPULATION, device=starts.device) % count
        ready = self.ready(problem, starts.device)
        every = super(Swarming, ready).curve(problem, tau, starts[:, places], at)
        return [Solutions.of(problem.space, each.points[:, :count], starts) for each in every]

    def prepare(self, problem, tau, starts):
        return problem, tau, self.swarm

    def init(self, prepared, x):
        return prepared[-1].begin(x)

    def one_step(self, prepared, state):
        problem, tau, swarm = prepared
        return swarm(state, *gradient(problem, state.x, tau))

    def found(self, prepared, state):
        problem, tau, _ = prepared
        return best_so_far(problem.space, state, values_of(problem, state.x, tau))[0]

    def at_once(self, x):
        return MAX_POINTS
