"""Continuous families of mirror planes: those through the axis of a turned part, and those through
the centre of a sphere."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from proxlearn.shapes.refine import measured, refined
from proxlearn.shapes.target import Target
from proxlearn.spaces.base import across

FEWEST = 5  # planes through one line before it is tried as an axis
NEAR = 0.03  # how far a plane may be off a line that it contains, as an angle and as a distance
FLAT = 0.05  # in parts of how far normals spread: where they spread less, offsets say nothing
PARALLEL = 0.1  # the sine of an angle between planes that says where they meet
FITTED, TRIED = 16, 32  # planes through an axis: to place it, and to see whether all are mirrors
STEPS = (0.01, 0.003)  # scales of the steps that place it, see `refined`
GOLDEN = (math.sqrt(5) - 1) / 2  # multiples of this share of a turn are never the same

Vector = Float[Tensor, "3"]


class Line(NamedTuple):
    """A line that is an axis, or may be."""

    axis: Vector
    point: Vector

    def planes(self, count: int, shift: float = 0.0) -> Float[Tensor, "k 4"]:
        """Planes through it at angles that are multiples of no common one."""
        angles = torch.pi * GOLDEN * (torch.arange(count).to(self.axis) + shift)
        normals = torch.stack((angles.cos(), angles.sin()), 1) @ across(self.axis).T
        return through(self.point, normals)

    def of(self, planes: Float[Tensor, "k 4"]) -> Bool[Tensor, " k"]:
        """Which planes contain it."""
        tilt, off = planes[:, :3] @ self.axis, planes[:, :3] @ self.point - planes[:, 3]
        return (tilt.abs() < NEAR) & (off.abs() < NEAR)


class Axis(NamedTuple):
    """An axis, or with `every` the centre of a sphere, and of many planes through it that were
    tried, the largest residual and the farthest point."""

    line: Line
    residual: float
    worst: float
    every: bool = False


def through(point: Vector, normals: Float[Tensor, "k 3"]) -> Float[Tensor, "k 4"]:
    return torch.cat((normals, (normals @ point)[:, None]), 1)


def fitted(planes: Float[Tensor, "k 4"]) -> Line:
    """The line that is nearest to being in all planes; of its points, the one nearest to 0."""
    normals, offsets = planes.double().split((3, 1), -1)
    left, sizes, ways = torch.linalg.svd(normals, full_matrices=False)
    axis, inverse = ways[-1], torch.where(sizes > FLAT * sizes[0], 1 / sizes, 0.0)
    point = (inverse * (offsets[:, 0] @ left)) @ ways
    return Line(axis.to(planes), (point - (point @ axis) * axis).to(planes))


def crossings(planes: Float[Tensor, "k 4"]) -> Float[Tensor, "j 6"]:
    """The lines (axis, point) where two planes each meet, unless they are nearly parallel."""
    i, j = torch.triu_indices(len(planes), len(planes), 1)
    (n, d), (m, e) = planes[i].split((3, 1), -1), planes[j].split((3, 1), -1)
    axis = torch.linalg.cross(n, m)
    sine = axis.norm(dim=-1, keepdim=True)
    point = (d * torch.linalg.cross(m, axis) + e * torch.linalg.cross(axis, n)) / sine**2
    return torch.cat((axis / sine, point), 1)[sine[:, 0] > PARALLEL]


def likely_line(planes: Float[Tensor, "k 4"]) -> Line | None:
    """The line that most planes contain, if they are many."""
    lines = crossings(planes)
    if not len(lines):
        return None
    (axis, point), (normal, offset) = lines.split(3, -1), planes.split((3, 1), -1)
    tilt, off = axis @ normal.T, point @ normal.T - offset.T
    within = (tilt.abs() < NEAR) & (off.abs() < NEAR)
    most = within[within.sum(1).argmax()]
    return fitted(planes[most]) if most.sum() >= FEWEST else None


def tried_as_axis(line: Line, count: int, target: Target, hopeless: float) -> Axis:
    """The line, moved to where planes through it are better mirrors of so many points, if it is not
    hopeless."""
    axis = Axis(line, *_worst(line.planes(TRIED), count, target))
    if axis.residual > hopeless:
        return axis
    moved = fitted(refined(line.planes(FITTED, 0.5), count, target, STEPS).planes)
    other = Axis(moved, *_worst(moved.planes(TRIED), count, target))
    return min(axis, other, key=lambda each: each.residual)


def tried_as_center(line: Line, count: int, target: Target, generator: Generator) -> Axis:
    """Its point, with many random planes through it."""
    normals = torch.nn.functional.normalize(torch.randn(TRIED, 3, generator=generator), dim=-1)
    planes = through(line.point, normals)
    return Axis(line, *_worst(planes, count, target, corners=True), every=True)


def _worst(
    planes: Float[Tensor, "k 4"], count: int, target: Target, corners: bool = False
) -> tuple[float, float]:
    found = measured(planes, count, target, corners=corners)
    return float(found.residual.max()), float(found.worst.max())
