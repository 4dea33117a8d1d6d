"""Planes and lines made exact: `mean |M p - S|` has kinks where a symmetry is, so that neither
gradients nor Newton steps lead there; least squares, reweighted by the distances themselves, do."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from proxlearn.meshes.distance import Surface, Which
from proxlearn.problems.symmetry.moves import Move

STEPS = 60
STILL = 1e-9  # a step that is shorter is none
SHARP = (1e-2, 1e-7)  # distances below this weigh alike: at first, and in the end
DAMPING = (1e-3, 1e-9, 1e6)  # at first, least and most
SURE = 1e-9  # a distance below which its direction is that of the triangle's normal
LONGEST = 0.05  # how far a step goes


class Seen(NamedTuple):
    """Moved points: how far from the surface, and how that changes with every way that x can go."""

    distance: Float[Tensor, "i n m"]
    slope: Float[Tensor, "i n m t"]


@torch.no_grad()
def refined(
    move: Move,
    surface: Surface,
    which: Which,
    x: Float[Tensor, "i n d"],
    points: Float[Tensor, "i k 3"],
) -> Float[Tensor, "i n d"]:
    """Planes or lines brought to the minima of the mean distance nearby, never uphill; points are
    of the surface, and of its precision is x."""
    first, last = SHARP
    damping = torch.full_like(x[..., :1], DAMPING[0])
    basis = move.space.tangent(x)
    seen = look(move, surface, which, x, basis, points)
    for k in range(STEPS):
        sharp = first * (last / first) ** min(1.0, 1.5 * k / STEPS)
        step = _step(seen, sharp, damping)
        trial = move.space.retract(x + (basis @ step[..., None])[..., 0])
        ahead = move.space.tangent(trial)
        found = look(move, surface, which, trial, ahead, points)
        lower = found.distance.mean(-1) < seen.distance.mean(-1)
        x, basis = _where(lower, trial, x), _where(lower, ahead, basis)
        seen = Seen(*(_where(lower, new, old) for new, old in zip(found, seen)))
        damping = torch.where(lower[..., None], damping / 5, damping * 10).clamp(*DAMPING[1:])
        if not (step.norm(dim=-1) > STILL).any():
            break
    return x


def look(
    move: Move,
    surface: Surface,
    which: Which,
    x: Float[Tensor, "i n d"],
    basis: Float[Tensor, "i n d t"],
    points: Float[Tensor, "i k 3"],
) -> Seen:
    """What is seen of the surface."""
    moved = move.moved(x, points)
    near = surface.nearest(moved.flatten(1, 2), which)
    way = moved - near.point.view(moved.shape)
    face = surface.first[which, None] + near.triangle
    facing = surface.triangles[face][..., 3, :].view(moved.shape).to(moved)
    distance = near.distance.view(moved.shape[:-1])
    direction = torch.where(distance[..., None] > SURE, way / distance[..., None], facing)
    return Seen(distance, move.slopes(x, basis, points, direction))


def _step(seen: Seen, sharp: float, damping: Tensor) -> Float[Tensor, "i n t"]:
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
