"""A product of unit circles."""

import math
from dataclasses import dataclass

import torch

from proxlearn.spaces.base import EDGE, Space, size_of, unit_length


@dataclass(frozen=True)
class Circles(Space):
    """`(S^1)^n`: n unit vectors of the plane, one after the other, in `R^2n`."""

    n: int

    def __post_init__(self):
        object.__setattr__(self, "n", size_of("n of Circles", self.n))

    @property
    def dim(self) -> int:
        return 2 * self.n

    @property
    def diameter(self) -> float:
        return 2 * math.sqrt(self.n)

    @property
    def degrees(self) -> int:
        return self.n

    def sample(self, *shape, generator=None, device="cpu"):
        angle = 2 * math.pi * torch.rand(*shape, self.n, generator=generator, device=device)
        return torch.stack((angle.cos(), angle.sin()), -1).flatten(-2)

    def project(self, x):
        return unit_length(x.unflatten(-1, (self.n, 2))).flatten(-2)

    def contains(self, x, edge=EDGE):
        return ((x.unflatten(-1, (self.n, 2)).norm(dim=-1) - 1).abs() <= 2 * edge).all(-1)

    def tangent(self, x):
        u, v = x.unflatten(-1, (self.n, 2)).unbind(-1)
        own = torch.eye(self.n, dtype=x.dtype, device=x.device)[:, None]
        return (torch.stack((-v, u), -1)[..., None] * own).flatten(-3, -2)

    def with_size(self, parts):
        return Circles(parts)
