"""The network for planes of symmetry: every plane looks at the cloud that is tau. It reflects some
of its points, matches each with a point of the cloud nearby, and goes where they match better.

Of points p that are reflected to r and matched with points q, the plane (n, d) that matches them
better solves normal equations, reweighted so that far matches count less: `min sum w |r - q|^2` of
points, or `min sum w (m . (r - q))^2` of points and tangent planes with normals m. There are four
such equations, from fine to coarse, and each is solved with lam and with a tenth of it. A small
network then says how much of each of these eight steps to take. All that it sees is the same
however the cloud is turned, so that its steps turn with the cloud.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float, Int32
from torch import Tensor, nn

from proxlearn.common.batch import Batch, Points
from proxlearn.common.checks import check_positive, check_whole
from proxlearn.instances.cloud import Clouds
from proxlearn.meshes.grid import REACH, around, corners
from proxlearn.networks.base import Architecture, Lams, Network, Prepared, place_of_lam
from proxlearn.spaces import Planes

TURNED = 0.01  # what it costs to match points whose normals are at right angles, a squared length
FINE = (0.005, 0.03)  # distances beyond which matches of points and tangent planes count less
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
        return 64 * self.architecture.reflected


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


def looked(x: Points, basis: Float[Tensor, "i n 4 3"], prepared: Prepared) -> Float[Tensor, "i n f"]:
    """What every plane sees, summed over the points that it reflects: the four normal equations,
    distances, and how many of them are small."""
    if x.is_cuda:
        from proxlearn.networks.matching_kernel import looked as fused

        return fused(x, basis, prepared)
    normal, offset = x[..., None, :3], x[..., None, 3]
    first, second = (basis[..., None, :3, k] for k in (0, 1))
    point, own = prepared["some"][:, None].split(3, -1)  # (i 1 k 3)
    height = _dot(point, normal) - offset
    moved = point - 2 * height[..., None] * normal
    turned = own - 2 * _dot(own, normal)[..., None] * normal
    match = _matched(moved, turned, prepared)
    other, (way, facing) = match[..., 3:], (moved - match[..., :3], _dot(turned, match[..., 3:]))
    apart, far = _dot(way, other), way.square().sum(-1)
    along, sideways = _dot(point, first), _dot(point, second)
    rows = (
        -2 * (along * _dot(other, normal) + height * _dot(other, first)),
        -2 * (sideways * _dot(other, normal) + height * _dot(other, second)),
        2 * _dot(other, normal),
    )
    found = []
    for scale in FINE:
        found += _equations((apart.square() + scale**2).rsqrt(), rows, apart)
    rows = (-2 * along, -2 * sideways, torch.full_like(along, 2.0))
    level, tilt = _dot(way, normal), (_dot(way, first), _dot(way, second))
    for scale in COARSE:
        weight = (far + scale**2).rsqrt()
        equations = _equations(weight, rows, level)
        for k, (place, side) in enumerate(((0, tilt[0]), (3, tilt[1]))):
            equations[place] = equations[place] + 4 * (weight * height.square()).sum(-1)
            equations[6 + k] = equations[6 + k] - 2 * (weight * height * side).sum(-1)
        found += equations
    for square in (apart.square(), far):
        found += [(square / (square + scale**2)).sum(-1) for scale in SCALES]
    found += [apart.abs().sum(-1), far.sqrt().sum(-1), facing.abs().sum(-1)]
    return torch.stack(found, -1)


def _equations(
    weight: Float[Tensor, "i n k"], rows: tuple[Tensor, Tensor, Tensor], error: Tensor
) -> list[Tensor]:
    """Sums over points, (i n) each: the upper half of the matrix, then the right-hand side."""
    a, b, c = rows
    pairs = ((a, a), (a, b), (a, c), (b, b), (b, c), (c, c), (a, error), (b, error), (c, error))
    return [(weight * one * other).sum(-1) for one, other in pairs]


def _matched(
    moved: Float[Tensor, "i n k 3"], turned: Float[Tensor, "i n k 3"], prepared: Prepared
) -> Float[Tensor, "i n k 6"]:
    """For every point the best of those that are nearest to the corners of its cell."""
    ids, cloud = prepared["ids"], prepared["cloud"]
    i, n, k, _ = moved.shape
    side = round(ids.shape[1] ** (1 / 3))
    cells = around(moved.reshape(-1, 3), side).view(i, -1)
    every = ids.gather(1, cells).long()
    every = cloud.gather(1, every[..., None].expand(-1, -1, 6)).view(i, n, k, 8, 6)
    square = (moved[..., None, :] - every[..., :3]).square().sum(-1)
    cost = square + TURNED * (1 - _dot(turned[..., None, :], every[..., 3:]).abs())
    best = cost.argmin(-1)[..., None, None].expand(-1, -1, -1, 1, 6)
    return every.gather(3, best)[..., 0, :]


def nearest_ids(points: Float[Tensor, "i m 3"], side: int) -> Int32[Tensor, "i c"]:
    """Of every corner of a grid, the nearest point of the cloud."""
    if points.is_cuda:
        from proxlearn.networks.matching_kernel import nearest_ids as fused

        return fused(points, corners(side, points.device))
    from scipy.spatial import cKDTree

    at = corners(side, points.device).numpy()
    found = [cKDTree(each.numpy()).query(at, workers=torch.get_num_threads())[1] for each in points]
    return torch.stack([torch.from_numpy(each).int() for each in found])


@lru_cache(maxsize=8)
def _some(count: int, most: int, device: torch.device) -> Tensor:
    """Which points of a cloud are reflected: any, since its order may say where they are."""
    shuffled = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    return shuffled[:most].to(device)


def _dot(one: Tensor, other: Tensor) -> Tensor:
    return (one * other).sum(-1)
