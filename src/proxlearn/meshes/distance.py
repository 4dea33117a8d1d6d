"""The distance of points to meshes: many meshes of different sizes in one call."""

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from proxlearn.common.batch import Device, pieces
from proxlearn.errors import InputError
from proxlearn.gpu.devices import pick_device
from proxlearn.meshes import grid
from proxlearn.meshes.mesh import Mesh
from proxlearn.meshes.triangles import nearest_of, nearest_of_all, offsets, triangles_of

AT_ONCE = 1 << 14  # points that look at the corners of their cells together, on a CPU
GRIDS_AT_ONCE = 32

Which = Int64[Tensor, "i"]  # for each instance, the index of its mesh
Points = Float[Tensor, "i n 3"]


class Nearest(NamedTuple):
    """What of its mesh is nearest to each point."""

    distance: Float[Tensor, "i n"]
    point: Float[Tensor, "i n 3"]
    triangle: Int64[Tensor, "i n"]  # its index in the mesh


class Tree:
    """The package igl's tree of boxes around the triangles of a mesh."""

    def __init__(self, mesh: Mesh):
        import igl  # pyright: ignore[reportMissingImports]

        self.tree, self.vertices = igl.AABB(), mesh.vertices.cpu().double().numpy()
        self.faces = mesh.faces.cpu().numpy()
        self.tree.init(self.vertices, self.faces)

    def search(self, points: np.ndarray) -> np.ndarray:
        """The triangles that are nearest to points (n, 3)."""
        _, found, _ = self.tree.squared_distance(self.vertices, self.faces, points)
        return np.atleast_1d(found)


class Surface:
    """The surfaces of meshes, on one device.

    With `side`, each mesh has a grid with so many corners along each axis, and a point is compared
    with the triangles that are nearest to the corners of its cell; for meshes scaled to a longest
    side of 1. Without it, distances are exact: with the package igl on a CPU, with a kernel on a
    GPU, and more slowly by trying all triangles where there is neither."""

    def __init__(self, meshes: Sequence[Mesh], device: Device = "auto", side: int | None = None):
        check(meshes, side)
        self.device = pick_device(device)
        packed = [triangles_of(mesh).float() for mesh in meshes]
        first = np.cumsum([0, *map(len, packed)])
        self.triangles = torch.cat(packed).to(self.device)  # of all meshes
        self.first = torch.from_numpy(first).to(self.device)  # where those of each mesh begin
        self.meshes, self.bounds = meshes, first.tolist()
        self.trees: dict[int, Tree] = {}
        self.side, self.grids = None, None  # exact, as the nearest triangles of corners have to be
        if side is not None:
            self.side, self.grids = side, self._grids(side)

    def distance(self, points: Points, which: Which) -> Float[Tensor, "i n"]:
        """The distance of points to the meshes `which`. Its gradient is the unit vector away from
        the nearest point, and 0 on the surface."""
        if self._fused(points):
            from proxlearn.meshes import distance_kernel

            return distance_kernel.distance(self, points, which)
        return self.nearest(points, which).distance

    def nearest(self, points: Points, which: Which) -> Nearest:
        """The distance, the nearest point and its triangle."""
        triangle = self.search(points.detach(), which)
        offset = offsets(points, self.triangles[triangle].to(points.dtype))
        return Nearest(offset.norm(dim=-1), points - offset, triangle - self.first[which, None])

    def search(self, points: Points, which: Which) -> Int64[Tensor, "i n"]:
        """The nearest triangles, as indices among those of all meshes."""
        if self._fused(points):
            from proxlearn.meshes import distance_kernel

            return distance_kernel.search(self, points, which).triangle
        found = torch.empty(points.shape[:2], dtype=torch.int64, device=points.device)
        if self.grids is None:
            for row, mesh in enumerate(which.tolist()):
                found[row] = self._exact(points[row], mesh)
        else:
            for rows, columns, some, x in pieces(which, points, AT_ONCE):
                found[rows, columns] = self._in_cells(x, some)
        return found

    def _fused(self, points: Tensor) -> bool:
        return points.is_cuda and points.dtype == torch.float32 and _there("triton")

    def _exact(self, points: Float[Tensor, "n 3"], mesh: int) -> Int64[Tensor, "n"]:
        begin, end = self.bounds[mesh : mesh + 2]
        if points.is_cuda or not _there("igl"):
            return begin + nearest_of_all(points, self.triangles[begin:end].to(points.dtype))
        if mesh not in self.trees:
            self.trees[mesh] = Tree(self.meshes[mesh])
        found = self.trees[mesh].search(points.double().numpy())
        return begin + torch.from_numpy(found).clamp(min=0)  # -1: the point is no number

    def _in_cells(self, points: Points, which: Which) -> Int64[Tensor, "i n"]:
        """The nearest of the triangles at the corners of the points' cells."""
        assert self.side is not None
        assert self.grids is not None
        at = grid.around(points.flatten(0, 1), self.side).view(*points.shape[:2], 8)
        ids = self.grids[which[:, None, None], at] + self.first[which, None, None]
        near = self.triangles[ids].to(points.dtype).flatten(0, 1)
        best = nearest_of(points.flatten(0, 1), near).view(*points.shape[:2], 1)
        return ids.gather(-1, best)[..., 0]

    def _grids(self, side: int) -> Tensor:
        """The nearest triangles (meshes, corners), as indices in their meshes."""
        corners, count = grid.corners(side, self.device), len(self.meshes)
        kind = grid.smallest_integers(int(self.first.diff().max()))
        grids = torch.empty(count, len(corners), dtype=kind, device=self.device)
        for which in torch.arange(count, device=self.device).split(GRIDS_AT_ONCE):
            found = self.search(corners.expand(len(which), -1, -1), which)
            grids[which] = (found - self.first[which, None]).to(kind)
        return grids


def check(meshes: Sequence[Mesh], side: int | None) -> None:
    """Raise an error for what has no surface, and for a grid that has no cells."""
    if not meshes:
        raise InputError("A surface needs at least one mesh; none was given.")
    if side is not None and side < 2:
        raise InputError(f"A grid needs at least 2 corners along each axis; side={side} was given.")
    for k, (vertices, faces) in enumerate(meshes):
        if not len(faces):
            raise InputError(f"Mesh {k} has no triangles, so there is no distance to it: drop it.")
        if not vertices.isfinite().all():
            raise InputError(
                f"Mesh {k} has vertices that are no finite numbers: repair or drop it."
            )
        if faces.min() < 0 or faces.max() >= len(vertices):
            raise InputError(
                f"Mesh {k} has {len(vertices)} vertices, but its triangles name vertices from "
                f"{faces.min()} to {faces.max()}: count them from 0, and repair or drop it."
            )


@cache
def _there(package: str) -> bool:
    return find_spec(package) is not None
