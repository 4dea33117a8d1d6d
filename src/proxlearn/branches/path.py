"""A straight path from one tau to another, and what is known of points along it."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from proxlearn.calculus.derivatives import within_bounds
from proxlearn.calculus.implicit import around
from proxlearn.calculus.polish import damped_descent
from proxlearn.common.batch import Batch, tree_map
from proxlearn.problems.base import Problem

# Lengths are shares of the diameter.
STEPS, REFINED = 30, 3  # damped steps downhill, and Newton steps after them
CORRECTIONS = 8  # Newton steps from where a tangent leads
LEAP = 0.05  # no Newton step is longer
STILL = 1e-9  # a shorter one is the last
CLOSE = 1e-5  # an optimum: a Newton step from it would be shorter
AT_ONCE = 1 << 13  # points


@dataclass(frozen=True)
class Path:
    """`tau(s) = (1 - s) tau_0 + s tau_1` of a problem; both ends are batches of one."""

    problem: Problem
    begin: Batch
    end: Batch

    def at(self, s: Float[Tensor, " p"]) -> Batch:
        """The tau of each s, a batch of instances."""

        def between(a: Tensor, b: Tensor) -> Tensor:
            if not a.is_floating_point():
                return a.expand(len(s), *a.shape[1:])
            share = s.view(-1, *[1] * (a.ndim - 1)).to(a.dtype)
            return (1 - share) * a + share * b

        return tree_map(between, self.begin, self.end)


@dataclass(frozen=True)
class Stations:
    """Points along the path, each at an s of its own, and what the objective is like there."""

    s: Float[Tensor, " p"]
    points: Float[Tensor, "p d"]
    values: Float[Tensor, " p"]
    curvature: Float[Tensor, " p"]  # the smallest eigenvalue of the Hessian, less what bounds hold
    slopes: Float[Tensor, "p d"]  # dx/ds
    optimal: Bool[Tensor, " p"]  # whether it is a minimum inside the space, and not a flat one

    def __len__(self) -> int:
        return len(self.s)

    def __getitem__(self, index: slice | list[int] | Tensor) -> "Stations":
        """Some of them."""
        return Stations(*(each[index] for each in self.tensors()))

    def tensors(self) -> list[Tensor]:
        return list(vars(self).values())


def joined(some: list[Stations]) -> Stations:
    """Several as one."""
    return Stations(*(torch.cat(each) for each in zip(*(each.tensors() for each in some))))


@torch.no_grad()
def settled(path: Path, s: Float[Tensor, " p"], x: Float[Tensor, "p d"]) -> Stations:
    """The optima that points lead to, each at its own s, by damped Newton steps."""
    if not len(s):
        return looked_at(path, s, x)
    found = []
    for at, some in zip(s.split(AT_ONCE), x.split(AT_ONCE)):
        low = damped_descent(path.problem, path.at(at), some[:, None], STEPS)[:, 0]
        found.append(corrected(path, at, low, REFINED))  # values say little of where a minimum is
    return joined(found)


@torch.no_grad()
def corrected(
    path: Path, s: Float[Tensor, " p"], x: Float[Tensor, "p d"], most: int = CORRECTIONS
) -> Stations:
    """Where the slope vanishes beside points, each at its own s, by a few Newton steps; a point
    from which they lead far stays."""
    space, tau = path.problem.space, path.at(s)
    moving = torch.ones_like(s, dtype=torch.bool)
    for _ in range(most):
        here = around(path.problem, x[:, None], tau)
        step = here.newton(here.slope)[:, 0]
        length = step.norm(dim=-1) / space.diameter
        moving = moving & (length <= LEAP)
        ahead = within_bounds(space, space.retract(x + step)[:, None])[:, 0]
        x = torch.where(moving[:, None], ahead, x)
        moving = moving & (length > STILL)
        if not moving.any():
            break
    return looked_at(path, s, x)


def looked_at(path: Path, s: Float[Tensor, " p"], x: Float[Tensor, "p d"]) -> Stations:
    """What points are, where they stand."""
    problem, space = path.problem, path.problem.space
    with torch.enable_grad():
        s = s.detach().clone().requires_grad_()
        here = around(problem, x[:, None], path.at(s))
    moving = here.newton(here.expansion.slope_by(s)).nan_to_num(0, 0, 0)
    rests = here.newton(here.slope).norm(dim=-1) <= CLOSE * space.diameter
    inside = space.contains(x) & x.isfinite().all(-1)
    optimal = inside & (rests & ~here.flat & (here.least > 0))[:, 0]
    value, least = here.expansion.value[:, 0], here.least[:, 0]
    return Stations(s.detach(), x, value, least, moving[:, 0], optimal)
