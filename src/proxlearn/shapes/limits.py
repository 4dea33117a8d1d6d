"""How far from a shape its moved points may be where the move is a symmetry."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from proxlearn.shapes.families import Line
from proxlearn.shapes.refine import Measured
from proxlearn.shapes.target import Places, Target
from proxlearn.spaces.base import across

FARTHEST = 5.0  # times the tolerance, that single points may be off


@dataclass(frozen=True)
class Limits:
    """The tolerance is in parts of how far the shape reaches in the direction in which its points
    are moved, and at most of its size: of a thin sheet, half a thickness is much. Of a cloud, it is
    in parts of the size: there it also stands for how much the noise varies."""

    target: Target
    tolerance: float

    @property
    def of_size(self) -> tuple[float, float]:
        """The largest residual of any symmetry, and how far single points may be."""
        told = self.target.exact and self.target.sure
        return self.target.noise + self.tolerance, FARTHEST * self.tolerance if told else math.inf

    def of(self, planes: Float[Tensor, "k d"]) -> Float[Tensor, " k"]:
        """The largest residual of a symmetry, for planes or for lines."""
        return self.target.noise + self.tolerance * self.reach(planes)

    def reach(self, planes: Float[Tensor, "k d"]) -> Float[Tensor, " k"]:
        """How far the shape reaches along the normal of planes; across lines, where it reaches the
        least."""
        if not self.target.exact:
            return torch.ones_like(planes[:, 0])
        points, ways = self.target.cloud[:, :3], planes[:, None, :3]
        if planes.shape[-1] == 6:
            ways = _thinnest(across(planes[:, :3]), points)
        along = (ways @ points.T)[:, 0]
        return (along.amax(-1) - along.amin(-1)).clamp(max=1.0)

    def met(self, found: Measured) -> Bool[Tensor, " k"]:
        """Which of them are symmetries on average."""
        return self.judged(found)[0]

    def even(self, found: Measured) -> Bool[Tensor, " k"]:
        """Which are symmetries in every place. Single points of a cloud may be noise, however far
        they are, and a distance that is not sure to be right may be too long."""
        return self.judged(found)[1]

    def judged(self, found: Measured) -> tuple[Bool[Tensor, " k"], Bool[Tensor, " k"]]:
        """Both of these."""
        reach, (_, farthest) = self.reach(found.planes), self.of_size
        met = found.residual <= self.target.noise + self.tolerance * reach
        return met, found.worst <= farthest * reach

    def about(self, line: Line) -> tuple[float, float]:
        """The largest residual of all planes through a line, or of turns about it, and how far
        single points may be."""
        reach = float(self.reach(torch.cat(line)[None]))
        return self.target.noise + self.tolerance * reach, self.of_size[1] * reach


def _thinnest(around: Float[Tensor, "k 3 2"], points: Places) -> Float[Tensor, "k 1 3"]:
    """Of the directions between two, the one along which points are spread the least."""
    x, y = ((points - points.mean(0)) @ around).unbind(-1)  # (k n)
    angle = torch.atan2(2 * (x * y).sum(-1), (x * x - y * y).sum(-1)) / 2  # of the most
    least = torch.stack((-angle.sin(), angle.cos()), -1)
    return least[:, None] @ around.mT
