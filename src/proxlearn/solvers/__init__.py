"""Solvers: anything that takes starts to solutions. A file here is a method of `px.solve`: it holds
one `Solver` subclass, a frozen value whose fields are the method's settings.
"""

import importlib
import pkgutil
from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any

from jaxtyping import Float
from torch import Tensor

from proxlearn.batch import Batch, move, size
from proxlearn.errors import UnknownNameError
from proxlearn.operator import pick_device, starting_points
from proxlearn.problem import Problem, check_objective
from proxlearn.solutions import Solutions


class Solver(ABC):
    """A method with its settings."""

    @abstractmethod
    def run(
        self, problem: Problem, tau: Batch, starts: Float[Tensor, "i n d"]
    ) -> Float[Tensor, "i n d"]:
        """Take every start to a solution."""


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
        if isinstance(each, type) and issubclass(each, Solver) and each is not Solver
    )
    known = [field.name for field in fields(kind)]  # pyright: ignore[reportArgumentType]
    for name in settings:
        if name not in known:
            raise UnknownNameError(f"setting of the method {method!r}", name, known)
    return kind(**settings)


def solve(
    problem: Problem,
    tau: Any = None,
    method: str = "descent",
    starts: int | Tensor = 1024,
    seed: int = 0,
    device: str = "auto",
    **settings: Any,
) -> Solutions:
    """Solve instances of a problem by any method, every method from the same starts.

    `settings` are the method's own, such as `steps=` for descent or `operator=` for operator.
    """
    chosen, picked = solver(method, **settings), pick_device(device)
    check_objective(problem, picked, seed)
    tau = move(problem.batch(tau), picked)
    points = starting_points(problem.space, starts, size(tau), seed, picked)
    found = chosen.run(problem, tau, points)
    return Solutions.of(problem.space, found, points).valued(problem, tau)
