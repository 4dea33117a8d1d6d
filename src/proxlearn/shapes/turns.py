"""Axes about which a shape can be turned onto itself: from lines that may be some to those that
are, each with its order."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from proxlearn.problems.symmetry.moves import Turning
from proxlearn.shapes.families import GOLDEN, crossings
from proxlearn.shapes.refine import measured, refined
from proxlearn.shapes.search import (
    BESIDE,
    CLEARLY,
    CLOSE,
    FINE,
    KNOWN,
    LIKELY,
    MOST,
    ROUGH,
    SAME,
    Axis,
    kept,
)
from proxlearn.shapes.target import Places, Target
from proxlearn.spaces import Lines

SPACE = Lines()
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)
HIGHEST = 36  # order that is looked for
GLANCE, FEW, ENOUGH, MANY = 32, 64, 256, 512  # points that are turned both ways, stage by stage
TRIED = 16  # turns by angles that have no common divisor, before all are taken to be symmetries


class Turns(NamedTuple):
    """Lines, the orders of turns about them (0: by any angle), and the mean distance to the shape
    of its turned points."""

    lines: Float[Tensor, "k 6"]
    order: Int64[Tensor, " k"]
    residual: Float[Tensor, " k"]

    def at(self, index: Tensor | slice) -> "Turns":
        return Turns(*(each[index] for each in self))

    def and_these(self, others: "Turns") -> "Turns":
        return Turns(*(torch.cat(each) for each in zip(self, others)))

    def brought(self, points: Places, target: Target, scales: tuple[float, ...]) -> "Turns":
        """Refined, or with no scales measured, by the turns that are nearest to a half turn: these
        say the most about where the axis is."""
        angle = 2 * torch.pi * (self.order // 2) / self.order
        found = refined(self.lines, points, target, scales, Turning(angle[None]))
        return Turns(found.planes, self.order, found.residual)

    def distinct(self, by_order: bool = False) -> "Turns":
        """The best of those that are nearly the same, best first; or the best of each order."""
        best = self.at(self.residual.argsort())
        apart = SPACE.pairwise(best.lines, best.lines) > SAME
        if by_order:
            apart |= best.order[:, None] != best.order
        return best.at(kept(apart))


def axes_among(
    ends: Turns, mirrors: Float[Tensor, "k 4"], target: Target, tolerance: float
) -> Turns:
    """The axes among lines that an operator ended at and those that follow from mirrors and from
    how the shape is spread, best first."""
    points, limit = target.cloud[:, :3], target.noise + tolerance
    few, mirrored = points[:GLANCE], where_mirrors_meet(mirrors)
    every = ends.brought(few, target, ()).and_these(glanced(principal(points), 4, few, target))
    every = every.and_these(glanced(mirrored, 1, few, target))
    likely = every.at(every.residual <= LIKELY).distinct(by_order=True)
    rough = likely.brought(points[:FEW], target, ROUGH).distinct()
    close = rough.at(rough.residual <= limit + CLOSE).at(slice(MOST))
    fine = close.brought(points[:ENOUGH], target, FINE)
    fine = fine.at(fine.residual <= limit).distinct()
    fine = fine.and_these(completed(fine, target)).distinct()
    axes = with_orders(fine.at(fine.residual <= limit), points, target, limit)
    apart = SPACE.pairwise(axes.lines, axes.lines) > BESIDE
    worse = axes.residual[:, None] - axes.residual > (0.0 if target.noise else CLEARLY * tolerance)
    return axes.at(~(~apart & worse).any(1))


def about_family(family: Axis, target: Target, tolerance: float) -> Turns:
    """The axis of a turned part, for turns by any angle; of a sphere, none by itself."""
    line = SPACE.retract(torch.cat(family.line))[None]
    residual = worst(line, target.cloud[:ENOUGH, :3], target)
    turns = Turns(line, torch.zeros_like(residual).long(), residual)
    return turns.at((residual <= target.noise + tolerance) & (not family.every))


def principal(points: Places) -> Float[Tensor, "3 6"]:
    """The lines through the centroid along the principal axes: of a whole shape, every axis is one,
    unless it is spread alike in several directions."""
    center = points.mean(0)
    axes = torch.linalg.eigh(((points - center).mT @ (points - center)).double())[1].to(points).mT
    return SPACE.retract(torch.cat((axes, center.expand(3, 3)), 1))


def where_mirrors_meet(planes: Float[Tensor, "k 4"]) -> Float[Tensor, "j 6"]:
    """To be reflected in two mirrors is to be turned about the line where they meet."""
    lines = SPACE.retract(crossings(planes))
    return lines[kept(SPACE.pairwise(lines, lines) > SAME)]


def glanced(lines: Float[Tensor, "k 6"], count: int, points: Places, target: Target) -> Turns:
    """The prime orders, so many, that each line is best at."""
    order = torch.tensor(PRIMES, device=lines.device)
    every = Turns(lines.repeat_interleave(len(order), 0), order.repeat(len(lines)), lines[:0, 0])
    residual = every.brought(points, target, ()).residual.view(-1, len(order))
    least, best = residual.topk(count, largest=False)
    return Turns(lines.repeat_interleave(count, 0), order[best].flatten(), least.flatten())


def completed(axes: Turns, target: Target) -> Turns:
    """What is missing among axes: one of them, turned about another, is one, too."""
    move, (axis, point) = Turning((2 * torch.pi / axes.order)[None]), axes.lines.split(3, -1)
    ends = move.moved(axes.lines[None], torch.cat((point, point + axis))[None])[0]
    near, far = ends.unflatten(1, (2, 2, len(axis))).unbind(2)  # (k 2 k 3)
    images = SPACE.retract(torch.cat((far - near, near), -1)).flatten(0, 2)
    new = (SPACE.pairwise(images, axes.lines) > KNOWN).all(1)
    order = axes.order.repeat(2 * len(axis))
    images, order = images[new], order[new]
    some = kept(SPACE.pairwise(images, images) > SAME)[:MOST]
    missing = Turns(images[some], order[some], images[some, 0])
    return missing.brought(target.cloud[:ENOUGH, :3], target, FINE)


def with_orders(axes: Turns, points: Places, target: Target, limit: float) -> Turns:
    """Each with the largest order of turns about it, and the residual of these. If the order is n
    and k divides it, then n is k times some primes: they are tried one after the other."""
    left, order = torch.arange(len(axes.order), device=axes.order.device), axes.order.clone()
    primes = torch.tensor(PRIMES, device=order.device)
    while len(left):
        tried = order[left, None] * primes
        matches = tried <= HIGHEST
        for some in (points[:GLANCE], points[:ENOUGH]):
            row, column = matches.nonzero().unbind(1)
            residual = by_orders(axes.lines[left[row]], tried[row, column], some, target)
            matches[row, column] = residual <= limit
        left, first = left[matches.any(1)], matches.int().argmax(1)[matches.any(1)]
        order[left] = order[left] * primes[first]
    found = Turns(axes.lines, order, by_orders(axes.lines, order, points[:MANY], target))
    return continuous(found.at(found.residual <= limit), points[:ENOUGH], target, limit)


def continuous(axes: Turns, points: Places, target: Target, limit: float) -> Turns:
    """The same with an order of 0 where turns by any angle are symmetries."""
    high = (2 * axes.order > HIGHEST).nonzero()[:, 0]
    residual = worst(axes.lines[high], points, target)
    every = high[residual <= limit]
    axes.order[every] = 0
    axes.residual[every] = residual[residual <= limit]
    return axes


def by_orders(
    lines: Float[Tensor, "k 6"], order: Int64[Tensor, " k"], points: Places, target: Target
) -> Float[Tensor, " k"]:
    """The residuals of turns by 1/order about lines."""
    return measured(lines, points, target, Turning((2 * torch.pi / order)[None])).residual


def worst(lines: Float[Tensor, "k 6"], points: Places, target: Target) -> Float[Tensor, " k"]:
    """The residuals of the worst of many turns about lines."""
    angle = 2 * torch.pi * GOLDEN * torch.arange(1, TRIED + 1).to(lines)
    move = Turning(angle.repeat(len(lines))[None])
    residual = measured(lines.repeat_interleave(TRIED, 0), points, target, move).residual
    return residual.view(-1, TRIED).amax(1)
