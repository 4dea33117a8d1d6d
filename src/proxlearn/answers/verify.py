"""Whether the places where points gathered are optima. With the objective at hand, a few points of
each place are polished: they have to lead to a certified optimum nearby, and points along a curve
have to rest there, or they were only on their way."""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from proxlearn.answers.clusters import Cluster, Distance
from proxlearn.calculus.certify import BOUNDARY, FLAT, MINIMUM, certify
from proxlearn.calculus.polish import polish
from proxlearn.common.batch import Batch
from proxlearn.problems.base import Problem

NEARBY = 0.05  # the farthest from a point that the optimum it leads to may be, of the diameter


class Ends(NamedTuple):
    """Where points lead when they are polished."""

    points: Float[Tensor, "k d"]
    optimal: Bool[Tensor, " k"]  # whether that is a certified optimum
    flat: Bool[Tensor, " k"]  # and one that may belong to a continuum


def ends_of(problem: Problem, tau: Batch, points: Float[Tensor, "k d"]) -> Ends:
    """Polish points of one instance, and certify where they end."""
    if not len(points):
        none = torch.zeros(0, dtype=torch.bool)
        return Ends(points, none, none)
    polished = polish(problem, tau, points[None])
    codes, space = certify(problem, tau, polished)[0], problem.space
    near = space.squared_distance(points, polished[0]) <= (NEARBY * space.diameter) ** 2
    flat = near & ((codes == FLAT) | (codes == BOUNDARY))
    return Ends(polished[0], flat | (near & (codes == MINIMUM)), flat)


def stays_spread(ends: Ends, distance: Distance, tolerance: float) -> bool:
    """Whether the points of a set rest along it: on flat ground, and still apart."""
    rests = ends.points[ends.flat]
    if 2 * len(rests) < len(ends.points):
        return False
    return bool((distance(rests, rests) > tolerance).any())


def merged(
    clusters: list[Cluster], ends: Ends, distance: Distance, tolerance: float
) -> list[Cluster]:
    """The clusters that lead to an optimum, those that lead to the same one together."""
    places: list[Tensor] = []
    members: list[list[Cluster]] = []
    for k in ends.optimal.nonzero()[:, 0].tolist():
        place = ends.points[k][None]
        near = [float(distance(place, each)) <= tolerance for each in places]
        if any(near):
            members[near.index(True)].append(clusters[k])
        else:
            places.append(place)
            members.append([clusters[k]])
    return [joined(each, 0) for each in members]


def joined(clusters: list[Cluster], dimension: int) -> Cluster:
    """Several clusters as one."""
    together = np.concatenate([each.members for each in clusters])
    return Cluster(together, dimension, max(each.gap for each in clusters))
