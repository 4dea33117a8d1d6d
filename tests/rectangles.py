"""What the tests of boxes share: an operator that goes to the bright rectangles of a picture."""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

import proxlearn as px
from proxlearn.answers.solutions import Solutions
from proxlearn.instances.image import Images
from proxlearn.networks.base import Network

SIDE = 64
SPACE = px.Box(0.0, 1.0, dim=4)


def painted(*boxes: tuple[int, int, int, int], size: tuple[int, int] = (60, 80)) -> np.ndarray:
    """A black picture (height, width, 3) with white rectangles (x, y, width, height)."""
    image = np.zeros((*size, 3), np.uint8)
    for x, y, width, height in boxes:
        image[y : y + height, x : x + width] = 255
    return image


class ToRectangles(Network):
    """Takes every point to the rectangle whose middle is nearest, a share of the way; rectangles
    are told apart by columns of the picture without any white."""

    def __init__(self, most: int = 8):
        super().__init__()
        self.most, self.speed = most, nn.Parameter(torch.tensor(0.9))

    def encode(self, observed: Float[Tensor, "i 3 s s"]) -> Float[Tensor, "i k 5"]:
        """The rectangles (cx, cy, w, h), and whether there is one."""
        rows = [self._rectangles(each[0] > 0.5) for each in observed]
        return torch.stack(rows)

    def _rectangles(self, white: Tensor) -> Float[Tensor, "k 5"]:
        found, side = torch.zeros(self.most, 5), white.shape[0]
        filled = white.any(0).tolist()
        edges = [k for k in range(side + 1) if (k < side and filled[k]) != (k and filled[k - 1])]
        for n, (left, right) in enumerate(zip(edges[::2], edges[1::2])):
            lines = white[:, left:right].any(1).nonzero()[:, 0]
            top, bottom = int(lines.min()), int(lines.max()) + 1
            box = (left + right, top + bottom, 2 * (right - left), 2 * (bottom - top))
            found[n] = torch.tensor([each / 2 / side for each in box] + [1.0])
        return found

    def prepare(self, code, lam):
        return code

    def forward(self, x, prepared):
        """In unit coordinates, from -1 to 1; where there is no rectangle, points stay."""
        boxes, there = 2 * prepared[..., :4] - 1, prepared[..., 4] > 0
        far = torch.cdist(x[..., :2], boxes[..., :2]).masked_fill(~there[:, None], torch.inf)
        goal = boxes.gather(1, far.argmin(-1)[..., None].expand(x.shape))
        goal = torch.where(there.any(1)[:, None, None], goal, x)
        return torch.lerp(x, goal, self.speed.to(x))


def to_rectangles(**provenance: object) -> px.Operator:
    return px.Operator(
        SPACE, Images(SIDE), ToRectangles(), lam=1.0, applications=8, provenance=provenance
    )


def solutions_at(*points: tuple[float, ...], quality: list[float] | None = None) -> Solutions:
    """Solutions of one picture."""
    x = torch.tensor(points)[None]
    found = Solutions.of(SPACE, x, x)
    return found if quality is None else replace(found, quality=torch.tensor([quality]))
