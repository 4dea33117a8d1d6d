"""Polish: Newton steps that take every solution to the optimum of its basin."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from proxlearn.calculus.derivatives import (
    Expansion,
    eigh,
    gradient,
    held_back,
    hold,
    points_inside,
    within_bounds,
)
from proxlearn.calculus.lbfgs import downhill
from proxlearn.common.batch import Batch, Points, first_those, pieces, select
from proxlearn.common.checks import steps_of
from proxlearn.errors import ObjectiveError
from proxlearn.problems.base import Problem
from proxlearn.problems.objectives import values_of

# Lengths are shares of the diameter.
STEPS, ROUNDS = 30, 20  # a round is so many steps; only points that moved in it begin another
SETTLED = 1e-7  # a point that moved less than this in a round has arrived
RADIUS = 0.01  # the longest step: no leap into another basin
STILL = 1e-10  # shorter steps do not count
NEWTON_DIM = 16  # whole Hessians up to here, L-BFGS above
HISTORY = 8  # steps that L-BFGS remembers
POLISHED_AT_ONCE = 1 << 16  # points
DAMPING = (0.1, 1e-8, 1e8)  # at first, smallest and largest, relative to the curvature

Step = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # (x, damping) -> values, steps


@torch.no_grad()
def polish(problem: Problem, tau: Any, points: Points, steps: int = STEPS * ROUNDS) -> Points:
    """Every point of the space moved downhill to the optimum of its basin, and never uphill.

    Steps are damped, so that a point beside a continuum goes straight to it and not along it; they
    keep to the manifold and its bounds, along the edge where one holds them, and may leave an open
    box. Points outside are left alone.
    """
    steps = steps_of(steps)
    inside, begun, tau = points_inside(problem, points, tau)
    done = begun.to(points.dtype, copy=True)
    for rows, columns, some, x in pieces(tau, begun, POLISHED_AT_ONCE):
        own = problem.polished(x, some)
        found = _until_settled(problem, some, x, steps) if own is None else own
        found = found.to(points.dtype)
        after = values_of(problem, within_bounds(problem.space, found.to(x.dtype)), some)
        lower = after <= values_of(problem, x, some)  # rounding may undo a gain
        done[rows, columns] = torch.where(lower[..., None], found, done[rows, columns])
    return torch.where(inside[..., None], done, points)


def _until_settled(problem: Problem, tau: Batch, x: Points, steps: int) -> Points:
    """Rounds of damped descent: most points arrive in the first, those in a long valley need many.
    A round has as many columns as the instance with most points that still move."""
    moving, limit = torch.ones_like(x[..., 0], dtype=torch.bool), SETTLED * problem.space.diameter
    for done in range(0, steps, STEPS):
        busiest = int(moving.sum(1).max())
        if not busiest:
            break
        some = first_those(moving)[:, :busiest, None]
        begun = x.take_along_dim(some, 1)
        found = damped_descent(problem, tau, begun, min(STEPS, steps - done))
        goes_on = problem.space.squared_distance(begun, found).sqrt() > limit
        x = x.scatter(1, some.expand_as(found), found)
        moving = torch.zeros_like(moving).scatter(1, some[..., 0], goes_on)
    return x


@torch.no_grad()
def damped_descent(problem: Problem, tau: Batch, x: Points, steps: int) -> Points:
    """Follow damped steps downhill, each point with a damping of its own (Levenberg-Marquardt).

    Damping shrinks after a step that led lower and grows after one that did not, which is undone.
    At first only steep directions count, so that a continuum is reached before anything moves
    along it.
    """
    space = problem.space
    first, least, most = DAMPING
    damping = torch.full_like(x[..., :1], first)
    whole = space.dim <= NEWTON_DIM and twice_differentiable(problem, x, tau)
    model = (_newton if whole else _lbfgs)(problem, tau)
    for _ in range(steps):
        value, step = model(x, damping)
        length = step.norm(dim=-1, keepdim=True)
        step = step * (RADIUS * space.diameter / length).clamp(max=1.0)
        trial = within_bounds(space, space.retract(x + step))
        better = (values_of(problem, trial, tau) < value)[..., None]
        x = torch.where(better, trial, x)
        damping = torch.where(better, damping / 5, damping * 5).clamp(least, most)
        if not (length > STILL * space.diameter).any():  # NaN is no step either
            break
    return x


def twice_differentiable(problem: Problem, x: Points, tau: Batch) -> bool:
    """Whether the objective can be differentiated twice, tried at one point."""
    one, first = x[:1, :1], select(tau, slice(0, 1))
    try:
        Expansion(problem, one, first, problem.space.tangent(one)).hessian()
    except (RuntimeError, ObjectiveError):  # what autograd raises, in words of many kinds
        return False
    return True


def _newton(problem: Problem, tau: Batch) -> Step:
    """`-(|H| + damping scale)^-1 slope` in the tangent space, without the directions that bounds
    hold. |H| is H with its eigenvalues made positive, so that a saddle repels."""
    space = problem.space
    longest = RADIUS * space.diameter

    def step(x: Tensor, damping: Tensor) -> tuple[Tensor, Tensor]:
        basis = space.tangent(x)
        around = Expansion(problem, x, tau, basis)
        slope, hessian = around.slope, around.hessian()
        stuck = held_back(space, x, (basis @ slope[..., None])[..., 0])
        slope, hessian = hold(slope, hessian, basis, stuck)
        curvature, axes = eigh(hessian.nan_to_num(0, 0, 0))
        along = (axes.mT @ slope[..., None])[..., 0]
        # Where nothing curves, the unit is a step as long as the radius.
        scale = curvature.abs().sum(-1, keepdim=True)
        scale = torch.maximum(scale, along.norm(dim=-1, keepdim=True) / longest)
        move = -along / (curvature.abs() + damping * scale + torch.finfo(x.dtype).tiny)
        return around.value, (basis @ (axes @ move[..., None]))[..., 0]

    return step


def _lbfgs(problem: Problem, tau: Batch) -> Step:
    """`-B slope / (1 + damping)` with L-BFGS's B from the steps so far, and bounds as above."""
    pairs = last = None  # (HISTORY 2 i n d): steps and changes of slope; the point and slope before

    def step(x: Tensor, damping: Tensor) -> tuple[Tensor, Tensor]:
        nonlocal pairs, last
        value, slope = gradient(problem, x, tau)
        slope = slope.masked_fill(held_back(problem.space, x, slope), 0.0)
        now = torch.stack((x, slope))
        last = now if last is None else last
        pairs = now.new_zeros(HISTORY, *now.shape) if pairs is None else pairs
        moved = (x != last[0]).any(-1, keepdim=True)  # a step that was undone taught nothing
        pairs = torch.where(moved, torch.cat((pairs[1:], (now - last)[None])), pairs)
        last = now
        return value, downhill(slope, [(pair[0], pair[1]) for pair in pairs]) / (1 + damping)

    return step
