"""Unit vectors."""

from dataclasses import dataclass

import torch

from proxlearn.spaces.base import EDGE, Space, across, size_of, unit_length


@dataclass(frozen=True)
class Sphere(Space):
    """`S^(dim-1)`: unit vectors of `R^dim`."""

    dim: int

    def __post_init__(self):
        object.__setattr__(self, "dim", size_of("dim of Sphere", self.dim))

    @property
    def diameter(self) -> float:
        return 2.0

    @property
    def degrees(self) -> int:
        return self.dim - 1

    def sample(self, *shape, generator=None, device="cpu"):
        return unit_length(torch.randn(*shape, self.dim, generator=generator, device=device))

    def project(self, x):
        return unit_length(x)

    def contains(self, x, edge=EDGE):
        return (x.norm(dim=-1) - 1).abs() <= 2 * edge

    def tangent(self, x):
        return across(x)
