"""`px.solve`: any problem by any method, every method from the same starts."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.answers.starts import starting_points
from proxlearn.answers.unseen import LEVEL, solve_until, wants_auto
from proxlearn.common.batch import Batch, move, select, size
from proxlearn.common.devices import pick_device
from proxlearn.errors import InputError
from proxlearn.problems.base import Problem, check_objective
from proxlearn.solvers.base import Learned, solver


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
    chosen, picked = solver(method, problem, **settings), pick_device(device)
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
