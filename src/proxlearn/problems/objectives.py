"""What an objective may do wrong: seen beforehand, and at every call where that costs nothing."""

import torch
from torch import Tensor

from proxlearn.common.batch import Batch, Device, Points, Values, leaves, select, tree_map
from proxlearn.common.seeds import generator_for
from proxlearn.errors import InputError, ObjectiveError, ProxlearnError
from proxlearn.problems.base import Problem, sampled

INSTANCES, POINTS = 2, 5  # that an objective is tried on
BEYOND = 3.0  # how far out it is tried, too, where points may leave the space
ALIKE = 1e-2  # of the largest value: points alone, or among others, have values as near as that


def values_of(problem: Problem, x: Points, tau: Batch) -> Values:
    """`f_tau(x)`, of the type of x; an error where the objective fails, or does not give a real
    number for every point."""
    try:
        values = problem.objective(x, tau)
    except (ProxlearnError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # whatever a user's function may do
        how = (
            "It is given arrays of NumPy, as px.Problem.from_numpy says."
            if problem.by_differences
            else "Use torch functions of x, which is (instances, points, dim): no .item(), "
            ".numpy(). One written with NumPy is made a problem by px.Problem.from_numpy."
        )
        raise ObjectiveError(
            f"The objective of {problem.name!r} failed on {_shape(x)}: {str(error)[:300]} ({how})"
        ) from error
    if wrong := _unfit(values, x):
        raise ObjectiveError(
            f"The objective of {problem.name!r} returned {wrong} for {_shape(x)}; it must return a "
            f"tensor (instances, points) = {tuple(x.shape[:-1])} of real numbers, one value for "
            "each point. Reduce over the last dimension of x only."
        )
    return values if values.dtype == x.dtype else values.to(x.dtype)


def _shape(x: Points) -> str:
    instances, points = x.shape[:2]
    return f"{instances} instance{'s' * (instances != 1)} of {points} point{'s' * (points != 1)}"


def _unfit(values: object, x: Points) -> str | None:
    """What is wrong with values of x; None where nothing is."""
    if not isinstance(values, Tensor):
        return type(values).__name__
    if values.shape != x.shape[:-1]:
        return str(tuple(values.shape))
    if values.layout is not torch.strided:
        return "a sparse tensor"
    if not values.is_floating_point():
        return f"numbers of type {values.dtype}".replace("torch.", "")
    return None if values.device == x.device else f"a tensor on the device {values.device}"


def check_differentiable(problem: Problem, who: str) -> None:
    """An error where what needs exact gradients, many of them, is given an objective of NumPy."""
    if problem.by_differences:
        raise InputError(
            f"{who} needs the gradients of the objective, and {problem.name!r} is written with "
            "NumPy, which gives none: write it with torch functions and px.Problem.from_function, "
            "or solve it by finite differences, px.solve(problem, tau, 'lbfgs')."
        )


@torch.enable_grad()
def check_objective(problem: Problem, device: Device, seed: int = 0) -> None:
    """Call the objective on a few points and say in a sentence what is wrong with it."""
    generator = generator_for(seed, "check", device)
    tau = sampled(problem, INSTANCES, "train", generator)
    x = problem.space.sample(INSTANCES, POINTS, generator=generator, device=device)
    x = x.requires_grad_()
    values = _unchanged(problem, x, tau)
    if not values.isfinite().all():
        raise ObjectiveError(
            f"The objective of {problem.name!r} is NaN or infinite at points sampled from "
            f"{problem.space}: it must be finite on the whole space."
        )
    _check_gradient(problem, x, values)
    if not problem.costly:
        check_at(problem, x.detach(), tau)
        if not problem.space.closed:
            _check_beyond(problem, x.detach(), tau)


@torch.no_grad()
def check_at(problem: Problem, x: Points, tau: Batch) -> None:
    """An error where values at these points change from call to call, or with the points beside
    them."""
    values = _unchanged(problem, x, tau)
    if _differ(values, values_of(problem, x, tau)):
        raise ObjectiveError(
            f"The objective of {problem.name!r} gives other values when it is called again: it "
            "draws at random or keeps a state, such as dropout or batch normalization in training. "
            "Draw what is random in a tau in sample() or refresh(), and call .eval() on modules."
        )
    alone = values_of(problem, x[:, :2].contiguous(), tau)
    first = values_of(problem, x[:1], select(tau, slice(0, 1)))
    if _differ(values[:, :2], alone) or _differ(values[:1], first):
        raise ObjectiveError(
            f"The objective of {problem.name!r} gives a point another value where other points or "
            "instances are beside it: each value must depend on its own x and tau alone. The usual "
            "causes are a softmax, a mean or a normalization over the dimension of points or of "
            "instances; reduce over the last dimension of x only."
        )


@torch.enable_grad()
def some_values(problem: Problem, device: Device) -> Values | None:
    """Values at points and instances that are always the same, by which a later run tells whether
    it has the same objective; None where they are random."""
    generator = generator_for(0, "values", device)
    tau = sampled(problem, 4, "train", generator)
    x = problem.space.sample(4, 16, generator=generator, device=device)
    first, second = (values_of(problem, x.clone(), tau).detach() for _ in range(2))
    return first.cpu() if torch.equal(first, second) else None


def _unchanged(problem: Problem, x: Points, tau: Batch) -> Values:
    """The values; an error where x or tau are others after that."""
    before = tree_map(torch.clone, (x.detach(), tau))
    values = values_of(problem, x, tau)
    for given, kept in zip(leaves((x.detach(), tau)), leaves(before)):
        if not torch.equal(given, kept):
            raise ObjectiveError(
                f"The objective of {problem.name!r} changes x or tau in place: compute with new "
                "tensors, x = x + 1 and not x += 1 or x.data."
            )
    return values


def check_has_gradient(problem: Problem, values: Values) -> None:
    """An error where autograd does not see through an objective."""
    if not values.requires_grad:
        raise ObjectiveError(
            f"The objective of {problem.name!r} has no gradient in x: compute it with torch "
            "functions of x (no .item(), .numpy() or torch.no_grad())."
        )


def _check_gradient(problem: Problem, x: Points, values: Values) -> None:
    check_has_gradient(problem, values)
    (gradient,) = torch.autograd.grad(values.sum(), x, allow_unused=True)
    if gradient is None or not gradient.isfinite().all():
        raise ObjectiveError(
            f"The gradient of the objective of {problem.name!r} is "
            f"{'not connected to x' if gradient is None else 'NaN or infinite at some points'}: "
            "the usual causes are a square root or a norm at zero, or a logarithm of a negative "
            "number."
        )


@torch.no_grad()
def _check_beyond(problem: Problem, x: Points, tau: Batch) -> None:
    """Points that left the space are not to be changed either, such as by `x.clamp_`; there it may
    fail, or be no number."""
    space = problem.space
    far = space.retract(space.from_unit(BEYOND * space.to_unit(x)))
    before = far.clone()
    try:
        problem.objective(far, tau)
    except Exception:  # as it may
        return
    if not torch.equal(far, before):
        raise ObjectiveError(
            f"The objective of {problem.name!r} changes x in place where it is outside the space: "
            "compute with new tensors, x = x.clamp(-1, 1) and not x.clamp_(-1, 1) or x.data."
        )


def _differ(values: Values, again: Values) -> bool:
    """Whether values are others than before, but for rounding; NaN may be where NaN was."""
    scale = values.nan_to_num(0, 0, 0).abs().amax().item()
    return not torch.allclose(values, again, rtol=0, atol=ALIKE * scale + 1e-30, equal_nan=True)
