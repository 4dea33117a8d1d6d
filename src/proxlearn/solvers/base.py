"""Solvers: anything that takes starts to solutions. A file here is a method of `px.solve`: it holds
one `Solver` subclass, a frozen value whose fields are the method's settings.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.common.batch import Batch
from proxlearn.common.checks import check_steps
from proxlearn.common.registry import Registry
from proxlearn.errors import InputError, UnknownNameError
from proxlearn.operators.bound import Bound
from proxlearn.operators.operator import Operator
from proxlearn.operators.shipped import pretrained
from proxlearn.problems.base import Problem


class Solver(ABC):
    """A method with its settings."""

    @abstractmethod
    def run(
        self, problem: Problem, tau: Batch, starts: Float[Tensor, "i n d"]
    ) -> Float[Tensor, "i n d"]:
        """Take every start to a solution."""

    def solutions(self, problem: Problem, tau: Batch, starts: Float[Tensor, "i n d"]) -> Solutions:
        """The same, with what else there is to say of them; values are computed after."""
        return Solutions.of(problem.space, self.run(problem, tau, starts), starts)

    def ready(self, problem: Problem, device: torch.device) -> "Solver":
        """The same with all that it needs, loaded or trained once for however many runs."""
        return self


@dataclass(frozen=True)
class Learned(Solver):
    """A method that applies a trained operator, by default the one shipped for the problem."""

    operator: Operator | None = None

    @abstractmethod
    def apply(self, bound: Bound, starts: Float[Tensor, "i n d"]) -> Solutions:
        """Take every start to a solution, by an operator that is bound to its instances."""

    def solutions(self, problem, tau, starts):
        operator = self.fitting(problem, starts.device)
        return self.apply(operator.bound(problem, tau), starts)

    def run(self, problem, tau, starts):
        return self.solutions(problem, tau, starts).points

    def ready(self, problem, device):
        return replace(self, operator=self.fitting(problem, device))

    def fitting(self, problem: Problem, device: torch.device) -> Operator:
        """The operator, on the device and seen to be of the problem."""
        operator = (self.operator or pretrained(problem.name)).to(device)
        operator.check_fits(problem)
        return operator


solvers = Registry("method", "proxlearn.solvers", Solver, shared=("solve",))


def solver(method: str, **settings: Any) -> Solver:
    """A method by name."""
    kind = solvers[method]
    known = [field.name for field in fields(kind)]  # pyright: ignore[reportArgumentType]
    for name in settings:
        if name not in known:
            raise UnknownNameError(f"setting of the method {method!r}", name, known)
    given = settings.get("operator")
    if given is not None and not isinstance(given, Operator):
        raise InputError(f"operator= must be a trained operator, px.load(path), not {given!r}.")
    if settings.get("steps") is None:
        settings.pop("steps", None)  # the method's own number
    else:
        check_steps(settings["steps"])
    return kind(**settings)
