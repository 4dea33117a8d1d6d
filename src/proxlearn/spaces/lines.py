"""The lines of 3-D space, without directions."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.common.checks import positive
from proxlearn.spaces.base import EDGE, Space, across, unit_length

HALVINGS = {torch.float32: 26, torch.float64: 54}  # until an angle is as exact as its numbers


@dataclass(frozen=True)
class Lines(Space):
    """The line through p along the unit vector u as (u, p), where p is its point nearest to 0:
    `p . u = 0`, and `|p|` is up to `reach`. (u, p) and (-u, p) are one line; the distance is the
    shorter way of the two."""

    dim = 6
    euclidean = False
    reach: float = 1.0

    def __post_init__(self):
        object.__setattr__(self, "reach", positive("reach of Lines", self.reach))

    @property
    def diameter(self) -> float:
        return math.hypot(math.sqrt(2.0), 2 * self.reach)

    @property
    def degrees(self) -> int:
        return 4

    def sample(self, *shape, generator=None, device="cpu"):
        own = {"generator": generator, "device": device}
        axis = unit_length(torch.randn(*shape, 3, **own))
        angle = 2 * torch.pi * torch.rand(*shape, 1, **own)
        radius = self.reach * torch.rand(*shape, 1, **own).sqrt()
        disc = radius * torch.cat((angle.cos(), angle.sin()), -1)
        return torch.cat((axis, (across(axis) @ disc[..., None])[..., 0]), -1)

    def project(self, x):
        axis, point = _nearest(x[..., :3], x[..., 3:], self.reach).split(3, -1)
        length = point.norm(dim=-1, keepdim=True).clamp(min=self.reach)
        return torch.cat((axis, point * (self.reach / length)), -1)

    def retract(self, x):
        axis, point = unit_length(x[..., :3]), x[..., 3:]
        return torch.cat((axis, _beside(point, axis)), -1)

    def contains(self, x, edge=EDGE):
        axis, point = x.split(3, -1)
        slack = edge * self.reach
        on_sphere = (axis.norm(dim=-1) - 1).abs() <= 2 * edge
        nearest = (axis * point).sum(-1).abs() <= 2 * slack
        return on_sphere & nearest & (point.norm(dim=-1) <= self.reach + slack)

    def tangent(self, x):
        """Two turns, each with the shift that keeps p at right angles, then two shifts."""
        axis, point = x.split(3, -1)
        sideways = across(axis)
        along = (point[..., None, :] @ sideways).mT  # of p, (..., 2, 1)
        length = (1 + along.square().sum((-2, -1), keepdim=True)).sqrt()
        # The square root of the inverse of 1 + along along^T, which makes the turns orthonormal.
        even = torch.eye(2, dtype=x.dtype, device=x.device) - along @ along.mT / (
            length * (length + 1)
        )
        turns = torch.cat((sideways, -axis[..., None] @ along.mT), -2) @ even
        shifts = torch.cat((torch.zeros_like(sideways), sideways), -2)
        return torch.cat((turns, shifts), -1)

    def squared_distance(self, x, y):
        (u, p), (v, q) = x.split(3, -1), y.split(3, -1)
        turn = torch.minimum((u - v).square().sum(-1), (u + v).square().sum(-1))
        return turn + (p - q).square().sum(-1)

    def pairwise(self, x, y):
        other = torch.cat((-y[..., :3], y[..., 3:]), -1)
        return torch.minimum(super().pairwise(x, y), super().pairwise(x, other))


def _nearest(axis: Tensor, point: Tensor, reach: float) -> Tensor:
    """Of all (u, p) with p at right angles to u and `|p| <= reach`, the nearest u, with what p is
    before it is brought within reach.

    Up to its sign, the best u is in the plane of both, at an angle of 0 to 90 degrees from the
    point. With the axis (a, b) in that plane, and q for the point's length, the distance falls with
    the angle while `a sin < cos (b + q min(q sin, reach))`, and rises from there on: the angle is
    found by halving.
    """
    length, first = point.norm(dim=-1, keepdim=True), unit_length(point)
    along = (axis * first).sum(-1, keepdim=True)
    sign, a = torch.where(along < 0, -1.0, 1.0), along.abs()
    aside = sign * _beside(axis, first)
    b = aside.norm(dim=-1, keepdim=True)
    second = torch.where(b > 1e-6 * a, aside / b.clamp(min=1e-12), across(first)[..., 0])
    low, high = torch.zeros_like(a), torch.full_like(a, torch.pi / 2)
    for _ in range(HALVINGS.get(a.dtype, 26)):
        angle = (low + high) / 2
        within = (length * angle.sin()).clamp(max=reach)
        falls = a * angle.sin() < angle.cos() * (b + length * within)
        low, high = torch.where(falls, angle, low), torch.where(falls, high, angle)
    found = sign * unit_length(high.cos() * first + high.sin() * second)
    return torch.cat((found, _beside(point, found)), -1)


def _beside(vector: Tensor, axis: Tensor) -> Tensor:
    """What is at right angles to a unit vector."""
    return vector - (vector * axis).sum(-1, keepdim=True) * axis
