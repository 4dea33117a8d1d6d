"""Axes about which a shape can be turned onto itself: from lines that may be some to those that
are, each with its order."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from proxlearn.problems.symmetry.moves import Turning
from proxlearn.shapes.families import GOLDEN, Axis, crossings
from proxlearn.shapes.limits import Limits
from proxlearn.shapes.refine import Measured, everywhere, measured, refined
from proxlearn.shapes.search import (
    BESIDE,
    CLEARLY,
    CLOSE,
    FINE,
    KNOWN,
    LAST,
    LIKELY,
    MOST,
    PAIRED,
    ROUGH,
    SAME,
    apart_in_order,
)
from proxlearn.shapes.target import Places, Target
from proxlearn.spaces import Lines

SPACE = Lines()
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)
HIGHEST = 36  # order that is looked for
GLANCE, FEW, ENOUGH, MANY = 32, 64, 256, 512  # points that are turned both ways, stage by stage
TRIED = 16  # turns by angles that have no common divisor, before all are taken to be symmetries


def telling(order: int) -> float:
    """A share of a whole turn whose multiples are all turns of an order, as near to a quarter as
    there is: by a small angle, nearly round shapes match themselves whatever their order."""
    every = (m / order for m in range(1, order + 1) if math.gcd(m, order) == 1)
    return min(every, key=lambda share: abs(share - 0.25))


TELLING = torch.tensor([0.0, *map(telling, range(1, HIGHEST + 1))])


class Turns(NamedTuple):
    """Lines, the orders of turns about them (0: by any angle), and how far from the shape its
    turned points are: on average, and the farthest of them."""

    lines: Float[Tensor, "k 6"]
    order: Int64[Tensor, " k"]
    residual: Float[Tensor, " k"]
    worst: Float[Tensor, " k"]

    @classmethod
    def unknown(cls, lines: Float[Tensor, "k 6"], order: Int64[Tensor, " k"]) -> "Turns":
        """Before they are measured."""
        return cls(lines, order, torch.zeros_like(lines[:, 0]), torch.zeros_like(lines[:, 0]))

    def at(self, index: Tensor | slice) -> "Turns":
        return Turns(*(each[index] for each in self))

    def and_these(self, others: "Turns") -> "Turns":
        return Turns(*(torch.cat(each) for each in zip(self, others)))

    def brought(
        self, count: int, target: Target, scales: tuple[float, ...], corners: bool = False
    ) -> "Turns":
        """Refined, or with no scales measured, by the turns that are nearest to a half turn: these
        say the most about where the axis is."""
        angle = 2 * torch.pi * (self.order // 2) / self.order
        found = refined(self.lines, count, target, scales, angle, corners)
        return Turns(found.planes, self.order, found.residual, found.worst)

    def distinct(self, by_order: bool = False) -> "Turns":
        """The best of those that are nearly the same, best first; or the best of each order."""
        best = self.at(self.residual.argsort())
        apart = SPACE.pairwise(best.lines, best.lines) > SAME
        if by_order:
            apart |= best.order[:, None] != best.order
        return best.at(apart_in_order(apart))


def axes_among(
    ends: Turns, mirrors: Float[Tensor, "k 4"], target: Target, tolerance: float
) -> Turns:
    """The axes among lines that an operator ended at and those that follow from mirrors and from
    how the shape is spread, best first."""
    points, limits = target.cloud[:, :3], Limits(target, tolerance)
    mirrored = where_mirrors_meet(mirrors)
    every = ends.brought(GLANCE, target, ()).and_these(glanced(principal(points), 4, target))
    every = every.and_these(glanced(mirrored, 1, target))
    likely = every.at(every.residual <= LIKELY).distinct(by_order=True)
    rough = likely.brought(FEW, target, ROUGH).distinct()
    close = rough.at(rough.residual <= target.noise + tolerance + CLOSE).at(slice(MOST))
    fine = close.brought(ENOUGH, target, FINE)
    fine = fine.at(fine.residual <= limits.of(fine.lines)).distinct()
    fine = fine.and_these(completed(fine, target)).distinct()
    fine = fine.brought(ENOUGH, target, LAST, corners=True)
    axes = with_orders(fine.at(fine.residual <= limits.of(fine.lines)), limits)
    apart = SPACE.pairwise(axes.lines, axes.lines) > BESIDE
    worse = axes.residual[:, None] - axes.residual > (CLEARLY * tolerance if target.exact else 0.0)
    return axes.at(~(~apart & worse).any(1))


def about_family(family: Axis, target: Target, tolerance: float) -> Turns:
    """The axis of a turned part, for turns by any angle; of a sphere, none by itself."""
    line, limits = SPACE.retract(torch.cat(family.line))[None], Limits(target, tolerance)
    found = by_any_angle(line, limits)
    turns = Turns(line, torch.zeros_like(line[:, 0]).long(), found.residual, found.worst)
    return turns.at(torch.logical_and(*limits.judged(found)) & (not family.every))


def principal(points: Places) -> Float[Tensor, "3 6"]:
    """The lines through the centroid along the principal axes: of a whole shape, every axis is one,
    unless it is spread alike in several directions."""
    center = points.mean(0)
    axes = torch.linalg.eigh(((points - center).mT @ (points - center)).double())[1].to(points).mT
    return SPACE.retract(torch.cat((axes, center.expand(3, 3)), 1))


def where_mirrors_meet(planes: Float[Tensor, "k 4"]) -> Float[Tensor, "j 6"]:
    """To be reflected in two mirrors is to be turned about the line where they meet."""
    lines = SPACE.retract(crossings(planes))
    return lines[apart_in_order(SPACE.pairwise(lines, lines) > SAME)]


def glanced(lines: Float[Tensor, "k 6"], count: int, target: Target) -> Turns:
    """The prime orders, so many, that each line is best at."""
    order = torch.tensor(PRIMES)
    every = Turns.unknown(lines.repeat_interleave(len(order), 0), order.repeat(len(lines)))
    every = every.brought(GLANCE, target, ())
    first = torch.arange(len(lines))[:, None] * len(order)
    best = every.residual.view(-1, len(order)).topk(count, largest=False).indices
    return every.at((first + best).flatten())


def completed(axes: Turns, target: Target) -> Turns:
    """What is missing among axes: one of them, turned about another, is one, too."""
    some = axes.at(slice(PAIRED))
    move, (axis, point) = Turning((2 * torch.pi / some.order)[None]), some.lines.split(3, -1)
    ends = move.moved(some.lines[None], torch.cat((point, point + axis))[None])[0]
    near, far = ends.unflatten(1, (2, 2, len(axis))).unbind(2)  # (k 2 k 3)
    images = SPACE.retract(torch.cat((far - near, near), -1)).flatten(0, 2)
    new = (SPACE.pairwise(images, axes.lines) > KNOWN).all(1)
    order = some.order.repeat(2 * len(axis))
    images, order = images[new], order[new]
    best = apart_in_order(SPACE.pairwise(images, images) > SAME)[:MOST]
    missing = Turns.unknown(images[best], order[best])
    return missing.brought(ENOUGH, target, FINE)


def with_orders(axes: Turns, limits: Limits) -> Turns:
    """Each with the largest order of turns about it, and how well these match. The order is put
    together of primes, the smallest first: noisy points may have had a turn by a larger one that is
    near to a half turn."""
    left, order = torch.arange(len(axes.order)), torch.ones_like(axes.order)
    primes, limit = torch.tensor(PRIMES), limits.of(axes.lines)
    while len(left):
        tried = order[left, None] * primes
        matches = tried <= HIGHEST
        for some in (GLANCE, ENOUGH):
            row, column = matches.nonzero().unbind(1)
            angle = 2 * torch.pi * TELLING[tried[row, column]]
            found = measured(axes.lines[left[row]], some, limits.target, angle)
            matches[row, column] = found.residual <= limit[left[row]]
        row, column = matches.nonzero().unbind(1)
        lines, angle = axes.lines[left[row]], 2 * torch.pi * TELLING[tried[row, column]]
        found = measured(lines, GLANCE, limits.target, angle, corners=True)
        matches[row, column] = limits.even(found)
        left, first = left[matches.any(1)], matches.int().argmax(1)[matches.any(1)]
        order[left] = order[left] * primes[first]
    order = torch.where(order > 1, order, axes.order)  # few points may have missed what more saw
    angle = 2 * torch.pi / order
    found = measured(axes.lines, MANY, limits.target, angle, corners=True)
    found = everywhere(found, limits.target, angle)
    good = torch.logical_and(*limits.judged(found))
    return continuous(Turns(axes.lines, order, found.residual, found.worst).at(good), limits)


def continuous(axes: Turns, limits: Limits) -> Turns:
    """The same with an order of 0 where turns by any angle are symmetries."""
    high = (2 * axes.order > HIGHEST).nonzero()[:, 0]
    found = by_any_angle(axes.lines[high], limits)
    good = torch.logical_and(*limits.judged(found))
    axes.order[high[good]] = 0
    axes.residual[high[good]] = found.residual[good]
    axes.worst[high[good]] = found.worst[good]
    return axes


def by_any_angle(lines: Float[Tensor, "k 6"], limits: Limits) -> Measured:
    """Lines, with the largest residual and the farthest point of many turns about each."""
    angle = (2 * torch.pi * GOLDEN * torch.arange(1, TRIED + 1).to(lines)).repeat(len(lines))
    every = lines.repeat_interleave(TRIED, 0)
    found = measured(every, ENOUGH, limits.target, angle, corners=True)
    return Measured(found.rows.view(-1, TRIED, found.rows.shape[1]).amax(1))
