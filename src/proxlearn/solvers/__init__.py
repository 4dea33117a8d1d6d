"""Solvers: anything that takes starts to solutions. A file here is a method of `px.solve`: it holds
one `Solver` subclass, a frozen value whose fields are the method's settings.
"""

import importlib
import pkgutil
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.batch import Batch, move, select, size
from proxlearn.errors import InputError, UnknownNameError
from proxlearn.missed import LEVEL, solve_until, wants_auto
from proxlearn.operator import Operator, check_steps, pick_device, starting_points
from proxlearn.pretrained import pretrained
from proxlearn.problem import Problem, check_objective
from proxlearn.solutions import Solutions


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

    def run(self, problem, tau, starts):
        return self.solutions(problem, tau, starts).points

    def ready(self, problem, device):
        return replace(self, operator=self.fitting(problem, device))

    def fitting(self, problem: Problem, device: torch.device) -> Operator:
        """The operator, on the device and seen to be of the problem."""
        operator = (self.operator or pretrained(problem.name)).to(device)
        operator.check_fits(problem)
        same = operator.space == problem.space
        return operator if same else operator.over(problem.space, problem)


def names() -> list[str]:
    """The names of the methods."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def solver(method: str, **settings: Any) -> Solver:
    """A method by name."""
    if method not in names():
        raise UnknownNameError("method", method, names())
    module = importlib.import_module(f"{__name__}.{method}")
    (kind,) = (
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Solver) and each not in (Solver, Learned)
    )
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


def solve(
    problem: Problem,
    tau: Any = None,
    method: str = "descent",
    starts: int | str | Tensor = 1024,
    seed: int = 0,
    device: str = "auto",
    unseen_level: float = LEVEL,
    fallback: bool = False,
    **settings: Any,
) -> Solutions:
    """Solve instances of a problem by any method, every method from the same starts.

    `starts="auto"` draws more and more of them until the chance that one more would find a new
    optimum, once polished, is estimated to be at most `unseen_level`. `fallback=True` solves
    instances for which an operator is not to be trusted (`solutions.doubts`) by multistart L-BFGS
    instead. `settings` are the method's own, such as `steps=` for descent or `operator=`.
    """
    chosen, picked = solver(method, **settings), pick_device(device)
    if fallback and not isinstance(chosen, Learned):
        raise InputError(f"fallback= is for methods with an operator; {method!r} has none.")
    tau = move(problem.batch(tau), picked)
    problem = problem.sized(tau)
    check_objective(problem, picked, seed)
    chosen = chosen.ready(problem, picked)

    def run(points: Tensor) -> Solutions:
        return chosen.solutions(problem, tau, points).valued(problem, tau)

    if wants_auto(starts):
        how = seed, picked, unseen_level, Solutions.polished
        solutions = solve_until(problem.space, size(tau), run, *how)
    else:
        solutions = run(starting_points(problem.space, starts, size(tau), seed, picked))
    if isinstance(chosen, Learned) and chosen.operator:
        solutions = solutions.doubted(chosen.operator.encoder.knows(problem.observe(tau)))
    return _second_try(problem, tau, solutions) if fallback else solutions


def _second_try(problem: Problem, tau: Batch, solutions: Solutions) -> Solutions:
    """The instances that are in doubt, solved by L-BFGS from the same starts."""
    if solutions.doubts is None or not solutions.doubts.any():
        return solutions
    doubtful = solutions.doubts.nonzero()[:, 0]
    some, points = select(tau, doubtful), solutions.points.clone()
    points[doubtful] = solver("lbfgs").run(problem, some, solutions.starts[doubtful])
    used = solutions.applications
    used = None if used is None else used.index_fill(0, doubtful, 0)  # the operator had no part
    again = Solutions.of(problem.space, points, solutions.starts, used).valued(problem, tau)
    return replace(again, doubts=torch.zeros_like(solutions.doubts))
