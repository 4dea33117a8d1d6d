"""Solvers: anything that takes starts to solutions. A file here is a method of `px.solve`: it holds
one `Solver`, a frozen value whose fields are the method's settings. One that goes step by step is
`Stepwise`; others take every start to its end in one go."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.calculus.loop import Loop, Method
from proxlearn.common.batch import Batch, Points
from proxlearn.common.checks import check_fields, steps_of
from proxlearn.common.registry import Registry
from proxlearn.errors import InputError, UnknownNameError
from proxlearn.operators.bound_operator import Bound
from proxlearn.operators.operator import Operator, check_operator
from proxlearn.operators.shipped import available, pretrained
from proxlearn.problems.base import Problem


class Solver(ABC):
    """A method with its settings."""

    independent: ClassVar[bool] = True  # whether a start's solution depends on that start alone

    @abstractmethod
    def run(self, problem: Problem, tau: Batch, starts: Points) -> Points:
        """Take every start to a solution."""

    def solutions(self, problem: Problem, tau: Batch, starts: Points) -> Solutions:
        """Take every start to a solution, with what else is known of them; values come later."""
        return Solutions.of(problem.space, self.run(problem, tau, starts), starts)

    def curve(
        self, problem: Problem, tau: Batch, starts: Points, at: Sequence[int]
    ) -> list[Solutions]:
        """What there is after each of several numbers of steps, ascending, in one pass."""
        raise InputError(
            f"{type(self).__name__} solves in one go and cannot be read along the way: use a "
            "method that goes step by step, such as descent."
        )

    def ready(self, problem: Problem, device: torch.device) -> "Solver":
        """The same solver with all that it needs, loaded or trained once for many runs."""
        return self

    def refuses(self, problem: Problem) -> str | None:
        """Why this method cannot solve a problem and what to do, a sentence; None where it can."""
        return None


class Stepwise(Solver, Method):
    """A method that goes step by step, `steps` of them unless a curve is asked for."""

    steps: int

    def run(self, problem, tau, starts):
        return self.solutions(problem, tau, starts).points

    def solutions(self, problem, tau, starts):
        return self.curve(problem, tau, starts, (self.steps,))[0]

    def curve(self, problem, tau, starts, at):
        every = Loop(self, problem, tau, starts).curve(at)
        return [Solutions.of(problem.space, each.x, starts, each.steps) for each in every]


@dataclass(frozen=True)
class Learned(Solver):
    """A method that applies a trained operator, by default the one shipped for the problem."""

    operator: Operator | None = None
    steps: Any = None  # applications

    @abstractmethod
    def along(self, bound: Bound, starts: Points, at: Sequence[int]) -> list[Solutions]:
        """Where a bound operator takes the starts, after each of `at` applications."""

    def apply(self, bound: Bound, starts: Points) -> Solutions:
        """Take every start to a solution."""
        return self.along(bound, starts, (self.steps,))[0]

    def run(self, problem, tau, starts):
        return self.solutions(problem, tau, starts).points

    def solutions(self, problem, tau, starts):
        return self.apply(self._bound(problem, tau, starts), starts)

    def curve(self, problem, tau, starts, at):
        return self.along(self._bound(problem, tau, starts), starts, at)

    def _bound(self, problem: Problem, tau: Batch, starts: Tensor) -> Bound:
        return self.fitting(problem, starts.device).bound(problem, tau)

    def ready(self, problem, device):
        return replace(self, operator=self.fitting(problem, device))

    def refuses(self, problem):
        if self.operator is not None or problem.name in available():
            return None
        return (
            "This method needs an operator, and there is no shipped operator for "
            f"{problem.name!r}: train one, px.learn(problem), and pass it as operator=; for a "
            "built-in problem, `proxlearn bring` takes a file of one."
        )

    def fitting(self, problem: Problem, device: torch.device) -> Operator:
        """The operator, on the device and checked to fit the problem."""
        operator = (self.operator or pretrained(problem.name)).to(device)
        operator.check_fits(problem)
        return operator


def needs_whole(method: str, problem: Problem | None) -> str:
    """What to do where a method needs the objective and only what an operator sees is given."""
    own = "" if problem is None else f" of {problem.name!r}"
    given = "what is given" if problem is None else problem.instances.words
    return (
        f"The method {method!r} needs the objective{own}, which takes more than {given}: give "
        "whole instances, as problem.sample draws them (--tau left out), or use the method "
        "'operator' with an operator trained for it (px.learn, proxlearn train)."
    )


solvers = Registry("method", "proxlearn.solvers", Solver, shared=("solve",))


def solver(method: str, problem: Problem | None = None, **settings: Any) -> Solver:
    """A method by its name, with its settings; an error says why if it cannot solve the problem."""
    kind = solvers[method]
    known = [field.name for field in fields(kind)]  # pyright: ignore[reportArgumentType]
    for name in settings:
        if name not in known:
            raise UnknownNameError(f"setting of the method {method!r}", name, known)
    if settings.get("operator") is not None:
        check_operator(settings["operator"])
    if settings.get("steps") is None:
        settings.pop("steps", None)  # the method's own number
    else:
        settings["steps"] = steps_of(settings["steps"])
    chosen = kind(**settings)
    check_fields(chosen)
    if problem and (reason := chosen.refuses(problem)):
        raise InputError(reason)
    return chosen
