"""The planes of 3-D space, without sides."""

import math
from dataclasses import dataclass

import torch

from proxlearn.common.checks import positive
from proxlearn.spaces.base import EDGE, Space, across, side_by_side, unit_length


@dataclass(frozen=True)
class Planes(Space):
    """`S^2 x R>=0`: the plane `n . p = d` as (n, d), sampled with d up to `reach`.
    (n, d) and (-n, -d) are one plane; the distance is the shorter way of the two, so that planes
    through the origin are neighbours of their mirror images."""

    dim = 4
    euclidean = False
    reach: float = 1.0

    def __post_init__(self):
        object.__setattr__(self, "reach", positive("reach of Planes", self.reach))

    @property
    def diameter(self) -> float:
        return math.hypot(2.0, self.reach)

    @property
    def degrees(self) -> int:
        return 3

    def sample(self, *shape, generator=None, device="cpu"):
        normal = unit_length(torch.randn(*shape, 3, generator=generator, device=device))
        offset = self.reach * torch.rand(*shape, 1, generator=generator, device=device)
        return torch.cat((normal, offset), -1)

    def project(self, x):
        x = self.retract(x)
        return torch.cat((x[..., :3], x[..., 3:].clamp(max=self.reach)), -1)

    def retract(self, x):
        x = torch.where(x[..., 3:] < 0, -x, x)  # the same plane, described from its other side
        return torch.cat((unit_length(x[..., :3]), x[..., 3:]), -1)

    def contains(self, x, edge=EDGE):
        on_sphere = (x[..., :3].norm(dim=-1) - 1).abs() <= 2 * edge
        slack = edge * self.reach
        return on_sphere & (x[..., 3] >= -slack) & (x[..., 3] <= self.reach + slack)

    @property
    def bounds(self):
        return (-math.inf,) * 4, (math.inf,) * 3 + (self.reach,)  # d < 0 is the other side's d > 0

    def tangent(self, x):
        return side_by_side([across(x[..., :3]), torch.ones_like(x[..., 3:, None])])

    def squared_distance(self, x, y):
        return torch.minimum((x - y).square().sum(-1), (x + y).square().sum(-1))

    def pairwise(self, x, y):
        return torch.minimum(super().pairwise(x, y), super().pairwise(x, -y))
