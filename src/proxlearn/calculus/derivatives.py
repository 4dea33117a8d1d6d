"""Values, gradients and Hessians of an objective at many points at once, along the manifold where
the space is one. Points do not mix, so one backward pass serves them all."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch, Flags, Points, Values
from proxlearn.errors import InputError, ObjectiveError
from proxlearn.problems.base import Problem, check_problem
from proxlearn.problems.objectives import check_has_gradient, values_of
from proxlearn.spaces import Space
from proxlearn.spaces.base import constant

MATRICES_AT_ONCE = 1 << 14  # cuSOLVER fails beyond some 32,000

Basis = Float[Tensor, "i n d k"]  # k directions at every point, one a column
Slope = Float[Tensor, "i n k"]  # along them
Hessian = Float[Tensor, "i n k k"]
Held = Bool[Tensor, "i n d"]  # whether something holds a coordinate where it is


def gradient(problem: Problem, x: Points, tau: Batch) -> tuple[Values, Points]:
    """Values and gradients at every point, along the manifold where the space is one; both are of
    the type of x, whatever precision the objective computes in."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        values = values_of(problem, problem.space.retract(x), tau)
        check_has_gradient(problem, values)
        (slope,) = torch.autograd.grad(values.sum(), x)
    return values.detach(), slope


class Expansion:
    """`phi(u) = f(retract(x + B u))` around u = 0, where the columns of B (i n d k) are directions
    at x: its value (i n), slope (i n k), and its Hessian as a matrix or times vectors."""

    def __init__(self, problem: Problem, x: Tensor, tau: Batch, basis: Basis):
        with torch.enable_grad():
            self._u = x.new_zeros(*x.shape[:2], basis.shape[-1], requires_grad=True)
            moved = x + (basis @ self._u[..., None])[..., 0]
            values = values_of(problem, problem.space.retract(moved), tau)
            check_has_gradient(problem, values)
            (self._slope,) = torch.autograd.grad(values.sum(), self._u, create_graph=True)
        self.value, self.slope = values.detach(), self._slope.detach()

    def times(self, vectors: Slope) -> Slope:
        """The Hessian at every point times a vector of its own, by a second backward pass."""
        if not self._slope.requires_grad:  # an objective that is linear in x
            return torch.zeros_like(vectors)
        with torch.enable_grad():  # (`grad_outputs` does the same and takes a second to import)
            along = (self._slope * vectors).sum()
        return torch.autograd.grad(along, self._u, retain_graph=True, materialize_grads=True)[0]

    def hessian(self) -> Hessian:
        """The whole matrix, one product for each direction."""
        return torch.stack([self.times(axis.expand_as(self.slope)) for axis in self._axes()], -1)

    def slope_by(self, number: Float[Tensor, " i"]) -> Slope:
        """The derivative of the slope by a number that tau depends on, (i 1 k); every instance has
        one such number and one point."""
        if not self._slope.requires_grad:
            return torch.zeros_like(self.slope)
        with torch.enable_grad():
            every = [(self._slope * axis).sum() for axis in self._axes()]
        how: dict[str, Any] = {"retain_graph": True, "materialize_grads": True}
        slopes = [torch.autograd.grad(one, number, **how)[0] for one in every]
        return torch.stack(slopes, -1)[:, None]

    @property
    def slope_of_tau(self) -> Slope:
        """The slope, differentiable by tau where tau requires it."""
        return self._slope

    def _axes(self) -> Tensor:
        return torch.eye(self.slope.shape[-1], dtype=self.slope.dtype, device=self.slope.device)


def eigh(matrices: Float[Tensor, "*n k k"]) -> tuple[Float[Tensor, "*n k"], Tensor]:
    """Eigenvalues, smallest first, and eigenvectors (*n k k), the columns of a matrix each."""
    if not matrices.is_cuda:
        return torch.linalg.eigh(matrices)
    found = [torch.linalg.eigh(some) for some in matrices.flatten(0, -3).split(MATRICES_AT_ONCE)]
    values, vectors = (torch.cat(each) for each in zip(*found))
    return values.view(matrices.shape[:-1]), vectors.view(matrices.shape)


def held_back(space: Space, x: Points, slope: Points, edge: float = 0.0) -> Held:
    """The coordinates within `edge` of a bound that downhill would lead out of the space."""
    low, high = (constant(each, x) for each in space.bounds)
    return ((x <= low + edge) & (slope > 0)) | ((x >= high - edge) & (slope < 0))


def within_bounds(space: Space, x: Points, margin: float = 0.0) -> Points:
    """The nearest points within the bounds and `margin` away from them; in an open box, x."""
    low, high = (constant(each, x) for each in space.bounds)
    return x.clamp(low + margin, high - margin)


def hold(slope: Slope, hessian: Hessian, basis: Basis, stuck: Held) -> tuple[Slope, Hessian]:
    """Slope and Hessian with zeros for the directions of coordinates that bounds hold."""
    free = 1 - (basis.mT @ stuck.to(slope.dtype)[..., None])[..., 0].abs()
    return slope * free, hessian * free[..., None] * free[..., None, :]


def instances_of(problem: Problem, x: Points, tau: Any) -> Batch:
    """The instances that points belong to, in any form a user gives them, as a checked batch on the
    device of the points."""
    check_problem(problem)
    if not isinstance(x, Tensor) or x.ndim != 3 or not x.is_floating_point() or x.is_sparse:
        raise InputError(
            "points must be a tensor (instances, points, dim) of real numbers, as solutions.points."
        )
    tau = batches.move(problem.batch(tau), x.device)
    if (batches.size(tau), problem.space.dim) != (x.shape[0], x.shape[-1]):
        raise InputError(
            f"points has shape {tuple(x.shape)}; expected ({batches.size(tau)}, points, "
            f"{problem.space.dim}), for the instances of tau and the space of {problem.name!r}."
        )
    return tau


def points_inside(problem: Problem, x: Points, tau: Any) -> tuple[Flags, Points, Batch]:
    """Which points are inside the space; all points, moved exactly onto it, and their instances, in
    double precision where the objective allows that."""
    tau = instances_of(problem, x, tau)
    inside = problem.space.contains(x) & x.isfinite().all(-1)
    x, tau = in_double(problem, problem.space.retract(x), tau)
    return inside, within_bounds(problem.space, x), tau  # a bound is rounded in single precision


def in_double(problem: Problem, x: Points, tau: Batch) -> tuple[Points, Batch]:
    """Points and instances in double precision, where the objective can be computed in it."""
    exact = x.double(), batches.tree_map(lambda t: t.double() if t.is_floating_point() else t, tau)
    try:
        gradient(problem, exact[0][:1, :1], batches.select(exact[1], slice(0, 1)))
    except (RuntimeError, ObjectiveError):  # such as a product with weights in single precision
        return x, tau
    return exact
