"""A shape at unit size, and how far points are from it."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Int64
from scipy.spatial import KDTree
from torch import Generator, Tensor

from proxlearn.meshes.distance import Surface
from proxlearn.meshes.mesh import Cloud, Mesh, box, sampled, scaled
from proxlearn.meshes.triangles import offsets
from proxlearn.problems.symmetry.symmetry import POINTS

TRIED = 8  # points of a cloud near each point, whose discs are tried
AROUND = 16  # neighbours in a cloud that say how its surface lies
DISC = 6  # neighbours that the disc about a point of a cloud reaches to
MOST = 200_000  # points of a cloud that are looked at

Places = Float[Tensor, "n 3"]


class Target(ABC):
    """What reflected points should lie on: a shape whose bounding box is centred at 0 and has a
    longest side of 1. In its own units, its points are at `size * p + center`."""

    center: Float[Tensor, "3"]
    size: float
    cloud: Float[Tensor, "n 6"]  # some of its points with unit normals, in any order
    noise: float  # the residual of a perfect symmetry: 0 of a mesh, but not of a cloud

    @abstractmethod
    def offsets(self, points: Places) -> tuple[Places, Places]:
        """`p - q`, where q is the nearest point of the shape, and the unit normal there."""


def target_of(shape: Mesh | Cloud, generator: Generator) -> Target:
    """The target on the generator's device."""
    if isinstance(shape, Cloud):
        return CloudTarget(shape, generator)
    return MeshTarget(shape, generator)


class MeshTarget(Target):
    """A mesh, with distances to its triangles."""

    noise = 0.0

    def __init__(self, mesh: Mesh, generator: Generator):
        unit, self.center, self.size = scaled(mesh)
        points, normals = sampled(unit, POINTS, generator)
        assert normals is not None
        self.cloud = torch.cat((points, normals), 1)
        self.surface = Surface([unit], generator.device)

    def offsets(self, points):
        found = self.surface.search(points[None], self.surface.first[:1])[0]
        triangles = self.surface.triangles[found]
        return offsets(points, triangles), triangles[:, 3]


class CloudTarget(Target):
    """A cloud, each of its points standing for a small disc of the surface. Where there are no
    normals, those of the planes through the nearest points are taken."""

    def __init__(self, cloud: Cloud, generator: Generator):
        self.center, self.size = box(cloud.points)
        order = torch.randperm(len(cloud.points), generator=generator, device=generator.device)
        some, self.device = order[:MOST].cpu(), generator.device
        self.points = ((cloud.points[some] - self.center) / self.size).float()
        self.tree = KDTree(self.points.numpy())
        near = _near(self.tree, self.points, AROUND + 1)
        self.normals = normals_of(self.points[near])
        if cloud.normals is not None:
            self.normals = cloud.normals[some].float()
        self.radius = (self.points - self.points[near[:, DISC]]).norm(dim=-1)
        self.spacing = float((self.points - self.points[near[:, 1]]).norm(dim=-1).median())
        self.cloud = torch.cat((self.points, self.normals), 1)[:POINTS].to(self.device)
        others = near[: len(self.cloud), 1 : TRIED + 1]  # as if a point were not there itself
        self.noise = float(
            self._to_discs(self.points[: len(others)], others)[0].norm(dim=-1).mean()
        )

    def offsets(self, points):
        here = points.cpu()
        offset, normal = self._to_discs(here, _near(self.tree, here, TRIED))
        return offset.to(points.device), normal.to(points.device)

    def _to_discs(self, points: Places, near: Int64[Tensor, "n c"]) -> tuple[Places, Places]:
        """From the nearest of these discs."""
        way, normal = points[:, None] - self.points[near], self.normals[near]
        above = (way * normal).sum(-1, keepdim=True) * normal
        along = way - above
        length = along.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        offset = above + along * (1 - self.radius[near][..., None] / length).clamp(min=0)
        best = offset.square().sum(-1).argmin(-1)[:, None, None].expand(-1, 1, 3)
        return offset.gather(1, best)[:, 0], normal.gather(1, best)[:, 0]


def normals_of(around: Float[Tensor, "n c 3"]) -> Places:
    """Of points with their neighbours: the direction in which these spread least."""
    spread = around - around.mean(1, keepdim=True)
    return torch.linalg.eigh((spread.mT @ spread).double())[1][..., 0].float()


def _near(tree: KDTree, points: Places, count: int) -> Int64[Tensor, "n c"]:
    """The nearest points of a tree, the nearest first."""
    found = tree.query(points.numpy(), count, workers=torch.get_num_threads())[1]
    return torch.from_numpy(found).long().view(len(points), count)
