"""Certificates: what a solution is, from the gradient and the Hessian in its tangent space."""

from typing import Any

import torch
from jaxtyping import Float, Int8
from torch import Tensor

from proxlearn.calculus.derivatives import (
    eigh,
    gradient,
    held_back,
    hold,
    points_inside,
    within_bounds,
)
from proxlearn.common.batch import Batch, Flags, Points, Values, pieces
from proxlearn.problems.base import Problem
from proxlearn.problems.objectives import values_of
from proxlearn.spaces.base import constant

CERTIFICATES = ("minimum", "saddle", "flat", "boundary", "unconverged")
MINIMUM, SADDLE, FLAT, BOUNDARY, UNCONVERGED = range(len(CERTIFICATES))

# Lengths are shares of the diameter.
NEAR = 1e-4  # converged: a Newton step from here would be shorter
EDGE = 1e-6  # on the edge: a bound is as near as rounding to single precision leaves it
# The difference that gives the Hessian: far longer than the rounding of points to single precision,
# so that a minimum at a kink is seen as one, and far shorter than a basin.
STEP = {torch.float64: 1e-5, torch.float32: 2e-3}
# No curvature: less than this share of the sum of all at the point, the error of differences.
LITTLE = {torch.float64: 1e-4, torch.float32: 1e-2}
FALLS = (1e-3, 3e-3, 1e-2)  # how far along a direction of no curvature lower values are looked for
ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-5}  # of a value, relative
GRADIENTS_AT_ONCE = 1 << 17


@torch.no_grad()
def certify(problem: Problem, tau: Any, points: Points) -> Int8[Tensor, "i n"]:
    """What every point is, as an index into `CERTIFICATES`.

    * unconverged: a Newton step would still lead away, or the point is outside the space;
    * saddle: stationary, with a direction that leads down: one of negative curvature (so a maximum
      is one, too), or one of no curvature with lower values;
    * boundary: a minimum on the edge, where a bound is active;
    * flat: stationary, with a direction of no curvature: part of a continuum;
    * minimum: stationary, and every direction curves upwards.
    """
    inside, x, tau = points_inside(problem, points, tau)
    codes = torch.empty_like(inside, dtype=torch.int8)
    at_once = max(1, GRADIENTS_AT_ONCE // (2 * x.shape[-1]))
    for rows, columns, some, piece in pieces(tau, x, at_once):
        codes[rows, columns] = _codes(problem, some, piece)
    return codes.masked_fill(~inside, UNCONVERGED)


def _codes(problem: Problem, tau: Batch, x: Points) -> Int8[Tensor, "i n"]:
    space, basis = problem.space, problem.space.tangent(x)
    near, edge = NEAR * space.diameter, EDGE * space.diameter
    slope, hessian = _differences(problem, tau, x, basis)
    known = hessian.isfinite().all(-1).all(-1) & slope.isfinite().all(-1)
    slope = torch.where(known[..., None], slope, 0.0)
    hessian = torch.where(known[..., None, None], hessian, 0.0)

    low, high = (constant(each, x) for each in space.bounds)
    on_edge = ((x <= low + edge) | (x >= high - edge)).any(-1)
    if on_edge.any():
        # A bound holds a coordinate unless a short way from it what curves down would undo that.
        curvature, _ = eigh(hessian)
        down = -curvature - LITTLE[x.dtype] * curvature.abs().sum(-1, keepdim=True)
        steep = slope.abs() > near * down.amax(-1, keepdim=True).clamp(min=0.0)
        stuck = held_back(space, x, (basis @ (slope * steep)[..., None])[..., 0], edge)
        slope, hessian = hold(slope, hessian, basis, stuck)
    pinned = problem.pinned(x, tau)
    if pinned is not None:
        slope, hessian = hold(slope, hessian, basis, pinned)
        usual = hessian.abs().amax((-2, -1)).clamp(min=torch.finfo(x.dtype).tiny)
        along = (basis.mT @ pinned.to(x)[..., None])[..., 0].abs()
        hessian = hessian + (usual[..., None] * along).diag_embed()  # as upwards as the others

    curvature, axes = eigh(hessian)
    along = (axes.mT @ slope[..., None])[..., 0].abs()
    little = LITTLE[x.dtype] * curvature.abs().sum(-1, keepdim=True)
    way = along / torch.maximum(curvature.abs(), little)
    converged = known & (way.nan_to_num(0, torch.inf).norm(dim=-1) <= near)

    codes = torch.full_like(on_edge, MINIMUM, dtype=torch.int8)
    codes = codes.masked_fill((curvature <= little).any(-1), FLAT)
    codes = codes.masked_fill(on_edge, BOUNDARY)
    down = (curvature < -little).any(-1)
    flat = (curvature.abs() <= little) & (converged & ~down)[..., None]
    if flat.any():
        gain = torch.where(flat, 0.0, along.square() / (2 * torch.maximum(curvature, little)))
        down |= _lower(problem, tau, x, (basis @ axes) * flat[..., None, :], gain.sum(-1))
    codes = codes.masked_fill(down, SADDLE)
    return codes.masked_fill(~converged, UNCONVERGED)


def _lower(
    problem: Problem, tau: Batch, x: Points, ways: Float[Tensor, "i n d k"], gain: Values
) -> Flags:
    """Whether values fall along one of the ways, near and far, by more than rounding and more than
    steps in the other directions could still gain. A way that a bound blocks leads nowhere."""
    value = values_of(problem, x, tau)
    bottom, lower = value - gain - ROUNDING[x.dtype] * value.abs(), []
    for far in FALLS:
        steps = far * problem.space.diameter * torch.cat((ways, -ways), -1).mT  # (i n 2k d)
        tried = within_bounds(problem.space, (x[..., None, :] + steps).flatten(1, 2))
        values = values_of(problem, problem.space.retract(tried), tau)
        went = (tried.view_as(steps) - x[..., None, :]).norm(dim=-1) > steps.norm(dim=-1) / 2
        lower.append(went & (values.view(went.shape) < bottom[..., None]))
    return torch.stack(lower).all(0).any(-1)


def _differences(
    problem: Problem, tau: Batch, x: Points, basis: Float[Tensor, "i n d k"]
) -> tuple[Float[Tensor, "i n k"], Float[Tensor, "i n k k"]]:
    """Slope and Hessian in the tangent space, from gradients a little ahead and behind along every
    direction: at a kink they give the mean slope and a large curvature. On an edge they are those
    of a place beside it, so that nothing outside is evaluated."""
    h, k = STEP[x.dtype] * problem.space.diameter, basis.shape[-1]
    steps = h * torch.cat((basis, -basis), -1).mT  # (i n 2k d)
    beside = within_bounds(problem.space, x, h)
    _, slopes = gradient(problem, (beside[..., None, :] + steps).flatten(1, 2), tau)
    slopes = slopes.unflatten(1, (x.shape[1], 2 * k)) @ basis
    ahead, behind = slopes[..., :k, :], slopes[..., k:, :]
    hessian = (ahead - behind) / (2 * h)
    hessian = (hessian + hessian.mT) / 2
    slope = (ahead + behind).diagonal(dim1=-2, dim2=-1) / 2
    return slope + (hessian @ (basis.mT @ (x - beside)[..., None]))[..., 0], hessian
