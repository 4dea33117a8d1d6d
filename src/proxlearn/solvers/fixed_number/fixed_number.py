"""A fixed number of points, named by a network that looks at tau (the paper's FN)."""

from dataclasses import dataclass, replace

import torch

from proxlearn.answers.solutions import Solutions
from proxlearn.errors import InputError
from proxlearn.problems.base import Problem
from proxlearn.solvers.base import Solver
from proxlearn.solvers.fixed_number.learn import STEPS, learn_fixed_number
from proxlearn.solvers.fixed_number.network import FixedNumber


@dataclass(frozen=True)
class Naming(Solver):
    """Apply a trained network once; where none is given, one is trained for the problem first.
    There are as many solutions as it gives, however many starts there are."""

    network: FixedNumber | None = None
    training: int = STEPS  # steps of that training
    independent = False

    def __post_init__(self):
        if not isinstance(self.network, FixedNumber | None):
            raise InputError(
                "network must be one that learn_fixed_number or load_fixed_number gave, not "
                f"{self.network!r}."
            )

    def refuses(self, problem):
        if type(problem).known is not Problem.known:
            return None
        return (
            "The method 'fixed_number' learns from solutions that a problem knows, and "
            f"{problem.name!r} knows none: use lbfgs or descent."
        )

    def ready(self, problem, device):
        network = self.network or learn_fixed_number(
            problem, steps=self.training, device=str(device)
        )
        network.check_fits(problem)
        return replace(self, network=network.to(device))

    def run(self, problem, tau, starts):
        return self.solutions(problem, tau, starts).points

    def solutions(self, problem, tau, starts):
        network = self.ready(problem, torch.device(starts.device)).network
        assert network is not None
        found: Solutions = network.solutions(problem.observe(tau))
        return replace(found, space=problem.space)
