"""From the planes at which an operator ended to those that are symmetries."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from proxlearn.shapes.families import Line, likely_line, tried_as_axis, tried_as_center
from proxlearn.shapes.refine import SPACE, Measured, measured, refined
from proxlearn.shapes.target import Target

SAME = 0.03  # planes nearer to each other than this are one
LIKELY, CLOSE = 0.05, 0.005  # residuals above which planes are left out, before and after a glance
GLANCE, ENOUGH = 128, 512  # points that are reflected at a glance, and to refine planes
LAST = (0.001,)  # the scale of one more step, with all points
MOST = 64  # planes among which an axis is looked for


class Axis(NamedTuple):
    """An axis, or with `every` the centre of a sphere, and the residual of the worst plane through
    it that was tried."""

    line: Line
    residual: float
    every: bool = False


class Found(NamedTuple):
    """Single planes that are symmetries, best first; a family of them; the best plane that is
    none; and an axis through which all planes nearly are."""

    planes: Measured
    family: Axis | None
    rejected: Measured
    nearly: Axis | None


def found_among(
    ends: Float[Tensor, "k 4"], target: Target, tolerance: float, generator: Generator
) -> Found:
    """The symmetries among planes that may be some, by residuals of at most the tolerance, and of a
    cloud its noise besides."""
    points, limit = target.cloud[:, :3], target.noise + tolerance
    few, enough = points[:GLANCE], points[:ENOUGH]
    seen = measured(ends, few, target)
    likely = distinct(seen.at(seen.residual <= LIKELY))
    rough = distinct(refined(likely.planes, few, target))
    close = rough.at(rough.residual <= limit + CLOSE)
    family = nearly = None
    if line := likely_line(close.planes[:MOST]):
        axis = Axis(*tried_as_axis(line, enough, target))
        family, nearly = (axis, None) if axis.residual <= limit else (None, axis)
    if family:
        close = close.at(~family.line.of(close.planes))
    fine = distinct(refined(close.planes, enough, target))
    fine = distinct(refined(fine.planes, points, target, LAST))
    good = fine.residual <= limit
    rejected = fine.at(~good).and_these(rough.at(rough.residual > limit + CLOSE)).ordered()
    single = fine.at(good)
    if family:
        single, family = _sphere(single, family, target, limit, generator)
    return Found(single, family, rejected.at(torch.arange(len(rejected.residual)) < 1), nearly)


def distinct(every: Measured) -> Measured:
    """The best of those that are nearly the same, best first."""
    every, kept = every.ordered(), []
    apart = SPACE.pairwise(every.planes[None], every.planes[None])[0] > SAME
    left = torch.ones(len(every.residual), dtype=torch.bool, device=apart.device)
    for k in range(len(left)):
        if left[k]:
            kept.append(k)
            left = left & apart[k]
    return every.at(torch.tensor(kept, dtype=torch.long, device=apart.device))


def _sphere(
    single: Measured, family: Axis, target: Target, limit: float, generator: Generator
) -> tuple[Measured, Axis]:
    """Whether a turned part is a sphere: a mirror that is aslant to its axis makes it one."""
    axis, point = family.line
    single = single.at(~family.line.of(single.planes))
    slope = single.planes[:, :3] @ axis
    aslant = single.at(slope.abs() < 1 - SAME)
    if not len(aslant.residual):
        return single, family
    normal, offset = aslant.planes[0].split((3, 1))
    center = point + (offset - normal @ point) / (normal @ axis) * axis
    worst = tried_as_center(center, target.cloud[:ENOUGH, :3], target, generator)
    if worst > limit:
        return single, family
    return single.at(slope > 2), Axis(Line(axis, center), worst, every=True)
