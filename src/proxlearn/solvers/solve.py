"""`px.solve`: any problem by any method, every method from the same starts."""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.answers.starts import starting_points
from proxlearn.answers.unseen import LEVEL, solve_until, wants_auto
from proxlearn.common.batch import move, select, size
from proxlearn.common.devices import pick_device
from proxlearn.errors import InputError
from proxlearn.operators.bound import Bound
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
    chosen, picked = solver(method, **settings), pick_device(device)
    if isinstance(chosen, Learned):
        bound = chosen.fitting(problem, picked).bind(tau, problem)
        if bound.problem is not None and bound.tau is not None:
            check_objective(bound.problem, picked, seed)
        found = bound.answer(partial(chosen.apply, bound), starts, seed, unseen_level)
        return _second_try(bound, found) if fallback else found
    if fallback:
        raise InputError(f"fallback= is for methods with an operator; {method!r} has none.")
    if not problem.is_whole(tau):
        raise InputError(
            f"The method {method!r} needs the objective, which knows more of a tau than what an "
            "operator sees of it: give whole instances, or use the method 'operator'."
        )
    tau = move(problem.batch(tau), picked)
    problem = problem.sized(tau)
    check_objective(problem, picked, seed)
    chosen = chosen.ready(problem, picked)

    def run(points: Tensor) -> Solutions:
        return chosen.solutions(problem, tau, points).valued(problem, tau)

    if wants_auto(starts):
        how = seed, picked, unseen_level, Solutions.polished
        return solve_until(problem.space, size(tau), run, *how)
    return run(starting_points(problem.space, starts, size(tau), seed, picked))


def _second_try(bound: Bound, solutions: Solutions) -> Solutions:
    """The instances that are in doubt, solved by L-BFGS from the same starts."""
    problem, tau = bound.problem, bound.tau
    if solutions.doubts is None or not solutions.doubts.any() or problem is None or tau is None:
        return solutions
    doubtful = solutions.doubts.nonzero()[:, 0]
    some, points = select(tau, doubtful), solutions.points.clone()
    points[doubtful] = solver("lbfgs").run(problem, some, solutions.starts[doubtful])
    used = solutions.applications
    used = None if used is None else used.index_fill(0, doubtful, 0)  # the operator had no part
    again = Solutions.of(problem.space, points, solutions.starts, used).valued(problem, tau)
    return replace(again, doubts=torch.zeros_like(solutions.doubts))
