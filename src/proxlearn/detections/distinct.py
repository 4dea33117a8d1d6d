"""From the solutions of pictures to their distinct boxes, best first."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn.functional import pad

from proxlearn.answers.solutions import Solutions
from proxlearn.common.batch import Device, Flags, Points, Values
from proxlearn.detections.modes import along, at_front, modes_of, not_near_better
from proxlearn.errors import InputError
from proxlearn.images.boxes import corners, from_corners, overlaps

SAME = 0.65  # of the IoU: boxes that overlap so much are of one thing
POWER = 0.1  # of the share of the starts, in a score
AT_ONCE = 1 << 25  # distances held at once: 128 MiB


@dataclass(frozen=True)
class DistinctBoxes:
    """The boxes of every picture as (cx, cy, w, h) in unit sides, best first; each row is filled up
    with boxes that are not `real`, of share and score 0."""

    boxes: Float[Tensor, "i k 4"]
    real: Bool[Tensor, "i k"]
    share: Float[Tensor, "i k"]  # of the starts
    score: Float[Tensor, "i k"]

    def __len__(self) -> int:
        """How many pictures."""
        return len(self.boxes)

    def to(self, device: Device) -> "DistinctBoxes":
        """The same on another device."""
        rows = (self.boxes, self.real, self.share, self.score)
        return DistinctBoxes(*(each.to(device) for each in rows))

    def above(self, threshold: float) -> "DistinctBoxes":
        """Those with at least this score."""
        return DistinctBoxes(
            self.boxes, self.real & (self.score >= threshold), self.share, self.score
        )


def distinct_boxes(solutions: Solutions) -> DistinctBoxes:
    """What the solutions of each picture stand for: points that gather at one place, by mean shift,
    are one box, and so are boxes that overlap by `SAME`, of which the best remains with the shares
    of all. Points outside the space and boxes without an area count for nothing."""
    if solutions.space.dim != 4:
        raise InputError(
            f"Boxes are points (cx, cy, w, h), but these solutions live on {solutions.space}."
        )
    some = max(1, AT_ONCE // solutions.points.shape[1] ** 2)
    parts = (_distinct(solutions[k : k + some]) for k in range(0, len(solutions), some))
    return together(parts)


def together(parts: Iterable[DistinctBoxes]) -> DistinctBoxes:
    """Those of several batches as one."""
    parts = list(parts)
    wide = max(each.boxes.shape[1] for each in parts)
    names = ("boxes", "real", "share", "score")
    rows = [[_widened(getattr(each, name), wide) for each in parts] for name in names]
    return DistinctBoxes(*map(torch.cat, rows))


def _distinct(solutions: Solutions) -> DistinctBoxes:
    points = solutions.points
    counts = solutions.inside & (points[..., 2:] > 0).all(-1)
    modes = modes_of(points, counts)
    hits = _summed(counts.to(points), modes.of_point, modes.real)
    share, quality = hits / points.shape[1], None
    if solutions.quality is not None:
        rated = torch.where(counts, solutions.quality, 0)  # that of a lost point may be no number
        quality = _summed(rated, modes.of_point, modes.real) / hits.clamp(min=1)
    inside = from_corners(corners(modes.places).clamp(0, 1))  # what of the boxes is in the picture
    return _merged(inside, modes.real, share, quality)


def _merged(boxes: Points, real: Flags, share: Values, quality: Values | None) -> DistinctBoxes:
    """Boxes that overlap with a better one give their share to it."""
    real = real & (boxes[..., 2:] > 0).all(-1)
    good = torch.ones_like(share) if quality is None else quality
    power = 1.0 if quality is None else POWER
    boxes, good, share, real = _ordered(good * share**power, real, boxes, good, share)
    close = overlaps(boxes, boxes) >= SAME
    keep = not_near_better(close, real)
    taker = (close & keep[..., None]).long().argmax(1)  # the first, which is the best
    share = _summed(share * real, taker, keep)
    score = good * share**power
    boxes, share, score, real = _ordered(score, keep, boxes, share, score)
    return DistinctBoxes(boxes, real, share * real, score * real)


def _ordered(score: Values, real: Flags, *rows: Tensor) -> tuple[Tensor, ...]:
    """Rows by their scores, the best first; and, last, which are real then: those at the front."""
    order = score.masked_fill(~real, -1.0).argsort(dim=1, descending=True, stable=True)
    sorted_rows = [along(each, order) for each in rows]
    return at_front(along(real, order), *sorted_rows)


def _summed(
    numbers: Values, owner: Int64[Tensor, "i n"], real: Bool[Tensor, "i k"]
) -> Float[Tensor, "i k"]:
    """The sum of the numbers of each owner."""
    return torch.zeros_like(real, dtype=numbers.dtype).scatter_add(1, owner, numbers) * real


def _widened(rows: Tensor, wide: int) -> Tensor:
    """Rows (i k ...) with zeros behind, as wide as that."""
    behind = (0, wide - rows.shape[1])
    return pad(rows, behind if rows.ndim == 2 else (0, 0, *behind))
