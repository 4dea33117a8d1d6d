"""Which solutions belong together: those at an isolated optimum, and those along one connected set.

Points within the tolerance are together. Farther ones are linked if they lie along a curve or a
surface, by the spread of their neighbours, and if random points on it would leave such a gap.
"""

from bisect import bisect_right
from collections.abc import Callable
from copy import deepcopy
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

if TYPE_CHECKING:
    from scipy.spatial import KDTree

TOLERANCE = 0.005  # solutions nearer than this share of the diameter are one optimum
SMALLEST_SHARE = 0.001  # of the starts; what fewer reached is no optimum to list
MAX_DISTANCES = 1 << 25  # held at once: 128 MiB
TREE_DIM = 8  # above, a tree looks at nearly every point
TREE_POINTS = 1500  # fewer are compared one by one, which needs nothing that is slow to import
NEIGHBOURS = 12  # of every ball, to link it with
AROUND = 10  # of them, to tell the local dimension by
THIN = 0.1  # a direction counts if neighbours vary in it by this share of the widest one
SURFACE = 2  # the widest dimension that so few neighbours can tell from a random scatter
RATIO = 4.0  # a gap that sets points apart is so much wider than the widest one among them
CHANCE = 1e-6  # and so wide that as many random points leave it no more often than this
FEWEST_POINTS, FEWEST_BALLS = 16, 4  # that make a set; fewer are optima of their own

Distance = Callable[[Tensor, Tensor], Tensor]  # (*i n d), (*i m d) -> (*i n m)


class Cluster(NamedTuple):
    """Some of the points, which belong together."""

    members: Int[np.ndarray, " m"]
    dimension: int  # of the set they lie along; 0 if they are too few for one
    gap: float  # the widest between neighbours

    def some(self, count: int) -> Int[np.ndarray, " k"]:
        """About so many members, evenly among them."""
        return self.members[:: -(-len(self.members) // count)]

    def lowest(self, values: Float[Tensor, " n"]) -> int:
        """The member with the lowest value."""
        return int(self.members[int(values[self.members].nan_to_num(torch.inf).argmin())])


class Balls(NamedTuple):
    """A cover of the points by balls around some of them."""

    centers: Float[Tensor, "b d"]
    values: Float[Tensor, " b"]
    members: list[Tensor]  # which points each ball holds
    reach: list[float]  # how far the farthest of them is from the center


def clusters(
    points: Float[Tensor, "n d"],
    values: Float[Tensor, " n"] | None,
    distance: Distance,
    degrees: int,
    tolerance: float,
    value_tolerance: float | None = None,
    euclidean: bool = False,
    flat: Bool[Tensor, " n"] | None = None,
) -> list[Cluster]:
    """The clusters of points that have so many degrees of freedom; points whose values differ by
    more than `value_tolerance`, where it is given, are not linked. Where the distance is the
    `euclidean` one, a tree finds neighbours of many, for scattered points as fast as for crowded.
    `flat` says which points can be part of a continuum at all; None: any."""
    if not len(points):
        return []
    values = points.new_zeros(len(points)) if values is None else values
    value_tolerance = torch.inf if value_tolerance is None else value_tolerance
    tree = euclidean and points.shape[1] <= TREE_DIM and len(points) >= TREE_POINTS
    balls = _cover(points, values, distance, tree, tolerance / 2, value_tolerance)
    far, which = _nearest(balls.centers, distance, tree)
    variances = _variances(balls.centers, which[:, :AROUND], distance)
    alike = (balls.values[:, None] - balls.values[which]).abs() <= value_tolerance
    links, groups = _links(far, which, alike), _Groups(balls)
    short = bisect_right(links, tolerance, key=itemgetter(0))
    for length, a, b in links[:short]:
        groups.join(a, b, length)
    tight = deepcopy(groups)
    # Along a curve or a surface, with most neighbours, as one place can look thin by chance. What
    # fills the space may as well be many separate optima.
    thin = _wide(variances, tolerance) <= min(degrees - 1, SURFACE)
    thin &= thin[which[:, :AROUND]].float().mean(1) >= 0.5
    if flat is not None:
        thin &= torch.stack([flat[each].any() for each in balls.members])
    thin = thin.tolist()
    for length, a, b in links[short:]:
        if thin[a] and thin[b] and not groups.apart(a, b, length):
            groups.join(a, b, length)
    for length, a, b in links[short:]:
        if groups.strays(a, b, length):
            groups.join(a, b, length)
    return _collect(balls, groups, tight, _wide(variances, tolerance / 2))


@np.errstate(invalid="ignore")
def _cover(
    points: Tensor, values: Tensor, distance: Distance, tree: bool, radius: float, rise: float
) -> Balls:
    """Balls around points that no earlier ball holds, so that crowded places get no more; within
    one, values differ from that of its center by `rise` at most."""
    index = _tree(points) if tree else None
    numbers, free = values.double().numpy(), np.ones(len(points), dtype=bool)
    centers, members, reach = [], [], []
    for center in range(len(points)):
        if not free[center]:
            continue
        if index is None:
            near = free.nonzero()[0]
            far = distance(points[[center]], points[near])[0].numpy()
        else:
            near = np.array(index.query_ball_point(index.data[center], radius, return_sorted=True))
            near = near[free[near]]
            far = np.linalg.norm(index.data[near] - index.data[center], axis=1)
        held = (far <= radius) & (np.abs(numbers[near] - numbers[center]) <= rise)
        held |= near == center  # even if its value is no number
        free[near[held]] = False
        centers.append(center)
        members.append(torch.from_numpy(near[held]))
        reach.append(float(far[held].max()))
    return Balls(points[centers], values[centers], members, reach)


def _tree(points: Float[Tensor, "n d"]) -> "KDTree":
    from scipy.spatial import KDTree  # takes longer to import than an operator to load

    return KDTree(points.double().numpy())


def _nearest(
    centers: Float[Tensor, "b d"], distance: Distance, tree: bool
) -> tuple[Float[Tensor, "b k"], Int[Tensor, "b k"]]:
    """From every ball to the nearest others: how far, and which."""
    count = min(NEIGHBOURS, len(centers) - 1)
    if tree:
        index = _tree(centers)
        found = index.query(index.data, count + 1)
        far, which = (torch.from_numpy(each.reshape(-1, count + 1)) for each in found)
    else:  # some rows at a time
        some = centers.split(max(1, MAX_DISTANCES // len(centers)))
        found = [distance(rows, centers).topk(count + 1, largest=False) for rows in some]
        far, which = (torch.cat(each) for each in zip(*found))
    itself = which == torch.arange(len(centers))[:, None]
    order = far.masked_fill(itself, torch.inf).argsort(dim=1, stable=True)[:, :count]
    return far.gather(1, order).to(centers.dtype), which.gather(1, order)


def _variances(
    centers: Float[Tensor, "b d"], nearest: Int[Tensor, "b k"], distance: Distance
) -> Float[Tensor, "b k+1"]:
    """How the neighbours of every ball vary along their principal directions, smallest first: the
    spectrum of their covariance, by the space's own distances alone (classical scaling)."""
    around = torch.cat((torch.arange(len(centers))[:, None], nearest), 1)
    square = distance(centers[around], centers[around]).square()
    count = square.shape[-1]
    centering = torch.eye(count) - 1 / count
    gram = -0.5 * centering.to(square) @ square @ centering.to(square)
    return torch.linalg.eigvalsh(gram) / count


def _wide(variances: Float[Tensor, "b k"], least: float) -> Int[Tensor, " b"]:
    """In how many directions the neighbours of every ball spread farther than `least`."""
    widest = variances[:, -1:]
    return ((variances > THIN * widest) & (variances > least**2)).sum(1)


def _links(far: Tensor, which: Tensor, alike: Tensor) -> list[tuple[float, int, int]]:
    """Every ball with its nearest others, each pair once, the shortest first: (length, a, b)."""
    a = torch.arange(len(far))[:, None].expand_as(which)[alike]
    lengths, b = far[alike].tolist(), which[alike]
    pairs = zip(torch.minimum(a, b).tolist(), torch.maximum(a, b).tolist())
    return sorted((length, *pair) for pair, length in dict(zip(pairs, lengths)).items())


class _Groups:
    """Balls that grow together, each group with its number of points and its widest gap."""

    def __init__(self, balls: Balls):
        self.parent = list(range(len(balls.members)))
        self.count = [len(each) for each in balls.members]
        self.balls = [1] * len(balls.members)
        self.gap = list(balls.reach)

    def root(self, ball: int) -> int:
        """The ball that stands for its group."""
        while self.parent[ball] != ball:
            self.parent[ball] = self.parent[self.parent[ball]]  # a shorter way for the next time
            ball = self.parent[ball]
        return ball

    def join(self, a: int, b: int, length: float) -> None:
        less, more = sorted((self.root(a), self.root(b)), key=self.balls.__getitem__)
        if less != more:
            self.parent[less] = more
            self.count[more] += self.count[less]
            self.balls[more] += self.balls[less]
            self.gap[more] = max(self.gap[less], self.gap[more], length)

    def apart(self, a: int, b: int, length: float) -> bool:
        """Whether a gap of this length is too wide, for one side at least, to be chance. Of random
        points on one set, m - 1 gaps are all `r` times narrower than the next one with a
        probability of about `r ** -(m - 1)`."""
        sides = [root for root in (self.root(a), self.root(b)) if self.count[root] > 1]
        ratios = [max(RATIO, CHANCE ** (-1 / (self.count[root] - 1))) for root in sides]
        return any(length > ratio * self.gap[root] for ratio, root in zip(ratios, sides))

    def is_set(self, root: int) -> bool:
        """Whether there is enough of it to be a set, and not a few optima."""
        return self.count[root] >= FEWEST_POINTS and self.balls[root] >= FEWEST_BALLS

    def strays(self, a: int, b: int, length: float) -> bool:
        """Whether one side is a set, and the other a few points no farther off than its gaps."""
        few, most = sorted((self.root(a), self.root(b)), key=self.count.__getitem__)
        return self.count[few] < FEWEST_POINTS and self.is_set(most) and length <= self.gap[most]


def _collect(
    balls: Balls, groups: _Groups, tight: _Groups, dimension: Int[Tensor, " b"]
) -> list[Cluster]:
    """The groups as clusters; one too small to be a set falls back into its tight parts."""
    chosen: dict[tuple[int, float], list[int]] = {}
    for ball in range(len(balls.members)):
        root, part = groups.root(ball), tight.root(ball)
        key = (root, groups.gap[root]) if groups.is_set(root) else (part, tight.gap[part])
        chosen.setdefault(key, []).append(ball)
    found = []
    for (_, gap), together in chosen.items():
        members = torch.cat([balls.members[ball] for ball in together])
        typical = max(1, int(dimension[together].median()))
        enough = len(members) >= FEWEST_POINTS
        found.append(Cluster(members.numpy(), typical if enough else 0, gap))
    return found
