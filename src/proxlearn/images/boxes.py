"""Boxes (cx, cy, w, h), in parts of the image: its left upper corner is (0, 0)."""

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from proxlearn.common.batch import first_those

Boxes = Float[Tensor, "*n 4"]


def corners(boxes: Boxes) -> Boxes:
    """(left, top, right, bottom)."""
    center, half = boxes[..., :2], boxes[..., 2:] / 2
    return torch.cat((center - half, center + half), -1)


def from_corners(corners: Boxes) -> Boxes:
    """What `corners` took apart."""
    low, high = corners[..., :2], corners[..., 2:]
    return torch.cat(((low + high) / 2, high - low), -1)


def areas(boxes: Boxes) -> Float[Tensor, "*n"]:
    """A negative side counts as none."""
    return boxes[..., 2:].clamp(min=0).prod(-1)


def shared_areas(
    some: Float[Tensor, "*i n 4"], others: Float[Tensor, "*i k 4"]
) -> Float[Tensor, "*i n k"]:
    """What every two boxes of two sets have in common."""
    a, b = corners(some)[..., :, None, :], corners(others)[..., None, :, :]
    low = torch.maximum(a[..., :2], b[..., :2])
    return (torch.minimum(a[..., 2:], b[..., 2:]) - low).clamp(min=0).prod(-1)


def overlaps(
    some: Float[Tensor, "*i n 4"], others: Float[Tensor, "*i k 4"]
) -> Float[Tensor, "*i n k"]:
    """The intersection over union (IoU) of every two boxes of two sets; 0 where both are empty."""
    shared = shared_areas(some, others)
    union = areas(some)[..., :, None] + areas(others)[..., None, :] - shared
    return shared / union.clamp(min=torch.finfo(union.dtype).tiny)


def real(count: Int[Tensor, " i"], most: int) -> Bool[Tensor, "i k"]:
    """Which rows are boxes, and no padding, where the first `count` of `most` are."""
    return torch.arange(most, device=count.device) < count[:, None]


def in_front(
    kept: Bool[Tensor, "i k"], rows: Shaped[Tensor, "i k ..."]
) -> Shaped[Tensor, "i k ..."]:
    """The rows that are kept first, in their order, then zeros."""
    order = first_those(kept)
    wide = (*kept.shape, *(1,) * (rows.ndim - 2))
    rows = torch.where(kept.view(wide), rows, torch.zeros_like(rows))
    return rows.gather(1, order.view(wide).expand_as(rows))
