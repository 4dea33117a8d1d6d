"""Curves over steps: the solutions of a method after each of several numbers of steps."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.answers.starts import starting_points
from proxlearn.common.batch import move, size
from proxlearn.common.devices import pick_device
from proxlearn.problems.base import Problem
from proxlearn.solvers.base import solver


def trace(
    problem: Problem,
    tau: Any,
    method: str,
    at: Sequence[int],
    starts: int | Tensor = 1024,
    seed: int = 0,
    device: str = "auto",
    **settings: Any,
) -> list[Solutions]:
    """What `px.solve` gives with `steps=` each of `at`, in one pass where the method allows it.

    problem, tau, method, starts, seed, device, settings: as for `px.solve`.
    at: numbers of steps, in ascending order; 0 is the starts themselves.
    """
    picked, settings = pick_device(device), settings | {"steps": max(at)}
    chosen = solver(method, problem, **settings)
    tau = move(problem.batch(tau), picked)
    problem = problem.sized(tau)
    points = starting_points(problem.space, starts, size(tau), seed, picked)
    found = chosen.ready(problem, picked).trace(problem, tau, points, at)
    return [each.with_values(problem, tau) for each in found]
