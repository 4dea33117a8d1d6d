"""Planes made exact: `mean |R p - S|` has kinks where a symmetry is, so that neither gradients nor
Newton steps lead there; least squares, reweighted by the distances themselves, do."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from proxlearn.meshes.distance import Surface, Which
from proxlearn.spaces import Planes

STEPS = 60
STILL = 1e-9  # a step that is shorter is none
SHARP = (1e-2, 1e-7)  # distances below this weigh alike: at first, and in the end
DAMPING = (1e-3, 1e-9, 1e6)  # at first, least and most
SURE = 1e-9  # a distance below which its direction is that of the triangle's normal
LONGEST = 0.05  # how far a step turns or shifts a plane


class Seen(NamedTuple):
    """The reflected points of planes: how far from the surface, and how that changes with every
    way that a plane can move."""

    distance: Float[Tensor, "i n k"]
    slope: Float[Tensor, "i n k 3"]


@torch.no_grad()
def refined(
    space: Planes,
    surface: Surface,
    which: Which,
    planes: Float[Tensor, "i n 4"],
    points: Float[Tensor, "i k 3"],
) -> Float[Tensor, "i n 4"]:
    """Planes moved to the minima of the mean distance nearby, never uphill; points are of the
    surface, and of its precision are the planes."""
    first, last = SHARP
    damping = torch.full_like(planes[..., :1], DAMPING[0])
    basis = space.tangent(planes)
    seen = look(surface, which, planes, basis, points)
    for k in range(STEPS):
        sharp = first * (last / first) ** min(1.0, 1.5 * k / STEPS)
        step = _step(seen, sharp, damping)
        trial = space.retract(planes + (basis @ step[..., None])[..., 0])
        ahead = space.tangent(trial)
        found = look(surface, which, trial, ahead, points)
        lower = found.distance.mean(-1) < seen.distance.mean(-1)
        planes, basis = _where(lower, trial, planes), _where(lower, ahead, basis)
        seen = Seen(*(_where(lower, new, old) for new, old in zip(found, seen)))
        damping = torch.where(lower[..., None], damping / 5, damping * 10).clamp(*DAMPING[1:])
        if not (step.norm(dim=-1) > STILL).any():
            break
    return planes


def look(
    surface: Surface,
    which: Which,
    planes: Float[Tensor, "i n 4"],
    basis: Float[Tensor, "i n 4 3"],
    points: Float[Tensor, "i k 3"],
) -> Seen:
    """What planes see of the surface."""
    moved = reflected(planes, points)
    near = surface.nearest(moved.flatten(1, 2), which)
    way = moved - near.point.view(moved.shape)
    face = surface.first[which, None] + near.triangle
    facing = surface.triangles[face][..., 3, :].view(moved.shape).to(moved)
    distance = near.distance.view(moved.shape[:-1])
    direction = torch.where(distance[..., None] > SURE, way / distance[..., None], facing)
    return Seen(distance, slopes(planes, basis, points, direction))


def reflected(
    planes: Float[Tensor, "i n 4"], points: Float[Tensor, "i k 3"]
) -> Float[Tensor, "i n k 3"]:
    """The points, reflected in each of the planes."""
    normal, points = planes[..., None, :3], points[:, None].to(planes)
    height = (points * normal).sum(-1, keepdim=True) - planes[..., None, 3:]
    return points - 2 * height * normal


def slopes(
    planes: Float[Tensor, "i n 4"],
    basis: Float[Tensor, "i n 4 3"],
    points: Float[Tensor, "i k 3"],
    ways: Float[Tensor, "i n k 3"],
) -> Float[Tensor, "i n k 3"]:
    """How far along these ways reflected points go, for every way that a plane can move: two turns
    of its normal and a shift."""
    normal, turns = planes[..., :3, None], basis[..., :3, :2]
    height = points[:, None] @ normal - planes[..., None, 3:]  # (i n k 1)
    up = ways @ normal
    return 2 * torch.cat((-(points[:, None] @ turns) * up - height * (ways @ turns), up), -1)


def _step(seen: Seen, sharp: float, damping: Tensor) -> Float[Tensor, "i n 3"]:
    """The step of the least squares of distances, each weighed by its inverse."""
    weight = 1 / seen.distance.clamp(min=sharp)
    rows = weight[..., None] * seen.slope
    matrix = rows.mT @ seen.slope
    right = (rows.mT @ seen.distance[..., None])[..., 0]
    size = matrix.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True).clamp(min=1e-12)
    matrix = matrix + (damping * size).expand_as(right).diag_embed()
    step = -torch.linalg.solve_ex(matrix, right)[0].nan_to_num(0.0, 0.0, 0.0)
    length = step.norm(dim=-1, keepdim=True)
    return step * (LONGEST / length.clamp(min=LONGEST))


def _where(lower: Bool[Tensor, "i n"], new: Tensor, old: Tensor) -> Tensor:
    return torch.where(lower.view(*lower.shape, *(1,) * (new.ndim - 2)), new, old)
