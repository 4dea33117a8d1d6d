"""What is done to a shape to see whether it stays the same: how its points move with a plane that
they are reflected in, or with a line that they are turned about."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.spaces import Lines, Planes, Space


class Move(ABC):
    """A way of moving points by elements x of a space."""

    space: Space

    @abstractmethod
    def moved(
        self, x: Float[Tensor, "i n d"], points: Float[Tensor, "i k 3"]
    ) -> Float[Tensor, "i n m 3"]:
        """The points, moved by each x; m is k, or a multiple of it."""

    @abstractmethod
    def slopes(
        self,
        x: Float[Tensor, "i n d"],
        basis: Float[Tensor, "i n d t"],
        points: Float[Tensor, "i k 3"],
        ways: Float[Tensor, "i n m 3"],
    ) -> Float[Tensor, "i n m t"]:
        """How far along these ways moved points go, for every way of the basis that x can go."""


@dataclass(frozen=True)
class Reflecting(Move):
    """In the plane (n, d): `p - 2 (n . p - d) n`."""

    space = Planes()

    def moved(self, x, points):
        normal, points = x[..., None, :3], points[:, None].to(x)
        height = (points * normal).sum(-1, keepdim=True) - x[..., None, 3:]
        return points - 2 * height * normal

    def slopes(self, x, basis, points, ways):
        """Of two turns of the normal and a shift."""
        normal, turns = x[..., :3, None], basis[..., :3, :2]
        height = points[:, None] @ normal - x[..., None, 3:]  # (i n k 1)
        up = ways @ normal
        return 2 * torch.cat((-(points[:, None] @ turns) * up - height * (ways @ turns), up), -1)


@dataclass(frozen=True)
class Turning(Move):
    """About the line (u, c) by an angle, both ways, since a line has no direction: the first half
    of the moved points is turned one way, the second half the other."""

    angle: Float[Tensor, "i #n"]
    space = Lines()

    def moved(self, x, points):
        axis, center = x[..., None, :].split(3, -1)
        arm = points[:, None].to(x) - center
        return center + torch.cat([self._turned(axis, arm, way) for way in (1, -1)], 2)

    def slopes(self, x, basis, points, ways):
        """With the arm r of a moved point and its way w, that of u is `(1 - R^T) v`, where v is
        `(u . r) w - (u . w) r`, and that of c is `(1 - R^T) w`."""
        axis, center = x[..., None, :].split(3, -1)
        arms = self.moved(x, points) - center
        turn = (arms * axis).sum(-1, keepdim=True) * ways - (ways * axis).sum(
            -1, keepdim=True
        ) * arms
        found = []
        for way, some in zip((1, -1), zip(turn.chunk(2, 2), ways.chunk(2, 2))):
            both = [each - self._turned(axis, each, -way) for each in some]
            found.append(torch.cat(both, -1) @ basis)
        return torch.cat(found, 2)

    def _turned(self, axis: Tensor, vectors: Tensor, way: int) -> Tensor:
        """Vectors (i n k 3) turned about an axis (i n 1 3)."""
        angle = way * self.angle.to(axis)[..., None, None]
        along = (vectors * axis).sum(-1, keepdim=True) * axis
        sideways = torch.linalg.cross(axis.expand_as(vectors), vectors)
        return along + angle.cos() * (vectors - along) + angle.sin() * sideways
