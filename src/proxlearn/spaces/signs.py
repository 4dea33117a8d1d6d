"""The corners of a cube."""

import math
from dataclasses import dataclass

import torch

from proxlearn.spaces.base import EDGE, Space, size_of


@dataclass(frozen=True)
class Signs(Space):
    """`{-1, 1}^n`: the corners of a cube, between which there is no way."""

    n: int

    def __post_init__(self):
        object.__setattr__(self, "n", size_of("n of Signs", self.n))

    @property
    def dim(self) -> int:
        return self.n

    @property
    def diameter(self) -> float:
        return 2 * math.sqrt(self.n)

    @property
    def degrees(self) -> int:
        return 0

    def sample(self, *shape, generator=None, device="cpu"):
        return self.project(torch.rand(*shape, self.n, generator=generator, device=device) - 0.5)

    def project(self, x):
        return torch.where(x < 0, -1.0, 1.0).to(x)

    def retract(self, x):
        return x

    def contains(self, x, edge=EDGE):
        return ((x.abs() - 1).abs() <= 2 * edge).all(-1)

    def tangent(self, x):
        return x.new_zeros(*x.shape, 0)
