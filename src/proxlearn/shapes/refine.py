"""Planes brought to where they reflect a shape onto itself best, and how well they do; and lines,
to where turns about them do.

Planes and lines are few and stay on the CPU, where it is decided which to keep. What moves points
and looks for distances is done on the target's device: on a GPU as one graph, which is captured for
a few sizes, so that a stage costs one launch and one wait."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.gpu.capture import Replayed
from proxlearn.networks._looking import equations, solved
from proxlearn.problems.symmetry.moves import Move, Reflecting, Turning
from proxlearn.shapes.target import Held, Near, Places, Target
from proxlearn.spaces import Planes

SPACE, REFLECTING = Planes(), Reflecting()
# Added to the normal equations: planes stay where points say nothing. How a rod is turned about
# itself counts with the square of its thickness only, and this has to be less.
DAMPED = 1e-7
TOUCHING = 1e-5  # distances whose direction is rounding: there, the surface's normal is taken
ALL = 1 << 17  # vertices that are moved in all, where every one of a mesh is to be looked at
SIZES = (16, 64, 256)  # of batches on a GPU that are replayed; larger ones in steps of the last
GRAPHS = 64  # that are kept: for each stage, with planes and with lines, and for each size of shape

Scales = tuple[float, ...]
Angles = Float[Tensor, " k"]


class Measured(NamedTuple):
    """Planes, or lines (k 6), and how far from the shape its points are when they are reflected in
    them, or turned about them: on average, and the farthest of them. Where a mesh's corners are
    looked at, too, only the farthest is of them: they are not spread evenly."""

    rows: Float[Tensor, "k d2"]

    @property
    def planes(self) -> Float[Tensor, "k d"]:
        return self.rows[:, :-2]

    @property
    def residual(self) -> Float[Tensor, " k"]:
        return self.rows[:, -2]

    @property
    def worst(self) -> Float[Tensor, " k"]:
        return self.rows[:, -1]

    @classmethod
    def unknown(cls, planes: Float[Tensor, "k d"]) -> "Measured":
        """Before they are measured."""
        return cls(torch.nn.functional.pad(planes, (0, 2)))

    def at(self, index: Tensor | slice) -> "Measured":
        return Measured(self.rows[index])

    def and_these(self, others: "Measured") -> "Measured":
        return Measured(torch.cat((self.rows, others.rows)))

    def ordered(self) -> "Measured":
        return self.at(self.residual.argsort())


def measured(
    planes: Float[Tensor, "k d"],
    count: int,
    target: Target,
    angle: Angles | None = None,
    corners: bool = False,
) -> Measured:
    """The planes as they are."""
    return refined(planes, count, target, (), angle, corners)


def refined(
    planes: Float[Tensor, "k d"],
    count: int,
    target: Target,
    scales: Scales,
    angle: Angles | None = None,
    corners: bool = False,
) -> Measured:
    """The best that each plane was at while Gauss-Newton steps took it to the least sum of
    distances; or each line, by turns by its `angle`. So many of the target's points are moved, and
    there is a step for each scale, a distance beyond which points count less, since they match
    nowhere. With `corners`, steps see those of a mesh, too: a small feature has many of them, and
    few points."""
    if not len(planes):
        return Measured.unknown(planes)
    rows = planes if angle is None else torch.cat((planes, angle[:, None].to(planes)), 1)
    if target.held:
        rows = _with_firsts(rows, _next_size(len(rows)))
    points = target.moving[:count]
    how: dict[str, Any] = {"near": target.near, "scales": scales, "counted": len(points)}
    points = torch.cat((points, target.corners)) if corners else points
    found = _replayed(rows.to(target.device), points, target.held, **how)[: len(planes)].cpu()
    return Measured(found[:, :-1])


def everywhere(found: Measured, target: Target, angle: Angles | None = None) -> Measured:
    """The same where as many of a mesh's vertices as can be are looked at, and not some alone: few
    of a large mesh are of a small feature."""
    whole, count = len(target.vertices), len(found.planes)
    if whole <= len(target.corners) or not count or not target.sure:
        return found
    more = target.vertices[:: -(-whole * count // ALL)]  # in their order: nearby ones are faster
    planes, more = found.planes.to(target.device), more.to(target.device)
    move = REFLECTING if angle is None else Turning(angle[None].to(target.device))
    moved = move.moved(planes[None], more[None])[0]
    every = moved.flatten(0, 1).split(count * moved.shape[1] if target.held else moved.shape[1])
    far = torch.cat([target.near(some, target.held).distance for some in every])
    worst = torch.maximum(found.worst, far.view(count, -1).amax(1).cpu())
    return Measured(torch.cat((found.rows[:, :-1], worst[:, None]), 1))


def _next_size(count: int) -> int:
    return next((size for size in SIZES if count <= size), -(-count // SIZES[-1]) * SIZES[-1])


def _with_firsts(rows: Tensor, count: int) -> Tensor:
    """With the first one again and again."""
    return torch.cat((rows, rows[:1].expand(count - len(rows), *rows.shape[1:])))


def _descended(
    rows: Float[Tensor, "k d"],
    points: Places,
    held: Held,
    near: Callable[[Places, Held], Near],
    scales: Scales,
    counted: int,
) -> Float[Tensor, "k d3"]:
    """`refined` of planes, or of lines with their angles, as rows of a plane, the mean distance of
    the first points, the farthest of all and the mean of all. It never waits for a GPU, so that it
    can be captured."""
    turning = rows.shape[1] > SPACE.dim
    if rows.is_cuda and not turning:
        from proxlearn.shapes.planes_kernel import descended

        return descended(rows, points, held, near, scales, counted, TOUCHING, DAMPED)
    planes, move = (rows[:, :-1], Turning(rows[:, -1][None])) if turning else (rows, REFLECTING)
    best = None
    for scale in (*scales, None):
        moved = move.moved(planes[None], points[None])[0]
        every = near(moved.flatten(0, 1), held)
        found = Near(*(each.unflatten(0, moved.shape[:2]) for each in every))
        far = found.distance
        distances = far[:, :counted].mean(-1), far.amax(-1), far.mean(-1)
        row = torch.cat((planes, torch.stack(distances, -1)), -1)
        best = row if best is None else torch.where(row[:, -1:] < best[:, -1:], row, best)
        if scale is not None:
            planes = _stepped(planes, points, found, scale, move)
    assert best is not None
    return best


_replayed = Replayed(_descended)
_replayed.most_graphs = GRAPHS


def _stepped(
    planes: Float[Tensor, "k d"], points: Places, found: Near, scale: float, move: Move
) -> Float[Tensor, "k d"]:
    """One step of all planes, by how far their images (k m) are off, and which way."""
    touching = (found.distance <= TOUCHING)[..., None]
    away = torch.where(touching, found.normal, found.direction)
    signed = found.distance * (found.direction * away).sum(-1)
    weight = (found.distance**2 + scale**2).rsqrt()
    basis = move.space.tangent(planes)
    slopes = move.slopes(planes[None], basis[None], points[None], away[None])[0]  # (k m t)
    rows = torch.cat((slopes.mT, signed[:, None]), 1)
    system = equations((weight / weight.sum(-1, keepdim=True))[None], rows[None])[0].double()
    lam = torch.full_like(system[:, 0], DAMPED)
    step = solved(system, slopes.shape[-1], lam).to(planes)
    return move.space.retract(planes + (basis @ step[..., None])[..., 0])
