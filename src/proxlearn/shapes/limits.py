"""How far from a shape its moved points may be where the move is a symmetry."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from proxlearn.shapes.families import Line
from proxlearn.shapes.refine import Angles, Measured, measured
from proxlearn.shapes.target import Target
from proxlearn.spaces.base import across

FARTHEST = 10.0  # times the tolerance, that single points may be off
SIDES = 8  # directions across a line in which the shape is measured


@dataclass(frozen=True)
class Limits:
    """The tolerance is in parts of how far the shape reaches in the direction in which its points
    are moved, and at most of its size: of a thin sheet, half a thickness is much."""

    target: Target
    tolerance: float

    def of(self, planes: Float[Tensor, "k d"]) -> Float[Tensor, " k"]:
        """The largest residual of a symmetry, for planes or for lines."""
        return self.target.noise + self.tolerance * self.reach(planes)

    def reach(self, planes: Float[Tensor, "k d"]) -> Float[Tensor, " k"]:
        """How far the shape reaches along the normal of planes; across lines, where it reaches the
        least."""
        if planes.shape[-1] == 4:
            return self._extent(planes[:, :3]).clamp(max=1.0)
        angle = torch.pi / SIDES * torch.arange(SIDES).to(planes)
        around = torch.stack((angle.cos(), angle.sin()))  # (2 s)
        ways = (across(planes[:, :3]) @ around).mT  # (k s 3)
        return self._extent(ways).amin(-1).clamp(max=1.0)

    def _extent(self, ways: Float[Tensor, "*k 3"]) -> Float[Tensor, "*k"]:
        along = ways @ self.target.cloud[:, :3].T
        return along.amax(-1) - along.amin(-1)

    def met(self, found: Measured) -> Bool[Tensor, " k"]:
        """Which of them are symmetries on average."""
        return found.residual <= self.of(found.planes)

    def probed(self, found: Measured, angle: Angles | None = None) -> Measured:
        """With the farthest of the shape's corners, too: a small feature has many of them, and
        hardly adds to a mean."""
        if not len(self.target.corners):
            return found
        worst = measured(found.planes, self.target.corners, self.target, angle).worst
        return found._replace(worst=torch.maximum(found.worst, worst))

    def even(self, found: Measured) -> Bool[Tensor, " k"]:
        """Which are symmetries in every place. The farthest points of a cloud are noise."""
        if self.target.noise:
            return torch.ones_like(found.worst, dtype=torch.bool)
        return found.worst <= FARTHEST * self.tolerance * self.reach(found.planes)

    def about(self, line: Line) -> float:
        """The largest residual of all planes through a line, or of turns about it."""
        return float(self.of(torch.cat(line)[None]))
