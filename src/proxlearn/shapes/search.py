"""From the planes at which an operator ended to those that are symmetries."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Generator, Tensor

from proxlearn.shapes.families import (
    FITTED,
    Axis,
    Line,
    likely_line,
    tried_as_axis,
    tried_as_center,
)
from proxlearn.shapes.limits import Limits
from proxlearn.shapes.refine import SPACE, Measured, everywhere, measured, refined
from proxlearn.shapes.target import Target

SAME = 0.03  # planes nearer to each other than this are one
KNOWN = 0.01  # the same for a plane that would follow from others
BESIDE = 0.1  # worse planes that are as near to a symmetry may have been on their way to it
CLEARLY = 0.3  # of the tolerance: a difference between residuals that means something
LIKELY, CLOSE = 0.05, 0.005  # residuals above which planes are left out, before and after a glance
GLANCE, FEW, ENOUGH, MANY = 64, 128, 512, 1024  # points that are reflected, from stage to stage
ROUGH, FINE = (0.03, 0.01, 0.003), (0.01, 0.003, 0.001)  # scales of their steps
LAST = (0.003, 0.001)  # of those that see a mesh's corners
PAIRED = 32  # symmetries, each of which is moved by all others
MOST = 64  # planes among which an axis is looked for


class Found(NamedTuple):
    """Single planes that are symmetries, best first; a family of them; the best plane that is
    none; planes that are symmetries on average, but not in every place; and an axis through which
    all planes nearly are."""

    planes: Measured
    family: Axis | None
    rejected: Measured
    uneven: Measured
    nearly: Axis | None

    def distrusted(self) -> "Found":
        """The same without any symmetry."""
        none = self.planes.at(slice(0))
        return Found(none, None, self.planes.and_these(self.rejected).at(slice(1)), none, None)


def found_among(
    ends: Float[Tensor, "k 4"], target: Target, tolerance: float, generator: Generator
) -> Found:
    """The symmetries among planes that may be some, by residuals of at most the tolerance, and of a
    cloud its noise besides."""
    limits = Limits(target, tolerance)
    hopeless = limits.of_size[0] + CLOSE
    if not target.held:  # a GPU measures all of them as fast as a few
        ends = distinct(Measured.unknown(ends)).planes
    seen = measured(ends, GLANCE, target)
    likely = distinct(seen.at(seen.residual <= LIKELY))
    rough = distinct(refined(likely.planes, FEW, target, ROUGH))
    close = rough.at(rough.residual <= hopeless)
    family, nearly = family_among(close.planes[:MOST], limits, hopeless)
    if family:
        close = close.at(~family.line.of(close.planes))
        if sphere := _sphere(close, family, limits, generator):
            none = close.at(slice(0))
            return Found(none, sphere, none, none, None)
    fine = distinct(refined(close.planes, ENOUGH, target, FINE))
    fine = distinct(fine.and_these(completed(fine.at(limits.met(fine)), target)))
    nearly_met = fine.residual <= 2 * limits.of(fine.planes)
    last = refined(fine.planes[nearly_met], MANY, target, LAST, corners=True)
    last = everywhere(last, target)
    fine = distinct(last.and_these(fine.at(~nearly_met)))
    met, even = limits.judged(fine)
    single, uneven, rejected = fine.at(met & even), fine.at(met & ~even), fine.at(~met)
    single = sharpest(single, limits)
    if family:
        single = single.at(~family.line.of(single.planes))
    rejected = rejected.and_these(rough.at(rough.residual > hopeless)).ordered()
    rejected, uneven = (each.at(~beside(each, single).any(1)) for each in (rejected, uneven))
    return Found(single, family, rejected.at(slice(1)), uneven, nearly)


def family_among(
    planes: Float[Tensor, "k 4"], limits: Limits, hopeless: float
) -> tuple[Axis | None, Axis | None]:
    """An axis through which all planes are symmetries; or one where they nearly are."""
    line = likely_line(planes)
    if line is None:
        return None, None
    axis = tried_as_axis(line, ENOUGH, limits.target, hopeless)
    residual, worst = limits.about(axis.line)
    if axis.residual > residual:
        return None, axis
    some = measured(axis.line.planes(FITTED), GLANCE, limits.target, corners=True)
    seen = everywhere(some, limits.target)
    farthest = float(seen.worst.max())
    axis = axis._replace(worst=max(axis.worst, farthest))
    return (axis, None) if axis.worst <= worst else (None, None)


def sharpest(single: Measured, limits: Limits) -> Measured:
    """Without those that are clearly worse than one beside them. Of noisy points, residuals hardly
    tell neighbours apart: the best one stands for them."""
    worse_by = CLEARLY * limits.tolerance if limits.target.exact else 0.0
    better = single.residual[:, None] - single.residual > worse_by
    return single.at(~(beside(single, single) & better).any(1))


def distinct(every: Measured) -> Measured:
    """The best of those that are nearly the same, best first."""
    every = every.ordered()
    return every.at(apart_in_order(SPACE.pairwise(every.planes, every.planes) > SAME))


def apart_in_order(apart: Bool[Tensor, "k k"]) -> Int64[Tensor, " j"]:
    """Which remain, one after the other, of those that are apart from all that did before."""
    table, found = np.packbits(apart.numpy(), axis=1, bitorder="little"), []
    left = (1 << len(table)) - 1  # a bit for each: masks are much faster than arrays
    while left:
        found.append(first := (left & -left).bit_length() - 1)
        left &= int.from_bytes(table[first].tobytes(), "little") & ~(1 << first)
    return torch.tensor(found, dtype=torch.long)


def completed(single: Measured, target: Target) -> Measured:
    """What is missing among symmetries: one mirror, reflected in another, is a mirror, too."""
    normal, offset = single.planes[:PAIRED].split((3, 1), -1)
    twice = 2 * (normal @ normal.T)[..., None]  # (k, k, 1)
    images = torch.cat((normal - twice * normal[:, None], offset - twice * offset[:, None]), -1)
    images = SPACE.retract(images.flatten(0, 1))
    new = images[(SPACE.pairwise(images, single.planes) > KNOWN).all(1)]
    candidates = distinct(Measured.unknown(new)).planes[:MOST]
    return refined(candidates, ENOUGH, target, FINE)


def beside(some: Measured, others: Measured) -> Bool[Tensor, "k j"]:
    """Which planes are so near to others that they may have been on their way to them."""
    return SPACE.pairwise(some.planes, others.planes) < BESIDE


def _sphere(close: Measured, family: Axis, limits: Limits, generator: Generator) -> Axis | None:
    """A turned part with a mirror that is aslant to its axis is a sphere: whether this is one."""
    axis, point = family.line
    slope = (close.planes[:, :3] @ axis).abs()
    aslant = close.at((slope > SAME) & (slope < 1 - SAME)).at(slice(1))
    if not len(aslant.residual):
        return None
    target = limits.target
    normal, offset = refined(aslant.planes, ENOUGH, target, FINE).planes[0].split((3, 1))
    center = point + (offset - normal @ point) / (normal @ axis) * axis
    tried = tried_as_center(Line(axis, center), ENOUGH, target, generator)
    residual, worst = limits.of_size
    return tried if tried.residual <= residual and tried.worst <= worst else None
