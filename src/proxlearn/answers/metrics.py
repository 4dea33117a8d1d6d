"""How well a set of solutions matches the true one: witnessed divergence and precision (section 4).
Sets are `Solutions`, or plain points (n, d) or (instances, n, d) together with `space=`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.common.batch import Counts, Flags, Points, Values, pieces
from proxlearn.common.checks import array, floats
from proxlearn.errors import InputError
from proxlearn.spaces import Space

MAX_DISTANCES = 1 << 25  # distances held at once: 128 MiB
NEAR = 0.01  # a known minimizer is found if a solution is this near, a share of the diameter
Set = Solutions | Tensor
Threshold = float | Tensor | None  # one for all instances, or (i,)


@dataclass(frozen=True)
class Witnessed:
    """The witnessed metrics of every instance, for one draw of witnesses."""

    deltas: tuple[float, ...]
    divergence: Float[Tensor, " i"]  # WD_t
    precision: Float[Tensor, "i deltas"]  # WP_t^delta
    rho: Float[Tensor, " i"]  # of the solutions found, how many count
    rho_gt: Float[Tensor, " i"]  # of the true ones


def witnessed(
    found: Set,
    truth: Set,
    witnesses: Float[Tensor, "w d"],
    deltas: Sequence[float] = (0.05, 0.1, 0.2),
    threshold: Threshold = None,
    relative: bool = False,
    space: Space | None = None,
) -> Witnessed:
    """Witnessed divergence and precision, WD_t and WP_t^delta of eq. (7): how much two sets of
    solutions differ, as seen from the witnesses.

    Args:
        found: the solutions to measure
        truth: those to compare them with
        witnesses: random points of the space
        deltas: the distances of the witnessed precision
        threshold: t; solutions inside the space count if their value is at most t (default: all do)
        relative: t is times the best true value of each instance (paper, D.6)
        space: where the points live, if `found` and `truth` do not say it

    Two empty sets do not differ; an empty and another one differ by the diameter.
    """
    found, truth = _two_sets(found, truth, space)
    witnesses = _witnesses(witnesses, found.space)
    deltas = floats("deltas", deltas, "numbers").flatten().tolist()
    if not deltas:
        raise InputError("deltas must be at least one number, not none at all.")
    limit = limits(truth, threshold, relative)
    gap = gaps(found, truth, witnesses, limit)
    precision = torch.stack([(gap < delta).float().mean(1) for delta in deltas], 1)
    rho, rho_gt = (counted(each, limit).float().mean(1) for each in (found, truth))
    return Witnessed(tuple(deltas), gap.mean(1), precision, rho, rho_gt)


def gaps(
    found: Solutions, truth: Solutions, witnesses: Float[Tensor, "w d"], threshold: Threshold = None
) -> Float[Tensor, "i w"]:
    """`D_t` of eq. (6) for every witness: half the way from its projection on A to B, plus half
    the way from its projection on B to A. The diameter where one set is empty, 0 where both are."""
    a, b, space = counted(found, threshold), counted(truth, threshold), found.space
    to_b, _ = nearest(space, found.points, truth.points, b)
    to_a, _ = nearest(space, truth.points, found.points, a)
    everywhere = witnesses.to(found.points).expand(len(found), -1, -1)
    _, on_a = nearest(space, everywhere, found.points, a)
    _, on_b = nearest(space, everywhere, truth.points, b)
    gap = torch.zeros_like(everywhere[..., 0])
    if to_b.shape[1] and to_a.shape[1]:
        gap = (to_b.gather(1, on_a) + to_a.gather(1, on_b)) / 2
    empty_a, empty_b = ~a.any(1, keepdim=True), ~b.any(1, keepdim=True)
    gap = torch.where(empty_a | empty_b, space.diameter, gap)
    return torch.where(empty_a & empty_b, 0.0, gap)


def recall(
    found: Solutions, known: Sequence[Float[Tensor, "_ d"]], tolerance: float | None = None
) -> tuple[int, int]:
    """Of the known minimizers of all instances, how many have a solution within `tolerance`
    (1% of the diameter unless given), and how many there are."""
    hits, limit = 0, NEAR * found.space.diameter if tolerance is None else tolerance
    for k, minimizers in enumerate(known):
        one = found[k]
        distance, _ = nearest(one.space, minimizers[None], one.points, one.inside)
        hits += int((distance <= limit).sum())
    return hits, sum(map(len, known))


def counted(solutions: Solutions, threshold: Threshold = None) -> Flags:
    """Which solutions count: those inside the space with values of at most the threshold; without
    one, or with an infinite one, all inside."""
    if threshold is None or (isinstance(threshold, float) and threshold == math.inf):
        return solutions.inside
    if solutions.values is None:
        raise InputError("A threshold needs values, and these solutions have none.")
    limit = array("threshold", threshold, "a number, or one for each instance")
    if limit.numel() not in (1, len(solutions)):
        raise InputError(f"threshold must be one number, or one for each of {len(solutions)}.")
    limit = limit.to(solutions.points.device).reshape(-1, 1)
    return solutions.inside & (solutions.values <= limit)


def limits(truth: Solutions, threshold: Threshold, relative: bool) -> Threshold:
    """The threshold, or with `relative` that many times the best true value of each instance."""
    if threshold is None or not relative:
        return threshold
    if truth.values is None:
        raise InputError("A relative threshold needs values, and the true solutions have none.")
    return threshold * truth.lowest()


def nearest(
    space: Space, x: Points, y: Float[Tensor, "i m d"], counts: Bool[Tensor, "i m"]
) -> tuple[Values, Counts]:
    """From every x to the nearest y that counts: how far (infinitely if none does), and which."""
    if not y.shape[1]:
        return x.new_full(x.shape[:2], torch.inf), x.new_zeros(x.shape[:2], dtype=torch.long)
    far, which = x.new_empty(x.shape[:2]), torch.empty_like(x[..., 0], dtype=torch.long)
    most = MAX_DISTANCES // y.shape[1]
    for rows, columns, (others, count), some in pieces((y, counts), x, most):
        distance = space.pairwise(some, others).masked_fill_(~count[:, None], torch.inf)
        far[rows, columns], which[rows, columns] = distance.min(2)
    return far, which


def _witnesses(given: Any, space: Space) -> Float[Tensor, "w d"]:
    witnesses = floats("witnesses", given, f"points (n, {space.dim})")
    if witnesses.ndim != 2 or witnesses.shape[1] != space.dim or not len(witnesses):
        raise InputError(
            f"witnesses has shape {tuple(witnesses.shape)}; expected points (n, {space.dim})."
        )
    return witnesses


def _two_sets(found: Set, truth: Set, space: Space | None) -> tuple[Solutions, Solutions]:
    """Both sets as solutions, of as many instances."""
    spaces = [each.space for each in (found, truth) if isinstance(each, Solutions)]
    a, b = (_solutions(each, *spaces[:1] or [space]) for each in (found, truth))
    if len(a) != len(b):
        raise InputError(
            f"The sets are of {len(a)} and of {len(b)} instances; give as many of each."
        )
    return a, b


def _solutions(points: Set, space: Space | None) -> Solutions:
    if isinstance(points, Solutions):
        return points
    if not isinstance(space, Space):
        raise InputError("Plain points need space=, such as space=px.Box(-5, 5, dim=2).")
    points = floats("points", points, "points (n, d) or (instances, n, d)")
    points = points if points.ndim == 3 else points[None]
    if points.ndim != 3 or points.shape[-1] != space.dim:
        raise InputError(
            f"points has shape {tuple(points.shape)}; expected (n, {space.dim}) or (instances, n, "
            f"{space.dim})."
        )
    return Solutions.of(space, points, points)
