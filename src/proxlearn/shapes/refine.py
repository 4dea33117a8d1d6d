"""Planes brought to where they reflect a shape onto itself best, and how well they do; and lines,
to where turns about them do."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.problems.symmetry.moves import Move, Reflecting
from proxlearn.shapes.target import Places, Target
from proxlearn.spaces import Planes

SPACE, REFLECTING = Planes(), Reflecting()
DAMPED = 1e-5  # added to the normal equations: planes stay where points say nothing
TOUCHING = 1e-5  # distances whose direction is rounding: there, the surface's normal is taken


class Measured(NamedTuple):
    """Planes, or lines (k 6), and the mean distance to the shape of its points reflected in them,
    or turned about them."""

    planes: Float[Tensor, "k d"]
    residual: Float[Tensor, " k"]

    def at(self, index: Tensor | slice) -> "Measured":
        return Measured(self.planes[index], self.residual[index])

    def and_these(self, others: "Measured") -> "Measured":
        return Measured(*(torch.cat(each) for each in zip(self, others)))

    def ordered(self) -> "Measured":
        return self.at(self.residual.argsort())


def measured(
    planes: Float[Tensor, "k d"], points: Places, target: Target, move: Move = REFLECTING
) -> Measured:
    """The planes as they are."""
    return refined(planes, points, target, (), move)


def refined(
    planes: Float[Tensor, "k d"],
    points: Places,
    target: Target,
    scales: Sequence[float],
    move: Move = REFLECTING,
) -> Measured:
    """The best that each plane was at while Gauss-Newton steps took it to the least sum of
    distances. There is a step for each scale, a distance beyond which points count less, since
    they match nowhere."""
    best = Measured(planes, torch.full(planes.shape[:1], torch.inf, device=planes.device))
    for scale in (*scales, None) if len(planes) else ():
        image = move.moved(planes[None], points[None])[0]
        offset, normal = (each.view_as(image) for each in target.offsets(image.flatten(0, 1)))
        far = offset.norm(dim=-1)
        residual = far.mean(-1)
        better = residual < best.residual
        best = Measured(
            torch.where(better[:, None], planes, best.planes),
            torch.where(better, residual, best.residual),
        )
        if scale is not None:
            away = torch.where((far > TOUCHING)[..., None], offset / far[..., None], normal)
            signed = (offset * away).sum(-1)
            planes = _stepped(planes, points, away, signed, (far**2 + scale**2).rsqrt(), move)
    return best


def _stepped(
    planes: Float[Tensor, "k d"],
    points: Places,
    away: Float[Tensor, "k m 3"],
    signed: Float[Tensor, "k m"],
    weight: Float[Tensor, "k m"],
    move: Move,
) -> Float[Tensor, "k d"]:
    """One step of all planes, given the directions `away` in which their images are off by so
    much."""
    basis = move.space.tangent(planes)
    rows = move.slopes(planes[None], basis[None], points[None], away[None])[0]  # (k, m, t)
    weighted = (weight / weight.sum(-1, keepdim=True))[..., None] * rows
    matrix = (weighted.mT @ rows).double()
    matrix += DAMPED * torch.eye(matrix.shape[-1]).to(matrix)
    right = (weighted * signed[..., None]).sum(1).double()
    step = torch.linalg.solve(matrix, -right[..., None]).to(planes)
    return move.space.retract(planes + (basis @ step)[..., 0])
