"""A shape at unit size, and how far points are from it."""

import math
from abc import ABC
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from scipy.spatial import KDTree
from torch import Generator, Tensor

from proxlearn.common.batch import Device
from proxlearn.meshes.distance import Surface, always_exact, can_fuse
from proxlearn.meshes.mesh import Cloud, Mesh, box, sampled, scaled
from proxlearn.meshes.normals import AROUND, flatness, neighbors, normals_of, widest_gaps
from proxlearn.meshes.triangles import offsets
from proxlearn.problems.symmetry.symmetry import POINTS
from proxlearn.spaces.base import distances

CORNERS = 512  # of a mesh that are looked at
TRIED = 8  # points of a cloud near each point, whose discs are tried
DISC = 6  # neighbours that the disc about a point of a cloud reaches to
SOLID = 0.16  # a flatness that no surface has, even with noise of 2% of the size
ONE_SIDED = math.radians(170)  # without any neighbour
MOST = 200_000  # points of a cloud that are looked at
ALL_TRIED = 8_192  # points of a cloud up to which a GPU tries all of them
PAIRS = 1 << 22  # of a point and one of a cloud, so many at once
FEW = 4_096  # triangles, up to which meshes are filled up to one size
NOWHERE = 1e3  # where points are that fill up a cloud

Places = Float[Tensor, "n 3"]
Held = dict[str, Tensor]


class Near(NamedTuple):
    """What of a shape is nearest to points: how far it is, the unit vector away from it (0 on the
    shape), and the unit normal there."""

    distance: Float[Tensor, "*n"]
    direction: Float[Tensor, "*n 3"]
    normal: Float[Tensor, "*n 3"]


class Target(ABC):
    """What reflected points should lie on: a shape whose bounding box is centred at 0 and has a
    longest side of 1. In its own units, its points are at `size * p + center`.

    Distances are found on `device` by `near(points, held)`, where `held` is what is kept of the
    shape on a GPU, filled up to one of few sizes; it is empty on the CPU. All else is there."""

    center: Float[Tensor, "3"]
    size: float
    cloud: Float[Tensor, "n 6"]  # some of its points with unit normals, in any order
    corners: Places  # some of a mesh's vertices; of a cloud none
    vertices: Places  # all of them
    solid = False  # whether its points are of no surface, so that any of them has others nearby
    exact: bool  # whether it is a mesh, and not some points of a surface
    sure = True  # whether the distance of every single point is right, not only their mean
    noise: float  # the residual of a perfect symmetry: 0 of a mesh, but not of a cloud
    device: torch.device
    near: Callable[[Places, Held], Near]
    held: Held


def target_of(shape: Mesh | Cloud, generator: Generator, device: Device = "cpu") -> Target:
    """The target, with distances on a device; the generator is one of the CPU."""
    if isinstance(shape, Cloud):
        return CloudTarget(shape, generator, device)
    return MeshTarget(shape, generator, device)


class MeshTarget(Target):
    """A mesh, with distances to its triangles."""

    exact, noise = True, 0.0

    def __init__(self, mesh: Mesh, generator: Generator, device: Device = "cpu"):
        unit, self.center, self.size = scaled(mesh)
        points, normals = sampled(unit, POINTS, generator)
        assert normals is not None
        self.cloud = torch.cat((points, normals), 1)
        some = torch.randperm(len(unit.vertices), generator=generator)[:CORNERS]
        self.corners, self.vertices = unit.vertices[some], unit.vertices
        self.sure = always_exact(device, len(unit.faces))
        self.surface, self.device = Surface([unit], "cpu"), torch.device("cpu")
        self.near, self.held = self._near, {}
        if can_fuse(device):
            self.device, self.near = torch.device(device), near_triangles
            triangles = _filled_up(self.surface.triangles, 0.0, FEW)
            self.held = {"triangles": triangles, "first": self.surface.first}
            often = CORNERS // len(some) + 1
            self.corners = self.corners.repeat(often, 1)[:CORNERS]
            self.held = {name: each.to(device) for name, each in self.held.items()}

    def _near(self, points: Places, held: Held) -> Near:
        found = self.surface.search(points[None], self.surface.first[:1])[0]
        triangles = self.surface.triangles[found]
        return _nearest(offsets(points, triangles), triangles[:, 3])


def near_triangles(points: Places, held: Held) -> Near:
    """The same on a GPU."""
    from proxlearn.meshes.distance_kernel import Packed, search

    packed = Packed(held["triangles"], held["first"])
    distance, direction, triangle = search(
        packed, points[None], torch.zeros_like(held["first"][:1])
    )
    normals = held["triangles"][:, 3]
    return Near(distance[0], direction[0], normals.index_select(0, triangle[0]))


class CloudTarget(Target):
    """A cloud, each of its points standing for a small disc of the surface. Where there are no
    normals, those of the planes through the nearest points are taken."""

    exact = False
    farthest: float  # that a point is from the others, without itself; `noise` is the mean
    ending: float  # the share of the points that have neighbours on one side alone

    def __init__(self, cloud: Cloud, generator: Generator, device: Device = "cpu"):
        self.center, self.size = box(cloud.points)
        some = torch.randperm(len(cloud.points), generator=generator)[:MOST]
        self.points = ((cloud.points[some] - self.center) / self.size).float()
        self.tree = KDTree(self.points.numpy())
        near = neighbors(self.tree, self.points, AROUND + 1)
        self.normals = normals_of(self.points[near])
        gaps = widest_gaps(self.points[near[:POINTS]], self.normals[:POINTS])
        self.ending = float((gaps > ONE_SIDED).float().mean())
        self.solid = float(flatness(self.points[near]).median()) > SOLID
        if cloud.normals is not None:
            self.normals = cloud.normals[some].float()
        self.radius = (self.points - self.points[near[:, DISC]]).norm(dim=-1)
        self.spacing = float((self.points - self.points[near[:, 1]]).norm(dim=-1).median())
        self.cloud = torch.cat((self.points, self.normals), 1)[:POINTS]
        self.corners = self.vertices = self.points[:0]
        discs = torch.cat((self.points, self.normals, self.radius[:, None]), 1)
        others = near[: len(self.cloud), 1 : TRIED + 1]  # as if a point were not there itself
        far = _near_discs(self.points[: len(others)], discs[others]).distance
        self.noise, self.farthest = float(far.mean()), float(far.max())
        self.device, self.near, self.held, self.discs = torch.device("cpu"), self._near, {}, discs
        if torch.device(device).type == "cuda" and len(discs) <= ALL_TRIED:
            self.device, self.near = torch.device(device), near_points
            self.held = {"discs": _filled_up(discs, NOWHERE).to(device)}

    def _near(self, points: Places, held: Held) -> Near:
        return _near_discs(points, self.discs[neighbors(self.tree, points, TRIED)])


def near_points(points: Places, held: Held) -> Near:
    """The same on a GPU, where the nearest points are found by trying all."""
    found, discs = [], held["discs"]
    for some in points.split(max(1, PAIRS // len(discs))):
        near = distances(some, discs[:, :3]).topk(TRIED, largest=False).indices
        found.append(_near_discs(some, discs[near]))
    return Near(*(torch.cat(each) for each in zip(*found)))


def _near_discs(points: Places, discs: Float[Tensor, "n c 7"]) -> Near:
    """The nearest of some discs (middle, normal, radius) for each point."""
    middle, normal, radius = discs.split((3, 3, 1), -1)
    way = points[:, None] - middle
    above = (way * normal).sum(-1, keepdim=True) * normal
    along = way - above
    length = along.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    offset = above + along * (1 - radius / length).clamp(min=0)
    best = offset.square().sum(-1).argmin(-1)[:, None, None].expand(-1, 1, 3)
    return _nearest(offset.gather(1, best)[:, 0], normal.gather(1, best)[:, 0])


def _nearest(offset: Places, normal: Places) -> Near:
    distance = offset.norm(dim=-1)
    return Near(distance, offset / distance.clamp(min=1e-12)[:, None], normal)


def _filled_up(rows: Tensor, value: float, least: int = 1) -> Tensor:
    """Up to the next power of two, and to at least so many."""
    more = max(least, 1 << (len(rows) - 1).bit_length()) - len(rows)
    return torch.cat((rows, rows.new_full((more, *rows.shape[1:]), value)))
