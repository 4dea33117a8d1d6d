"""Operators with weights just drawn, for tests."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

import proxlearn as px
from proxlearn.instances import Instances
from proxlearn.networks.coupling import Coupling


def problem_over(space: px.Space, instances: Instances) -> px.Problem:
    """A problem without an objective."""
    problem = px.Problem()
    problem.space, problem.instances = space, instances
    return problem


def untrained(
    space: px.Space, instances: Instances, architecture: Any, lam: float = 1.0, **more: Any
) -> px.Operator:
    """An operator that knows no problem."""
    operator = px.Operator.untrained(problem_over(space, instances), architecture, lam, **more)
    operator.problem = None
    return operator


class Fixed(px.Operator):
    """An operator whose application is a given function of x."""

    def step(self, x, prepared, space=None, precision=None):
        return self.apply_to(x)


def fixed(problem: px.Problem, apply: Callable[[Tensor], Tensor], lam: float = 1.0) -> px.Operator:
    """An operator of a problem that applies a function."""
    operator = Fixed.untrained(problem, Coupling(blocks=1, width=8, shared=8), lam)
    operator.apply_to = apply
    return operator
