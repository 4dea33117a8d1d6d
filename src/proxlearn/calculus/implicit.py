"""Optima as functions of tau, by the implicit function theorem: where `slope(x, tau) = 0` and the
Hessian H is regular, `dx/dtau = -H^-1 d slope/dtau`, in the tangent space and along bounds."""

from typing import Any, NamedTuple

import torch

from proxlearn.calculus.derivatives import (
    Basis,
    Expansion,
    Hessian,
    Slope,
    eigh,
    held_back,
    hold,
    in_double,
    instances_of,
)
from proxlearn.common.batch import Batch, Flags, Points, Values
from proxlearn.errors import InputError
from proxlearn.problems.base import Problem

FAR = 1e-3  # of the diameter: the longest Newton step from what still counts as an optimum
EDGE = 1e-6  # of the diameter: how near to a point a bound is that may hold it
LITTLE = 1e-6  # no curvature: less than this share of the sum of all at the point


def differentiable(problem: Problem, tau: Any, points: Points) -> Points:
    """The same optima as functions of tau, so that what is computed of them can be differentiated.

    `tau` is a tensor that requires a gradient, or was computed from one; `points` (i n d) are
    optima of its instances, such as `optima.points[None]`. The result has the same numbers, in
    double precision where the objective allows it, and `backward()` gives the derivatives by tau of
    the optima as they move with it (once, not twice). A coordinate that a bound holds does not
    move. At a fold, and along a continuum, there is no derivative, which is an error.
    """
    tau = instances_of(problem, points, tau)
    x, tau = in_double(problem, points.detach(), tau)
    here = around(problem, x, tau)
    _complain(
        here.flat,
        "has a direction of no curvature, as at a fold or along a continuum, and no derivative by "
        "tau: leave it out",
    )
    _complain(
        ~(here.newton(here.slope).norm(dim=-1) <= FAR * problem.space.diameter),
        "is no optimum of this tau, as a Newton step leads away from it: polish it first, "
        "px.polish(problem, tau, points)",
    )
    with torch.enable_grad():
        moved = here.newton(here.expansion.slope_of_tau)
        return x + (moved - moved.detach())


class Around(NamedTuple):
    """The objective to second order around points, without the directions that bounds hold."""

    expansion: Expansion
    basis: Basis
    slope: Slope
    free: Slope  # 1 for a direction of the basis that is free, 0 for one that is held
    curvature: Slope  # the Hessian's eigenvalues, smallest first; held directions curve most
    inverse: Hessian  # of the Hessian, along free directions

    @property
    def flat(self) -> Flags:
        """Whether there is a direction of no curvature."""
        little = LITTLE * self.curvature.abs().sum(-1, keepdim=True)
        return (self.curvature.abs() <= little).any(-1)

    @property
    def least(self) -> Values:
        """The smallest curvature."""
        return self.curvature[..., 0]

    def newton(self, slope: Slope) -> Points:
        """The step `-H^-1 slope` in the coordinates of the points."""
        return -(self.basis @ (self.inverse @ slope[..., None]))[..., 0]


def around(problem: Problem, x: Points, tau: Batch) -> Around:
    """The objective to second order around points of a batch."""
    basis = problem.space.tangent(x)
    expansion = Expansion(problem, x, tau, basis)
    slope = expansion.slope.nan_to_num(0, 0, 0)
    edge = EDGE * problem.space.diameter
    stuck = held_back(problem.space, x, (basis @ slope[..., None])[..., 0], edge)
    slope, hessian = hold(slope, expansion.hessian().nan_to_num(0, 0, 0), basis, stuck)
    free = 1 - (basis.mT @ stuck.to(slope)[..., None])[..., 0].abs()
    scale = hessian.abs().amax((-2, -1), keepdim=True).clamp(min=torch.finfo(x.dtype).tiny)
    most = 2.0 + free.shape[-1]  # more than any eigenvalue of what is scaled
    curvature, axes = eigh(hessian / scale + (1 - free).diag_embed() * most)
    least = torch.finfo(x.dtype).eps
    regular = torch.where(curvature.abs() < least, least, curvature)
    inverse = axes @ (1 / regular).diag_embed() @ axes.mT / scale
    inverse = inverse * free[..., None] * free[..., None, :]
    return Around(expansion, basis, slope, free, curvature * scale[..., 0], inverse)


def _complain(which: Flags, what: str) -> None:
    if which.any():
        i, n = which.nonzero()[0].tolist()
        raise InputError(f"Point {n} of instance {i} {what}.")
