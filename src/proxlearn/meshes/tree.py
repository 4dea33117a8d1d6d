"""Trees that find the triangle of a mesh nearest to a point, on a CPU: the package igl's, or one of
points scattered over the triangles where that is not installed."""

from typing import Protocol

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from proxlearn.meshes.grid import WALK, neighbors_of
from proxlearn.meshes.mesh import Mesh
from proxlearn.meshes.triangles import Triangles, nearest_of

SCATTERED = 1 << 14  # points, about; every triangle has at least one
TRIED = 6  # of them, those nearest to a point: their triangles are tried
AT_ONCE = 1 << 13  # points that are looked for together


class Tree(Protocol):
    def search(self, points: Tensor) -> Int64[Tensor, " n"]:
        """The triangles that are nearest to points (n, 3); any, of points that are no numbers."""
        ...


class Boxes:
    """igl's boxes in boxes around triangles: exact."""

    def __init__(self, mesh: Mesh):
        import igl  # pyright: ignore[reportMissingImports]

        self.tree, self.vertices = igl.AABB(), mesh.vertices.cpu().double().numpy()
        self.faces = mesh.faces.cpu().numpy()
        self.tree.init(self.vertices, self.faces)

    def search(self, points: Tensor) -> Int64[Tensor, " n"]:
        at = points.double().numpy()
        _, found, _ = self.tree.squared_distance(self.vertices, self.faces, at)
        return torch.from_numpy(np.atleast_1d(found)).clamp(min=0)  # -1: the point is no number


class Scattered:
    """Points scattered over the triangles: those nearest to a point name triangles to try, and a
    walk over shared edges leads on to nearer ones. Hardly ever is another one nearer still."""

    def __init__(self, mesh: Mesh, triangles: Triangles):
        from scipy.spatial import KDTree

        self.triangles, self.neighbors = triangles, neighbors_of(mesh)
        points, owner = scattered(triangles, SCATTERED)
        self.tree, self.owner = KDTree(points.numpy()), owner

    def search(self, points: Tensor) -> Int64[Tensor, " n"]:
        if not len(points):
            return torch.zeros(0, dtype=torch.int64)
        found = [self._search(some.nan_to_num(0.0, 0.0, 0.0)) for some in points.split(AT_ONCE)]
        return torch.cat(found)

    def _search(self, points: Tensor) -> Tensor:
        count, threads = min(TRIED, len(self.owner)), torch.get_num_threads()
        nearest = self.tree.query(points.numpy(), k=count, workers=threads)[1]
        found = self._best(points, self.owner[torch.from_numpy(nearest).view(len(points), -1)])
        for _ in range(WALK):
            beside = self.neighbors[found]
            found = self._best(points, torch.cat((found[:, None], beside), 1))
        return found

    def _best(self, points: Tensor, candidates: Tensor) -> Tensor:
        best = nearest_of(points, self.triangles[candidates].to(points.dtype))
        return candidates.gather(1, best[:, None])[:, 0]


def scattered(triangles: Triangles, count: int) -> tuple[Tensor, Int64[Tensor, " n"]]:
    """About so many points (n, 3) spread evenly over triangles, and the triangle of each: the
    middles of all, and as many more as their areas ask for."""
    a, ab, ac, _ = triangles.double().unbind(1)
    area = torch.linalg.cross(ab, ac).norm(dim=-1)
    more = (count * area / area.sum().clamp(min=1e-300)).round().long()
    owner = torch.arange(len(a)).repeat_interleave(more)
    order = torch.arange(len(owner)) - (more.cumsum(0) - more)[owner]  # of a triangle's own points
    # A sequence that fills the unit square evenly (Roberts, 2018), folded into the triangle.
    s, t = ((0.5 + (order + 1) * step) % 1 for step in (0.7548776662466927, 0.5698402909980532))
    folded = s + t > 1
    s, t = torch.where(folded, 1 - s, s)[:, None], torch.where(folded, 1 - t, t)[:, None]
    points = torch.cat((a + (ab + ac) / 3, a[owner] + s * ab[owner] + t * ac[owner]))
    return points, torch.cat((torch.arange(len(a)), owner))
