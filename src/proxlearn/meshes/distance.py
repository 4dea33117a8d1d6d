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
from proxlearn.meshes.grid import WALK, around, corners, neighbors_of, smallest_integers
from proxlearn.meshes.mesh import Mesh
from proxlearn.meshes.tree import Boxes, Scattered, Tree
from proxlearn.meshes.triangles import nearest_of, nearest_of_all, offsets, triangles_of

AT_ONCE = 1 << 14  # points that look at the corners of their cells together, on a CPU
GRIDS_AT_ONCE = 32
FEW = 64  # triangles that are all tried

Which = Int64[Tensor, "i"]  # for each instance, the index of its mesh
Points = Float[Tensor, "i n 3"]


class Nearest(NamedTuple):
    """What of its mesh is nearest to each point."""

    distance: Float[Tensor, "i n"]
    point: Float[Tensor, "i n 3"]
    triangle: Int64[Tensor, "i n"]  # its index in the mesh


class Surface:
    """The surfaces of meshes, on one device.

    Distances are exact, by a kernel on a GPU and by the package igl on a CPU; where that is not
    installed, points scattered over the triangles stand in for it, and a distance in a thousand is
    too long (by 1e-6 on average). With `side`, each mesh has a grid with so many corners along each
    axis (`meshes/grid.py`), for meshes scaled to a longest side of 1. That is the way to train on a
    GPU; distances of points on real parts are then too long by 1e-4 on average with side=64."""

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
            neighbors = torch.cat([neighbors_of(mesh) for mesh in meshes])  # in their own mesh
            self.neighbors = neighbors.to(self.device, torch.int32)
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
        triangle = self.search(points, which)
        offset = offsets(points, self.triangles[triangle].to(points.dtype))
        return Nearest(offset.norm(dim=-1), points - offset, triangle - self.first[which, None])

    def search(self, points: Points, which: Which) -> Int64[Tensor, "i n"]:
        """The nearest triangles, as indices among those of all meshes."""
        points = points.detach()
        if self._fused(points.float()):
            from proxlearn.meshes import distance_kernel

            return distance_kernel.search(self, points.float(), which).triangle
        found = torch.empty(points.shape[:2], dtype=torch.int64, device=points.device)
        if self.grids is None:
            for row, mesh in enumerate(which.tolist()):
                found[row] = self._exact(points[row], mesh)
        else:
            for rows, columns, some, x in pieces(which, points, AT_ONCE):
                found[rows, columns] = self._in_cells(x, some)
        return found

    def _fused(self, points: Tensor) -> bool:
        return can_fuse(points.device) and points.dtype == torch.float32

    def _exact(self, points: Float[Tensor, "n 3"], mesh: int) -> Int64[Tensor, "n"]:
        begin, end = self.bounds[mesh : mesh + 2]
        if points.is_cuda or (end - begin <= FEW and not _there("igl")):
            return begin + nearest_of_all(points, self.triangles[begin:end].to(points.dtype))
        if mesh not in self.trees:
            own = self.meshes[mesh]
            igl = _there("igl")
            self.trees[mesh] = Boxes(own) if igl else Scattered(own, self.triangles[begin:end])
        return begin + self.trees[mesh].search(points)

    def _in_cells(self, points: Points, which: Which) -> Int64[Tensor, "i n"]:
        """The nearest of the triangles at the corners of the points' cells, and where a walk from
        there leads."""
        assert self.side is not None
        assert self.grids is not None
        x, begin = points.flatten(0, 1), self.first[which].repeat_interleave(points.shape[1])
        mesh = which.repeat_interleave(points.shape[1])
        found = self._nearest_of(
            x, begin[:, None] + self.grids[mesh[:, None], around(x, self.side)]
        )
        for _ in range(WALK):
            beside = begin[:, None] + self.neighbors[found]
            found = self._nearest_of(x, torch.cat((found[:, None], beside), 1))
        return found.view(points.shape[:2])

    def _nearest_of(
        self, points: Float[Tensor, "n 3"], candidates: Int64[Tensor, "n c"]
    ) -> Int64[Tensor, "n"]:
        best = nearest_of(points, self.triangles[candidates].to(points.dtype))
        return candidates.gather(1, best[:, None])[:, 0]

    def _grids(self, side: int) -> Tensor:
        """The nearest triangles (meshes, corners), as indices in their meshes."""
        points, count = corners(side, self.device), len(self.meshes)
        kind = smallest_integers(int(self.first.diff().max()))
        grids = torch.empty(count, len(points), dtype=kind, device=self.device)
        for which in torch.arange(count, device=self.device).split(GRIDS_AT_ONCE):
            found = self.search(points.expand(len(which), -1, -1), which)
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


def can_fuse(device: Device) -> bool:
    """Whether distances are found by the kernel there."""
    return torch.device(device).type == "cuda" and _there("triton")


def always_exact(device: Device, triangles: int) -> bool:
    """Whether no distance to a mesh of so many triangles is too long: by the kernel, by igl, or as
    all triangles are tried."""
    return can_fuse(device) or _there("igl") or triangles <= FEW


@cache
def _there(package: str) -> bool:
    spec = find_spec(package)
    return spec is not None and spec.origin is not None  # a mere folder of that name has none
