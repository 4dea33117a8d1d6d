"""`px.trace`: every optimum, followed along a path of taus."""

from typing import Any

import torch

from proxlearn.answers.solutions import Solutions
from proxlearn.branches.answer import Branches
from proxlearn.branches.assemble import assembled
from proxlearn.branches.path import Path
from proxlearn.branches.samples import Samples
from proxlearn.calculus.derivatives import in_double
from proxlearn.calculus.polish import twice_differentiable
from proxlearn.common.batch import Batch, leaves, move, size, structure, tree_map
from proxlearn.common.checks import count, whole
from proxlearn.common.memory import afford
from proxlearn.errors import InputError
from proxlearn.problems.base import Problem, check_problem
from proxlearn.problems.objectives import check_objective
from proxlearn.solvers.base import solvers
from proxlearn.solvers.solve import solve, usual_method

SAMPLES, STARTS = 33, 128
IN_SAMPLE = 200  # bytes of a sample before it is solved, at least


def trace(
    problem: Problem,
    tau0: Any,
    tau1: Any,
    method: str | None = None,
    samples: int = SAMPLES,
    starts: int = STARTS,
    seed: int = 0,
    device: str = "auto",
    **settings: Any,
) -> Branches:
    """Follow every optimum along the straight path from one tau to another, and find where optima
    appear, merge and vanish.

    The optima found at each sample are followed to the next by Newton steps, forwards and
    backwards, to where they end. An optimum that appears and vanishes between two samples, and is
    not known before or after, is not seen.

    Args:
        problem: the family
        tau0: where the path begins, one instance
        tau1: where it ends. If instances are structured, their numbers are moved, and both have to
            be of one size
        method: finds the optima at the samples (default: the operator given as `operator=` or
            shipped for the problem, and also L-BFGS, since an operator may pass over narrow basins)
        samples: at how many taus along the path the problem is solved; more are added where optima
            appear or vanish
        starts: how many points to start from at each sample
        seed: fixes the starts
        device: auto, cpu or cuda
        **settings: of the method, such as `operator=`
    """
    path = path_between(problem, tau0, tau1)
    samples, starts = whole("samples", samples, 2), count("starts", starts)
    afford(IN_SAMPLE * samples, f"{samples:,} samples of a path", "give fewer")
    methods, how = _methods(problem, method, settings), {"starts": starts, "seed": seed}

    def found(taus: Batch) -> list[Solutions]:
        single = tree_map(lambda t: t.float() if t.is_floating_point() else t, taus)
        return [
            solve(path.problem, single, name, device=device, **how, **own)
            for name, own in methods.items()
        ]

    every = Samples(path, found)
    every.add(torch.linspace(0, 1, samples, dtype=torch.double).tolist())
    every.refine()
    branches, events = assembled(every)
    return Branches(path, branches, events, every.s, every.said(), tuple(methods), starts)


def path_between(problem: Problem, tau0: Any, tau1: Any) -> Path:
    """The straight path between two instances of a problem that can be followed along it."""
    check_problem(problem)
    if not problem.family:
        raise InputError(f"{problem.name!r} is a single objective: it has no tau that could move.")
    if problem.discrete:
        raise InputError(
            f"The solutions of {problem.name!r} are discrete, and do not move with tau: there is "
            "nothing to follow."
        )
    if type(problem).polished is not Problem.polished:
        raise InputError(
            f"{problem.name!r} has a polish of its own, since Newton steps do not lead to its "
            "optima: they cannot be followed by such steps."
        )
    ends = [move(problem.batch(tau), "cpu") for tau in (tau0, tau1)]
    if any(size(each) != 1 for each in ends):
        raise InputError("A path goes from one instance to one other: give a single tau for each.")
    _check_alike(*ends)
    problem = problem.sized(ends[0])
    check_objective(problem, torch.device("cpu"))
    x = problem.space.sample(1, 1, generator=torch.Generator().manual_seed(0))
    begin, end = (in_double(problem, x, each)[1] for each in ends)
    exact, _ = in_double(problem, x, ends[0])
    if exact.dtype != torch.double or not twice_differentiable(problem, exact, begin):
        raise InputError(
            f"The objective of {problem.name!r} cannot be computed in double precision and "
            "differentiated twice, which Newton steps need: its optima cannot be followed."
        )
    return Path(problem, begin, end)


def _check_alike(begin: Batch, end: Batch) -> None:
    """An error where there is no straight path."""
    alike = structure(begin) == structure(end)
    pairs = [*zip(leaves(begin), leaves(end))] if alike else []
    if not alike or any(a.shape != b.shape for a, b in pairs):
        raise InputError(
            "The two taus are of different sizes, and there is no straight path between them: give "
            "as many numbers, in the same order, for both."
        )
    if any(not a.is_floating_point() and not torch.equal(a, b) for a, b in pairs):
        raise InputError(
            "The two taus differ in whole numbers, such as which vertices are joined, and there is "
            "no straight path between them: give two that differ in weights only."
        )


def _methods(problem: Problem, method: str | None, settings: dict) -> dict[str, dict[str, Any]]:
    """The methods that solve, each with its settings."""
    usual = usual_method(problem, settings.get("operator")) if method is None else method
    _ = solvers[usual]  # an error where there is none
    more = {} if method is not None or usual == "lbfgs" else {"lbfgs": {}}
    return {usual: settings} | more
