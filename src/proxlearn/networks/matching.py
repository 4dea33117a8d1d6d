"""The network for planes of symmetry: every plane looks at the cloud that is tau. It reflects some
of its points, matches each with a point of the cloud nearby, and goes where they match better.

Of points p that are reflected to r and matched with points q, the plane (n, d) that matches them
better solves normal equations, reweighted so that far matches count less: `min sum w |r - q|^2` of
points, or `min sum w (m . (r - q))^2` of points and tangent planes with normals m. There are five
such equations, from fine to coarse, and each is solved with lam and with a tenth of it. A small
network then says how much of each of these ten steps to take. All that it sees is the same
however the cloud is turned, so that its steps turn with the cloud.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float, Int32
from torch import Tensor, nn

from proxlearn.common.batch import Batch, Points
from proxlearn.common.checks import check_positive, check_whole
from proxlearn.instances.cloud import Clouds
from proxlearn.meshes.grid import around, corners
from proxlearn.networks.base import Architecture, Lams, Network, Prepared, place_of_lam
from proxlearn.spaces import Planes

TURNED = 0.01  # what it costs to match points whose normals are at right angles, a squared length
FINE = (0.001, 0.005, 0.03)  # distances beyond which points and tangent planes count less
COARSE = (0.1, 0.5)  # the same for points and points
LOOSER = (1.0, 0.1)  # times lam: each equation is solved with these
SCALES = (0.003, 0.01, 0.03, 0.1)  # of distances: how many matches are nearer
SYSTEM = 9  # numbers of normal equations: six of the matrix, three of the right-hand side
SYSTEMS = len(FINE) + len(COARSE)
STEPS = SYSTEMS * len(LOOSER)
SEEN = SYSTEMS * SYSTEM + 2 * len(SCALES) + 3  # numbers that a plane sees of its matches
SMALLEST = 1e-12


@dataclass(frozen=True)
class Matching(Architecture):
    """The sizes of the network."""

    encodes = False
    exact = True
    reflected: int = 512
    """points of the cloud that are reflected"""
    side: int = 32
    """corners along each side of the grid in which points are searched"""
    width: int = 128
    """hidden numbers of the network that weighs the steps"""

    def __post_init__(self):
        for name in ("reflected", "side", "width"):
            check_positive(name, getattr(self, name))
            check_whole(name, getattr(self, name))

    def refuses(self, space, instances):
        if isinstance(instances, Clouds) and isinstance(space, Planes):
            return None
        return f"it is for planes of clouds, not for {space} and {instances.words}"

    def build(self, space, instances, lams, encoder):
        return MatchingNetwork(self, lams)


class MatchingNetwork(Network):
    """What planes see of their matches, and how much of each step they take."""

    architecture: Matching

    def __init__(self, sizes: Matching, lams: Lams | None = None):
        super().__init__()
        self.architecture, self.lams = sizes, lams
        pairs = STEPS * (STEPS - 1) // 2
        inputs, width = 2 * STEPS + pairs + SEEN - SYSTEMS * SYSTEM + 1, sizes.width
        last = nn.Linear(width, STEPS)
        self.shares = nn.Sequential(
            nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), last
        )
        nn.init.zeros_(last.weight)
        nn.init.constant_(last.bias, 1 / STEPS)

    def encode(self, observed: Float[Tensor, "i m 6"]) -> Batch:
        """The cloud, points of it to reflect, and the grid of its nearest points."""
        cloud = observed.contiguous()
        some = _some(cloud.shape[1], self.architecture.reflected, cloud.device)
        ids = nearest_ids(cloud[..., :3].contiguous(), self.architecture.side)
        return {"cloud": cloud, "some": cloud[:, some].contiguous(), "ids": ids}

    def prepare(self, code: Batch, lam: Float[Tensor, " i"]) -> Prepared:
        return code | {"lam": lam, "place": place_of_lam(lam, self.lams)}

    def forward(self, x: Points, prepared: Prepared) -> Points:
        with torch.autocast(x.device.type, enabled=False):
            basis = Planes().tangent(x)
            steps, seen = self.steps(x, basis, prepared)
            place = prepared["place"][:, None, None].expand(-1, x.shape[1], 1)
            shares = self.shares(torch.cat((_invariants(steps), seen, place), -1))
            step = (shares[..., None] * steps).sum(-2)
            return x + (basis @ step[..., None])[..., 0]

    @torch.no_grad()
    def steps(
        self, x: Points, basis: Float[Tensor, "i n 4 3"], prepared: Prepared
    ) -> tuple[Float[Tensor, "i n s 3"], Float[Tensor, "i n f"]]:
        """The steps to choose from, in the basis, and what else is seen."""
        sums = looked(x, basis, prepared) / prepared["some"].shape[1]
        systems, seen = sums.split((SYSTEMS * SYSTEM, SEEN - SYSTEMS * SYSTEM), -1)
        matrix, right = systems.unflatten(-1, (SYSTEMS, SYSTEM)).split((6, 3), -1)
        lam = prepared["lam"][:, None, None]
        every = [_solved(matrix, right, looser * lam) for looser in LOOSER]
        return torch.cat(every, -2), seen

    def widest(self, dim: int) -> int:
        return 16 * self.architecture.reflected


def _invariants(steps: Float[Tensor, "i n s 3"]) -> Float[Tensor, "i n f"]:
    """How far each step turns and shifts the plane, by orders of magnitude, and how much they
    agree."""
    turn, shift = steps[..., :2].norm(dim=-1), steps[..., 2].abs()
    way = nn.functional.normalize(steps, dim=-1, eps=SMALLEST)
    row, column = torch.triu_indices(STEPS, STEPS, 1, device=steps.device)
    agree = (way[..., row, :] * way[..., column, :]).sum(-1)
    lengths = torch.cat((turn, shift), -1)
    return torch.cat(((lengths + 1e-5).log() / 5, agree), -1)


def _solved(
    matrix: Float[Tensor, "i n s 6"], right: Float[Tensor, "i n s 3"], lam: Tensor
) -> Float[Tensor, "i n s 3"]:
    """`-(A + lam)^-1 b` of symmetric matrices, given by their upper halves."""
    a, b, c, d, e, f = matrix.unbind(-1)
    a, d, f = a + lam, d + lam, f + lam
    first, second, third = d * f - e * e, c * e - b * f, b * e - c * d
    det = (a * first + b * second + c * third).clamp(min=SMALLEST)
    g, h, k = right.unbind(-1)
    x = first * g + second * h + third * k
    y = second * g + (a * f - c * c) * h + (b * c - a * e) * k
    z = third * g + (b * c - a * e) * h + (a * d - b * b) * k
    return -torch.stack((x, y, z), -1) / det[..., None]


def looked(
    x: Points, basis: Float[Tensor, "i n 4 3"], prepared: Prepared
) -> Float[Tensor, "i n f"]:
    """What every plane sees, summed over the points that it reflects: the normal equations,
    distances, and how many of them are small."""
    if x.is_cuda:
        from proxlearn.networks.matching_kernel import looked as fused

        sizes = {"FINE": FINE, "COARSE": COARSE, "SCALES": SCALES, "TURNED": TURNED}
        return fused(x, basis, prepared, sizes | {"SEEN": SEEN})
    frame = torch.stack((x[..., :3], basis[..., :3, 0], basis[..., :3, 1]), -2)  # (i n 3 3)
    point, own = prepared["some"].split(3, -1)
    height, along, sideways = _in_frame(frame, point)  # (i n k) each, as all that follows
    height = height - x[..., 3:]
    turn = _in_frame(frame[..., :1, :], own)[0]
    normal = x[..., :3].unbind(-1)
    moved = [p[:, None] - 2 * height * n[..., None] for p, n in zip(point.unbind(-1), normal)]
    turned = [o[:, None] - 2 * turn * n[..., None] for o, n in zip(own.unbind(-1), normal)]
    place, other = _matched(moved, turned, prepared)
    way = [r - q for r, q in zip(moved, place)]
    apart, far, facing = _dot(way, other), _dot(way, way), _dot(turned, other)
    level, ahead, aside = _dots(way, frame)
    up, forth, side = _dots(other, frame)
    tangent = (-2 * (along * up + height * forth), -2 * (sideways * up + height * side), 2 * up)
    rows, found = torch.stack((*tangent, apart), -2), []
    for scale in FINE:
        weight = facing.square() * (apart.square() + scale**2).rsqrt()
        found.append(_equations(weight, rows))
    rows = torch.stack((-2 * along, -2 * sideways, torch.full_like(along, 2.0), level), -2)
    for scale in COARSE:
        weight = (far + scale**2).rsqrt()
        equations, tilt = _equations(weight, rows), weight * height
        equations[..., (0, 3)] += 4 * (tilt * height).sum(-1, keepdim=True)
        equations[..., 6] -= 2 * (tilt * ahead).sum(-1)
        equations[..., 7] -= 2 * (tilt * aside).sum(-1)
        found.append(equations)
    shares = [
        (square / (square + scale**2)).sum(-1)
        for square in (apart.square(), far)
        for scale in SCALES
    ]
    means = [apart.abs().sum(-1), far.sqrt().sum(-1), facing.abs().sum(-1)]
    return torch.cat((*found, torch.stack((*shares, *means), -1)), -1)


Three = list[Float[Tensor, "i n k"]]  # the coordinates of vectors


def _in_frame(
    frame: Float[Tensor, "i n f 3"], points: Float[Tensor, "i k 3"]
) -> tuple[Tensor, ...]:
    """The coordinates of points in the frame of every plane."""
    every = frame.flatten(1, 2) @ points.mT
    return every.unflatten(1, frame.shape[1:3]).unbind(2)


def _dots(vectors: Three, frame: Float[Tensor, "i n 3 3"]) -> list[Tensor]:
    """The same of vectors that each plane has for itself."""
    return [_dot(vectors, axis[..., None].unbind(-2)) for axis in frame.unbind(-2)]


def _dot(one: Sequence[Tensor], other: Sequence[Tensor]) -> Tensor:
    (a, b, c), (u, v, w) = one, other
    return torch.addcmul(torch.addcmul(a * u, b, v), c, w)


def _equations(
    weight: Float[Tensor, "i n k"], rows: Float[Tensor, "i n 4 k"]
) -> Float[Tensor, "i n 9"]:
    """Sums over points: the upper half of the matrix, then the right-hand side."""
    every = (weight[..., None, :] * rows) @ rows.mT
    pairs = ((0, 0, 0, 1, 1, 2, 0, 1, 2), (0, 1, 2, 1, 2, 2, 3, 3, 3))
    return every[..., pairs[0], pairs[1]]


def _matched(moved: Three, turned: Three, prepared: Prepared) -> tuple[Three, Three]:
    """For every point the best of those that are nearest to the corners of its cell, and the normal
    there."""
    ids, cloud = prepared["ids"], prepared["cloud"]
    (i, m, _), side = cloud.shape, round(prepared["ids"].shape[1] ** (1 / 3))
    first = torch.arange(i, device=ids.device).view(i, 1, 1)
    cells = around(torch.stack(moved, -1).view(-1, 3), side).T.reshape(8, *moved[0].shape)
    every = ids.flatten().take(cells + first * ids.shape[1]) + first * m
    columns = cloud.flatten(0, 1).T.contiguous()
    x, y, z, u, v, w = (column.take(every) for column in columns)  # (8 i n k) each
    way = [r - q for r, q in zip(moved, (x, y, z))]
    cost = _dot(way, way) - TURNED * _dot(turned, (u, v, w)).abs()
    least, best = cost[0], torch.zeros_like(every[:1])
    for k in range(1, 8):  # faster than `argmin`
        best.masked_fill_(cost[k] < least, k)
        least = torch.minimum(least, cost[k])
    chosen = [each.gather(0, best)[0] for each in (x, y, z, u, v, w)]
    return chosen[:3], chosen[3:]


def nearest_ids(points: Float[Tensor, "i m 3"], side: int) -> Int32[Tensor, "i c"]:
    """Of every corner of a grid, the nearest point of the cloud."""
    if points.is_cuda:
        from proxlearn.networks.matching_kernel import nearest_ids as fused

        return fused(points, corners(side, points.device))
    from scipy.spatial import KDTree

    at = corners(side, points.device).numpy()
    found = [KDTree(each.numpy()).query(at, workers=torch.get_num_threads())[1] for each in points]
    return torch.stack([torch.from_numpy(each).int() for each in found])


@lru_cache(maxsize=8)
def _some(count: int, most: int, device: torch.device) -> Tensor:
    """Which points of a cloud are reflected: any, since its order may say where they are."""
    shuffled = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    return shuffled[:most].to(device)
