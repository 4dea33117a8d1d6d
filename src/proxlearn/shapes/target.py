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
from proxlearn.meshes.normals import AROUND, neighbors, normals_of, widest_gaps
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
    shape on a GPU, filled up to one of few sizes; it is empty on the CPU. The points that are moved
    are there, too."""

    center: Float[Tensor, "3"]
    size: float
    cloud: Float[Tensor, "n 6"]  # some of its points with unit normals, in any order
    moving: Places  # the same points, on the device
    corners: Places  # some of a mesh's vertices, on the device; of a cloud none
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
        self.moving, self.corners = points.to(self.device), self.corners.to(self.device)

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
        points = ((cloud.points[some] - self.center) / self.size).float()
        all_tried = can_fuse(device) and len(points) <= ALL_TRIED
        self.device = torch.device(device if all_tried else "cpu")
        points = points.to(self.device)
        if all_tried:
            near = distances(points, points).topk(AROUND + 1, largest=False).indices
        else:
            self.tree = KDTree(points.numpy())
            near = neighbors(self.tree, points, AROUND + 1)
        around = points[near]
        normals, flatness = normals_of(around)
        gaps = widest_gaps(around[:POINTS], normals[:POINTS])
        if cloud.normals is not None:
            normals = cloud.normals[some].to(points)
        away = (around[:, (1, DISC)] - points[:, None]).norm(dim=-1)
        self.points, self.normals = points, normals
        self.discs = discs = torch.cat((points, normals, away[:, 1:]), 1)
        others = near[:POINTS, 1 : TRIED + 1]  # as if a point were not there itself
        far = _near_discs(points[:POINTS], discs[others]).distance
        ending = (gaps > ONE_SIDED).float().mean()
        told = (ending, away[:, 0].median(), flatness.median(), far.mean(), far.max())
        self.ending, self.spacing, flat, self.noise, self.farthest = torch.stack(told).tolist()
        self.solid = flat > SOLID
        self.moving = points[:POINTS]
        self.cloud, self.corners = discs[:POINTS, :6].cpu(), points[:0]
        self.vertices = self.cloud[:0, :3]
        self.near, self.held = self._near, {}
        if all_tried:
            self.near, self.held = near_discs, {"discs": _filled_up(discs, NOWHERE)}

    def _near(self, points: Places, held: Held) -> Near:
        return _near_discs(points, self.discs[neighbors(self.tree, points, TRIED)])


def near_discs(points: Places, held: Held) -> Near:
    """The same on a GPU, where the nearest points are found by trying all."""
    from proxlearn.shapes.discs_kernel import nearest_discs

    return Near(*nearest_discs(points, held["discs"]))


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
