"""Boxes in a picture of unit sides, as (cx, cy, w, h): the middle, the width and the height."""

import torch
from jaxtyping import Float
from torch import Tensor

Boxes = Float[Tensor, "*n 4"]


def corners(boxes: Boxes) -> Boxes:
    """The same as (left, top, right, bottom)."""
    middle, size = boxes.split(2, -1)
    return torch.cat((middle - size / 2, middle + size / 2), -1)


def from_corners(sides: Boxes) -> Boxes:
    """The inverse of `corners`."""
    low, high = sides.split(2, -1)
    return torch.cat(((low + high) / 2, high - low), -1)


def clipped(boxes: Boxes) -> Boxes:
    """What of the boxes is in the picture."""
    return from_corners(corners(boxes).clamp(0, 1))


def overlap(some: Float[Tensor, "*i n 4"], others: Float[Tensor, "*i m 4"]) -> Tensor:
    """The intersection over union (IoU) of every box with each of others, (*i n m); boxes without
    an area overlap with nothing."""
    a, b = corners(some)[..., :, None, :], corners(others)[..., None, :, :]
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    both = (high - low).clamp(min=0).prod(-1)
    area = [each[..., 2:].clamp(min=0).prod(-1) for each in (some, others)]
    union = area[0][..., :, None] + area[1][..., None, :] - both
    return torch.where(union > 0, both / union.clamp(min=1e-30), 0)
