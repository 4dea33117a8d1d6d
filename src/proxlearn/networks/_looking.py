"""What the networks for symmetries of clouds share: how moved points are matched with the cloud,
the steps to where they match better, and how much of each step is taken.

Every plane or line x moves some points of the cloud and matches each with a point of it nearby.
With moved points r, matches q and normals m there, the x that matches them better solves normal
equations, reweighted so that far matches count less: `min sum w |r - q|^2` of points, or
`min sum w (m . (r - q))^2` of points and tangent planes. There are seven such equations, from fine
to coarse, and each is solved with lam and with a tenth of it. With `discs` there are two more, of
points and discs: pieces of the tangent planes, each as large as its point's share of the surface. A
small network then says how much of each of these steps to take. All that it sees is the same
however the cloud is turned, so that its steps turn with the cloud.

Fine equations of tangent planes lead to symmetries; fine ones of points are true to the distance
where many points match nowhere, as they do at the shallow minima of shapes that nearly are
symmetric.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float, Int32
from torch import Tensor, nn

from proxlearn.common.batch import Batch, Points
from proxlearn.common.checks import count
from proxlearn.meshes.grid import around, corners
from proxlearn.networks.base import Architecture, Lams, Network, Prepared, place_of_lam
from proxlearn.spaces import Space

TURNED = 0.01  # what it costs to match points whose normals are at right angles, a squared length
TO_PLANES = (0.001, 0.005, 0.03)  # distances beyond which points and tangent planes count less
TO_POINTS = (0.003, 0.02, 0.1, 0.5)  # the same for points and points
TO_DISCS = (0.001, 0.01)  # the same for points and discs
NEIGHBORS = 6  # as many discs cover a disc that reaches as many points from one
ASKED = 64  # points of a cloud by which its discs are measured
LOOSER = (1.0, 0.1)  # times lam: each equation is solved with these
SCALES = (0.003, 0.01, 0.03, 0.1)  # of distances: how many matches are nearer
COUNTS = 2 * len(SCALES) + 3  # numbers besides the equations that are seen of matches
SMALLEST = 1e-12
TINY = 1e-6  # a distance at which there is no direction
TOGETHER = 2_048  # corners whose nearest points are searched at once, in a graph

Three = Sequence[Float[Tensor, "i n m"]]  # the coordinates of vectors


@dataclass(frozen=True)
class Looking(Architecture):
    """The sizes of such a network."""

    encodes = False
    exact = True
    reflected: int = 512
    """points of the cloud that are moved"""
    side: int = 32
    """corners along each side of the grid in which points are searched"""
    width: int = 128
    """hidden numbers of the network that weighs the steps"""
    discs: bool = False
    """whether points are matched with discs of the surface, too"""

    def __post_init__(self):
        super().__post_init__()
        for name in ("reflected", "side", "width"):
            count(name, getattr(self, name))

    @property
    def to_discs(self) -> tuple[float, ...]:
        return TO_DISCS if self.discs else ()

    @property
    def systems(self) -> int:
        """How many equations every x has."""
        return len(TO_PLANES) + len(TO_POINTS) + len(self.to_discs)


class LookingNetwork(Network):
    """What is seen of matches, and how much of each step is taken."""

    architecture: Looking
    space: Space
    settles = True
    code_size: int = 1  # numbers that are known of tau and lam together, beside what is seen

    def __init__(self, sizes: Looking, lams: Lams | None = None):
        super().__init__()
        self.architecture, self.lams = sizes, lams
        steps, width = len(LOOSER) * sizes.systems, sizes.width
        pairs = steps * (steps - 1) // 2
        seen = 2 * steps + pairs + COUNTS
        last = nn.Linear(width, steps)
        self.shares = nn.Sequential(
            nn.Linear(seen + self.code_size, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            last,
        )
        nn.init.zeros_(last.weight)
        nn.init.constant_(last.bias, 1 / steps)

    def look_at(self, cloud: Float[Tensor, "i m 6"]) -> dict[str, Tensor]:
        """The cloud, points of it to move, the grid of its nearest points, and the radius of its
        discs."""
        cloud, sizes = cloud.contiguous(), self.architecture
        size = int(cloud.shape[1])  # a graph that is exported is of clouds of this size
        some = cloud[:, _some(size, sizes.reflected, cloud.device)].contiguous()
        ids = nearest_ids(cloud[..., :3].contiguous(), sizes.side)
        code = {"cloud": cloud, "some": some, "ids": ids}
        return code | {"radius": radius_of(cloud, some)} if sizes.discs else code

    def prepare(self, code: Batch, lam: Float[Tensor, " i"]) -> Prepared:
        return code | {"lam": lam, "code": place_of_lam(lam, self.lams)[:, None]}

    def forward(self, x: Points, prepared: Prepared) -> Points:
        with torch.autocast(x.device.type, enabled=False):
            basis = self.space.tangent(x)
            steps, counted = self.steps(x, basis, prepared)
            seen = torch.cat((_invariants(steps), counted), -1)
            code = prepared["code"][:, None].expand(-1, x.shape[1], -1)
            shares = self.shares(torch.cat((seen, code), -1))
            step = (shares[..., None] * steps).sum(-2)
            return x + (basis @ step[..., None])[..., 0]

    @torch.no_grad()
    def steps(
        self, x: Points, basis: Float[Tensor, "i n d t"], prepared: Prepared
    ) -> tuple[Float[Tensor, "i n s t"], Float[Tensor, "i n f"]]:
        """The steps to choose from, in the basis, and what else is seen."""
        sums = self.looked(x, basis, prepared) / prepared["some"].shape[1]
        systems, seen = sums[..., :-COUNTS], sums[..., -COUNTS:]
        lam = torch.stack([looser * prepared["lam"] for looser in LOOSER], 1)
        systems = systems.unflatten(-1, (1, self.architecture.systems, -1))
        steps = solved(systems, basis.shape[-1], lam[:, None, :, None])  # (i n 2 s t)
        return steps.flatten(-3, -2), seen

    @abstractmethod
    def looked(
        self, x: Points, basis: Float[Tensor, "i n d t"], prepared: Prepared
    ) -> Float[Tensor, "i n f"]:
        """What every x sees, summed over the points that it moves: its equations, to planes, to
        points and to discs, each as `equations` has them, and `counts` of distances."""

    def widest(self, dim: int) -> int:
        return 16 * self.architecture.reflected


def _invariants(steps: Float[Tensor, "i n s t"]) -> Float[Tensor, "i n f"]:
    """How far each step turns and shifts, by orders of magnitude, and how much they agree."""
    way = nn.functional.normalize(steps, dim=-1, eps=SMALLEST)
    k = steps.shape[-2]
    row, column = torch.triu_indices(k, k, 1, device=steps.device)
    agree = (way[..., row, :] * way[..., column, :]).sum(-1)
    return torch.cat((_lengths(steps).flatten(-2), agree), -1)


def _lengths(steps: Float[Tensor, "*n t"]) -> Float[Tensor, "*n 2"]:
    """How far steps turn and shift, by orders of magnitude."""
    turn, shift = steps[..., :2].norm(dim=-1), steps[..., 2:].norm(dim=-1)
    return (torch.stack((turn, shift), -1) + 1e-5).log() / 5


def solved(system: Float[Tensor, "*n e"], degrees: int, lam: Tensor) -> Float[Tensor, "*m t"]:
    """`-(A + lam)^-1 b` of equations as below, by Cholesky: entry by entry, since they are many and
    small."""
    if system.is_cuda and degrees == 3:
        from proxlearn.networks._looking_kernel import solved as fused

        return fused(system, lam)
    entries, order = system.unbind(-1), range(degrees)
    upper = iter(entries)
    matrix = {(i, j): next(upper) for i in order for j in range(i, degrees)}
    lower: dict[tuple[int, int], Tensor] = {}
    half = list(entries[-degrees:])
    for j in order:
        for i in range(j, degrees):
            value = matrix[j, i] + lam if i == j else matrix[j, i]
            for k in range(j):
                value = torch.addcmul(value, lower[i, k], lower[j, k], value=-1)
            lower[i, j] = value.clamp(min=SMALLEST).sqrt() if i == j else value / lower[j, j]
        for k in range(j):
            half[j] = torch.addcmul(half[j], lower[j, k], half[k], value=-1)
        half[j] = half[j] / lower[j, j]
    for j in reversed(order):
        for k in range(j + 1, degrees):
            half[j] = torch.addcmul(half[j], lower[k, j], half[k], value=-1)
        half[j] = half[j] / lower[j, j]
    return -torch.stack(half, -1)


def equations(
    weight: Float[Tensor, "i n m"], rows: Float[Tensor, "i n t1 m"]
) -> Float[Tensor, "i n e"]:
    """Sums over points with these slopes, the last of which is their error: the upper half of the
    matrix, then the right-hand side."""
    every, t = (weight[..., None, :] * rows) @ rows.mT, rows.shape[-2] - 1
    row, column = _upper(t, rows.device)
    return every[..., row, column]


@lru_cache(maxsize=8)
def _upper(t: int, device: torch.device) -> tuple[Tensor, Tensor]:
    row, column = torch.triu_indices(t, t, device=device)
    every, last = torch.arange(t, device=device), torch.full((t,), t, device=device)
    return torch.cat((row, every)), torch.cat((column, last))


def counts(apart: Tensor, far: Tensor, facing: Tensor) -> Float[Tensor, "i n f"]:
    """Of matches: how many are near, by their distances to tangent planes and by the squared ones
    to points, and the sums of both and of how much normals agree."""
    near = [
        (square / (square + scale**2)).sum(-1)
        for square in (apart.square(), far)
        for scale in SCALES
    ]
    sums = [apart.abs().sum(-1), far.sqrt().sum(-1), facing.abs().sum(-1)]
    return torch.stack((*near, *sums), -1)


def constants(numbers: int, to_discs: tuple[float, ...]) -> dict[str, Any]:
    """What kernels are compiled for, where an equation has so many numbers."""
    scales = {"TO_PLANES": TO_PLANES, "TO_POINTS": TO_POINTS, "TO_DISCS": to_discs}
    seen = numbers * sum(map(len, scales.values())) + COUNTS
    return scales | {"SCALES": SCALES, "TURNED": TURNED, "TINY": TINY, "SEEN": seen}


def in_frame(frame: Float[Tensor, "i n f 3"], points: Float[Tensor, "i k 3"]) -> tuple[Tensor, ...]:
    """The coordinates of points in the frame of every x."""
    every = frame.flatten(1, 2) @ points.mT
    return every.unflatten(1, frame.shape[1:3]).unbind(2)


def dots(vectors: Three, frame: Float[Tensor, "i n 3 3"]) -> list[Tensor]:
    """The same of vectors that each x has for itself."""
    return [dot(vectors, axis[..., None].unbind(-2)) for axis in frame.unbind(-2)]


def dot(one: Sequence[Tensor], other: Sequence[Tensor]) -> Tensor:
    (a, b, c), (u, v, w) = one, other
    return torch.addcmul(torch.addcmul(a * u, b, v), c, w)


def matched(moved: Three, turned: Three, prepared: Prepared) -> tuple[Three, Three]:
    """For every point the best of those that are nearest to the corners of its cell, and the normal
    there; `turned` are the normals of moved points."""
    ids, cloud = prepared["ids"], prepared["cloud"]
    (i, m, _), side = cloud.shape, round(prepared["ids"].shape[1] ** (1 / 3))
    first = torch.arange(i, device=ids.device).view(i, 1, 1)
    cells = around(torch.stack(tuple(moved), -1).view(-1, 3), side).T.reshape(8, *moved[0].shape)
    every = _taken(ids.flatten(), cells + first * ids.shape[1]) + first * m
    columns = cloud.flatten(0, 1).T.contiguous()
    x, y, z, u, v, w = (_taken(column, every) for column in columns)  # (8 i n m) each
    way = [r - q for r, q in zip(moved, (x, y, z))]
    cost = dot(way, way) - TURNED * dot(turned, (u, v, w)).abs()
    least, best = cost[0], torch.zeros_like(every[:1])
    for k in range(1, 8):  # faster than `argmin`
        best.masked_fill_(cost[k] < least, k)
        least = torch.minimum(least, cost[k])
    every = every.gather(0, best)[0]
    chosen = [_taken(column, every) for column in columns]
    return chosen[:3], chosen[3:]


def to_disc(
    way: Three, apart: Tensor, other: Three, radius: Float[Tensor, " i"]
) -> tuple[list[Tensor], Tensor]:
    """The direction and the length of the way to a point from the nearest of a disc, which lies
    around the point's match with this normal; `apart`: how far it is from the tangent plane."""
    beside = [w - apart * m for w, m in zip(way, other)]
    length = dot(beside, beside).sqrt()
    outside = (1 - radius[:, None, None] / length.clamp(min=SMALLEST)).clamp(min=0)
    way = [apart * m + outside * b for m, b in zip(other, beside)]
    far = dot(way, way).sqrt()
    inside = far < TINY
    direction = [torch.where(inside, m, w / far.clamp(min=TINY)) for m, w in zip(other, way)]
    return direction, torch.where(inside, apart, far)


def radius_of(cloud: Float[Tensor, "i m 6"], some: Float[Tensor, "i k 6"]) -> Float[Tensor, " i"]:
    """The radius of discs that cover as much as the surface has, if its points lie evenly."""
    exact = "donot_use_mm_for_euclid_dist"
    apart = torch.cdist(some[:, :ASKED, :3], cloud[..., :3], compute_mode=exact)
    nearest = min(NEIGHBORS + 1, cloud.shape[1])  # each point is the nearest to itself
    return apart.topk(nearest, largest=False).values[..., -1].mean(1) / NEIGHBORS**0.5


def _taken(values: Tensor, index: Tensor) -> Tensor:
    """`values[index]`, which is slower."""
    return values.index_select(0, index.flatten()).view(index.shape)


def nearest_ids(points: Float[Tensor, "i m 3"], side: int) -> Int32[Tensor, "i c"]:
    """Of every corner of a grid, the nearest point of the cloud."""
    if torch.compiler.is_exporting():
        return _nearest_of_all(points, corners(side, points.device))
    if points.is_cuda:
        from proxlearn.networks._looking_kernel import nearest_ids as fused

        return fused(points, corners(side, points.device))
    from scipy.spatial import KDTree

    at = corners(side, points.device).numpy()
    found = [KDTree(each.numpy()).query(at, workers=torch.get_num_threads())[1] for each in points]
    return torch.stack([torch.from_numpy(each).int() for each in found])


def _nearest_of_all(
    points: Float[Tensor, "i m 3"], at: Float[Tensor, "c 3"]
) -> Int32[Tensor, "i c"]:
    """The same as a graph of tensor operations: by the squared distances to all points, but for the
    part that is the same for each."""
    square = points.square().sum(-1)[:, None]
    nearest = [(square - 2 * some @ points.mT).argmin(-1) for some in at.split(TOGETHER)]
    return torch.cat(nearest, 1).int()


@lru_cache(maxsize=8)
def _some(count: int, most: int, device: torch.device) -> Tensor:
    """Which points of a cloud are moved: any, since its order may say where they are."""
    shuffled = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    return shuffled[:most].to(device)
