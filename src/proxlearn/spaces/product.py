"""Several spaces side by side."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.common.checks import said
from proxlearn.errors import InputError
from proxlearn.spaces.base import EDGE, Space, side_by_side


@dataclass(frozen=True, init=False)
class Product(Space):
    """Several spaces side by side: the coordinates of the first, then of the second, and so on."""

    parts: tuple[Space, ...]

    def __init__(self, *parts: Space):
        if not parts:
            raise InputError("Product needs at least one space, for instance Product(Sphere(3)).")
        for part in parts:
            if not isinstance(part, Space):
                raise InputError(
                    f"Product is of spaces, for instance Product(Sphere(3), Circles(2)), and "
                    f"{said(part)} is none."
                )
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

    def _each(self, method: str, *xs: Tensor, **more: float) -> list[Tensor]:
        """What a method of every part makes of the part's own coordinates."""
        own = zip(*(x.split([part.dim for part in self.parts], -1) for x in xs))
        return [getattr(part, method)(*pieces, **more) for part, pieces in zip(self.parts, own)]

    def sample(self, *shape, generator=None, device="cpu"):
        own = [part.sample(*shape, generator=generator, device=device) for part in self.parts]
        return torch.cat(own, -1)

    def project(self, x):
        return torch.cat(self._each("project", x), -1)

    def retract(self, x):
        return torch.cat(self._each("retract", x), -1)

    def contains(self, x, edge=EDGE):
        return torch.stack(self._each("contains", x, edge=edge)).all(0)

    @property
    def bounds(self):
        low, high = zip(*(part.bounds for part in self.parts))
        return sum(low, ()), sum(high, ())

    @property
    def closed(self):
        return any(part.closed for part in self.parts)

    @property
    def opened(self):
        return Product(*(part.opened for part in self.parts))

    def tangent(self, x):
        return side_by_side(self._each("tangent", x))

    def squared_distance(self, x, y):
        return torch.stack(self._each("squared_distance", x, y)).sum(0)

    @property
    def euclidean(self):
        return all(part.euclidean for part in self.parts)

    def pairwise(self, x, y):
        return torch.stack(self._each("pairwise", x, y)).square().sum(0).sqrt()

    def to_unit(self, x):
        return torch.cat(self._each("to_unit", x), -1)

    def from_unit(self, x):
        return torch.cat(self._each("from_unit", x), -1)

    def settings(self):
        return {"parts": [part.describe() for part in self.parts]}

    @classmethod
    def rebuilt(cls, settings, rebuild):
        return cls(*map(rebuild, settings["parts"]))
