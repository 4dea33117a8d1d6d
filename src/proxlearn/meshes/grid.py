"""A grid over a mesh: the triangle nearest to each of its corners.

A point is compared with the nearest triangles of the 8 corners of its cell, which almost always
has the nearest among them: the distance to those is exact, where a grid of distances would be
interpolated.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

REACH = (
    0.75  # the grid covers [-REACH, REACH]^3: a scaled mesh, and a quarter of its size around it
)


def corners(side: int, device: torch.device) -> Float[Tensor, "c 3"]:
    """The corners of a grid with `side` of them along each axis."""
    along = torch.linspace(-REACH, REACH, side, device=device)
    return torch.cartesian_prod(along, along, along)


def around(points: Float[Tensor, "n 3"], side: int) -> Int64[Tensor, "n 8"]:
    """The indices of the 8 corners of the cell that each point is in, or is nearest to."""
    low = (points + REACH) * ((side - 1) / (2 * REACH))
    low = low.clamp(0, side - 2).nan_to_num(0.0).long()
    strides = torch.tensor([side * side, side, 1], device=points.device)
    steps = torch.cartesian_prod(*torch.arange(2, device=points.device).expand(3, 2))
    return (low @ strides)[:, None] + steps @ strides


def smallest_integers(most: int) -> torch.dtype:
    """The type with the fewest bits that holds indices below `most`."""
    return torch.int16 if most <= torch.iinfo(torch.int16).max + 1 else torch.int32
