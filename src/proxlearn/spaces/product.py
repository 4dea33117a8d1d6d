"""Several spaces side by side."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.spaces.base import EDGE, Space, side_by_side


@dataclass(frozen=True, init=False)
class Product(Space):
    """Several spaces side by side: the coordinates of the first, then of the second, and so on."""

    kind = "product"
    parts: tuple[Space, ...]

    def __init__(self, *parts: Space):
        if not parts:
            raise InputError("Product needs at least one space, for instance Product(Sphere(3)).")
        object.__setattr__(self, "parts", parts)

    @property
    def dim(self) -> int:
        return sum(part.dim for part in self.parts)

    @property
    def diameter(self) -> float:
        return math.hypot(*(part.diameter for part in self.parts))

    @property
    def degrees(self) -> int:
        return sum(part.degrees for part in self.parts)

    def _split(self, x: Tensor) -> list[tuple[Space, Tensor]]:
        return list(zip(self.parts, x.split([part.dim for part in self.parts], -1)))

    def sample(self, *shape, generator=None, device="cpu"):
        return torch.cat(
            [part.sample(*shape, generator=generator, device=device) for part in self.parts], -1
        )

    def project(self, x):
        return torch.cat([part.project(piece) for part, piece in self._split(x)], -1)

    def retract(self, x):
        return torch.cat([part.retract(piece) for part, piece in self._split(x)], -1)

    def contains(self, x, edge=EDGE):
        return torch.stack([part.contains(piece, edge) for part, piece in self._split(x)]).all(0)

    @property
    def bounds(self):
        low, high = zip(*(part.bounds for part in self.parts))
        return sum(low, ()), sum(high, ())

    def tangent(self, x):
        return side_by_side([part.tangent(piece) for part, piece in self._split(x)])

    def squared_distance(self, x, y):
        pairs = zip(self._split(x), self._split(y))
        return torch.stack([part.squared_distance(a, b) for (part, a), (_, b) in pairs]).sum(0)

    @property
    def euclidean(self):
        return all(part.euclidean for part in self.parts)

    def pairwise(self, x, y):
        pairs = zip(self._split(x), self._split(y))
        squares = [part.pairwise(a, b).square() for (part, a), (_, b) in pairs]
        return torch.stack(squares).sum(0).sqrt()

    def to_unit(self, x):
        return torch.cat([part.to_unit(piece) for part, piece in self._split(x)], -1)

    def from_unit(self, x):
        return torch.cat([part.from_unit(piece) for part, piece in self._split(x)], -1)

    def settings(self):
        return {"parts": [part.describe() for part in self.parts]}

    @classmethod
    def rebuilt(cls, settings, rebuild):
        return cls(*map(rebuild, settings["parts"]))
