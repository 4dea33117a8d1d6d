"""Mean shift (Comaniciu and Meer, 2002) with a flat kernel, for many sets of points at once: where
points gather, and which belong together.

Every cell of a grid that holds a point has a seed. A seed goes to the mean of the points within the
bandwidth until it rests; of modes nearer to each other than that, the one with most points remains,
and a point belongs to the nearest one that does.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from proxlearn.common.batch import Flags, Points, first_those
from proxlearn.spaces.base import distances

BANDWIDTH = 0.01  # of boxes in a picture of unit sides
MOST_STEPS = 300
RESTS = 1e-3  # times the bandwidth: a seed that moves less rests


class Modes(NamedTuple):
    """The modes of every set, the one with most points first."""

    places: Float[Tensor, "i m d"]
    real: Bool[Tensor, "i m"]  # the others fill up the rows
    of_point: Int64[Tensor, "i n"]  # its mode; any number for a point that does not count


def modes_of(points: Points, counts: Flags, bandwidth: float = BANDWIDTH) -> Modes:
    """The modes of the points of each set that count."""
    points = torch.where(counts[..., None], points, 0)
    places, real = seeds(points, counts, bandwidth)
    for _ in range(MOST_STEPS):
        within = ((distances(places, points) <= bandwidth) & counts[:, None]).to(points)
        held = within.sum(-1, keepdim=True)
        moved = torch.where(held > 0, within @ points / held.clamp(min=1), places)
        farthest, places = (moved - places).abs().amax(), moved
        if farthest <= RESTS * bandwidth:
            break
    near = (distances(places, points) <= bandwidth) & counts[:, None]
    order = torch.where(real, near.sum(-1), -1).argsort(dim=1, descending=True, stable=True)
    places, real = along(places, order), along(real, order)
    real = not_near_better(distances(places, places) <= bandwidth, real)
    places, real = at_front(real, places)
    far = distances(points, places).masked_fill(~real[:, None], torch.inf)
    return Modes(places, real, far.argmin(-1))


def seeds(
    points: Points, counts: Flags, width: float
) -> tuple[Float[Tensor, "i s d"], Bool[Tensor, "i s"]]:
    """The middle of every cell of a grid that holds a point which counts, and which are real."""
    count, _, dim = points.shape
    cells = (points / width).round().long()
    low = cells.amin((0, 1))
    cells = cells - low
    sides = (cells.amax((0, 1)) + 1).tolist()
    key = torch.arange(count, device=points.device)[:, None].expand(counts.shape)
    for k, side in enumerate(sides):  # one number says which set and which cell
        key = key * side + cells[..., k]
    key, found = key[counts].unique(), []
    for side in reversed(sides):
        found.append(key % side)
        key = key // side
    middles = (torch.stack(found[::-1], -1) + low) * width
    many = torch.bincount(key, minlength=count)
    place = torch.arange(len(key), device=key.device) - (many.cumsum(0) - many)[key]
    real = torch.arange(max(1, int(many.max())), device=key.device) < many[:, None]
    padded = points.new_zeros(*real.shape, dim)
    padded[key, place] = middles.to(points)
    return padded, real


def not_near_better(close: Bool[Tensor, "i k k"], real: Bool[Tensor, "i k"]) -> Bool[Tensor, "i k"]:
    """Of every row, those that are not close to an earlier one which is kept. A round settles at
    least one more of each row, and mostly nearly all of them."""
    before, keep = close.tril(-1), real
    while True:
        now = real & ~(before & keep[:, None]).any(-1)
        if torch.equal(now, keep):
            return keep
        keep = now


def at_front(real: Bool[Tensor, "i k"], *rows: Tensor) -> tuple[Tensor, ...]:
    """Rows with those that are real at the front, in their order, as wide as it takes, but one at
    least; and, last, which are real then."""
    order = first_those(real)
    wide = max(1, int(real.sum(1).max()))
    return tuple(along(each, order[:, :wide]) for each in (*rows, real))


def along(rows: Tensor, order: Int64[Tensor, "i m"]) -> Tensor:
    """Numbers or points of each row in an order: (i k ...) -> (i m ...)."""
    if rows.ndim == 3:
        order = order[..., None].expand(-1, -1, rows.shape[-1])
    return rows.gather(1, order)
