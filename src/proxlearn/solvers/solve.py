"""`px.solve`: any problem by any method, from the same starts; `curve`: over numbers of steps."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from proxlearn.answers.notices import logged, warned
from proxlearn.answers.solutions import Solutions
from proxlearn.answers.starts import UNSEEN_LEVEL, from_starts, starting_points
from proxlearn.common.batch import move, select, size
from proxlearn.common.checks import flag, listed, seed_of, steps_of
from proxlearn.errors import InputError
from proxlearn.gpu.devices import pick_device
from proxlearn.operators.bound_operator import Bound
from proxlearn.operators.operator import Operator
from proxlearn.operators.shipped import available
from proxlearn.problems import problem as built_in
from proxlearn.problems.base import Problem, check_problem
from proxlearn.problems.objectives import check_objective
from proxlearn.solvers.base import Learned, needs_whole, solver
from proxlearn.spaces import Box


def solve(
    problem: Problem | str,
    tau: Any = None,
    method: str | None = None,
    starts: int | str | Tensor = 1024,
    seed: int = 0,
    device: str = "auto",
    unseen_level: float = UNSEEN_LEVEL,
    fallback: bool = False,
    **settings: Any,
) -> Solutions:
    """Solve instances of a problem by any method; all methods begin at the same starts.

    Args:
        problem: the family, or the name of a built-in one
        tau: one instance or many, (p,) or (instances, p) for vectors. For a method with an operator
            it may be only what the operator sees of them; values are then None
        method: operator, lbfgs, descent, ... (default: operator, if one is given as `operator=` or
            shipped for the problem, else lbfgs)
        starts: how many points to start from, drawn uniformly; or the points, (n, d) or
            (instances, n, d); or "auto": more and more, until another one hardly finds a new
            optimum. Where there are values, "auto" returns polished, certified solutions
        seed: fixes the starts
        device: auto, cpu or cuda
        unseen_level: with "auto", the estimated chance of a new optimum at which to stop
        fallback: solve instances for which an operator is not to be trusted (`solutions.doubts`) by
            multistart L-BFGS instead
        **settings: of the method, such as `steps=` for descent, or `operator=`
    """
    problem = built_in(problem) if isinstance(problem, str) else problem
    _check_problem(problem)
    fallback, seed = flag("fallback", fallback), seed_of(seed)
    if method is None:
        seen = tau is not None and not problem.is_whole(tau)
        method = "operator" if seen else usual_method(problem, settings.get("operator"))
    chosen, picked = solver(method, problem, **settings), _device_for(problem, device)
    if isinstance(chosen, Learned):
        bound = chosen.fitting(problem, picked).bind(tau, problem)
        if bound.problem is not None and bound.tau is not None:
            check_objective(bound.problem, picked, seed)
        mend = partial(_second_try, bound) if fallback else None
        found = bound.answer(partial(chosen.apply, bound), starts, seed, unseen_level, mend)
        return logged(replace(found, method=method))
    if fallback:
        raise InputError(f"fallback= is for methods with an operator; {method!r} has none.")
    if isinstance(starts, str) and not chosen.independent:
        raise InputError(
            f"starts={starts!r} is for methods that find more from more starts, and {method!r} "
            "begins elsewhere: give a number, such as starts=256."
        )
    if not problem.is_whole(tau):
        raise InputError(needs_whole(method, problem))
    tau = move(problem.batch(tau), picked)
    problem = problem.sized(tau)
    check_objective(problem, picked, seed)
    chosen = chosen.ready(problem, picked)

    def run(points: Tensor) -> Solutions:
        return chosen.solutions(problem, tau, points).with_values(problem, tau)

    found = from_starts(run, problem.space, size(tau), starts, seed, picked, unseen_level)
    return logged(replace(warned(found), method=method))


def usual_method(problem: Problem, operator: Any = None) -> str:
    """The method for a problem where none is asked for: the operator that is given or shipped for
    it, else multistart L-BFGS."""
    known = problem.name in available() and _is_alike(problem, built_in(problem.name))
    return "operator" if operator is not None or known else "lbfgs"


def _is_alike(problem: Problem, other: Problem) -> bool:
    """Whether an operator for one may be tried on the other: of the same class, and not in a box of
    another dimension."""
    boxed = isinstance(problem.space, Box)
    return type(problem) is type(other) and (not boxed or problem.space == other.space)


def _device_for(problem: Problem, device: str) -> torch.device:
    """Where a problem is solved: on the CPU where NumPy computes its objective."""
    if problem.by_differences and device not in ("auto", "cpu"):
        raise InputError(
            f"The objective of {problem.name!r} is written with NumPy, which computes on the CPU: "
            "leave device= out, or write it with torch."
        )
    return pick_device("cpu" if problem.by_differences else device)


def _check_problem(given: Any) -> None:
    if isinstance(given, Operator):
        raise InputError(
            "An operator is given in place of the problem: use operator.solve(tau), or "
            "px.solve(problem, tau, operator=operator)."
        )
    check_problem(given)


def curve(
    problem: Problem,
    tau: Any,
    method: str,
    at: Sequence[int],
    starts: int | Tensor = 1024,
    seed: int = 0,
    device: str = "auto",
    **settings: Any,
) -> list[Solutions]:
    """What `solve` gives with `steps=` each of `at`, in one pass where the method allows it.

    * `at`: numbers of steps, in ascending order; 0 is the starts themselves;
    * the others: as for `solve`.
    """
    _check_problem(problem)
    at = [steps_of(each) for each in listed("at", at, "numbers of steps")]
    chosen = solver(method, problem, **settings | {"steps": max(at)})
    picked = _device_for(problem, device)
    tau = move(problem.batch(tau), picked)
    problem = problem.sized(tau)
    points = starting_points(problem.space, starts, size(tau), seed, picked)
    found = chosen.ready(problem, picked).curve(problem, tau, points, at)
    return [each.valued(problem, tau) for each in found]


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
    again = Solutions.of(problem.space, points, solutions.starts, used).with_values(problem, tau)
    return replace(again, doubts=torch.zeros_like(solutions.doubts))
