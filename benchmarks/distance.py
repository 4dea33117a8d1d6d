"""The distance to meshes: queries a second with their gradient, what has to be built before, and
the errors of grids.

    python benchmarks/distance.py [--meshes FOLDER] [--small]

FOLDER holds a `meshes.npz` of real parts; without it, the meshes are tori of several sizes. Queries
are points of the surface, moved by a Gaussian of 1% of the part's size, so that errors are those
near the surface, where they matter; and points on it, where the distance should be 0. "all
triangles" is the reference without a tree or a kernel. Build times are those of one mesh. With
--small there are fewer meshes and queries, and it takes less than half a minute on a GPU.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from _shared import Benchmark, options, show
from _timing import interleaved
from torch import Tensor

from proxlearn.common.seeds import generator_for
from proxlearn.meshes.distance import Surface
from proxlearn.meshes.mesh import Mesh
from proxlearn.meshes.triangles import nearest_of_all, offsets

SPREAD = 0.01
ALL = "all triangles"
SIDES = (48, 64)


def parts(folder: Path, count: int) -> list[Mesh]:
    """Meshes from all over a packed file of scaled parts."""
    with np.load(folder / "meshes.npz") as file:
        vertices, faces = torch.from_numpy(file["vertices"]), file["faces"].astype(np.int64)
        corner, face = file["vertex_offset"], file["face_offset"]
    chosen = np.linspace(0, len(face) - 2, count).astype(int)
    return [
        Mesh(vertices[corner[k] : corner[k + 1]], torch.from_numpy(faces[face[k] : face[k + 1]]))
        for k in chosen
    ]


def torus(around: int, across: int) -> Mesh:
    """2 * around * across triangles; the longest side of its box is 1."""
    turns = [torch.arange(n) * (2 * math.pi / n) for n in (around, across)]
    u, v = torch.meshgrid(*turns, indexing="ij")
    radius = 0.35 + 0.15 * v.cos()
    vertices = torch.stack((radius * u.cos(), radius * u.sin(), 0.15 * v.sin()), -1).view(-1, 3)
    here = torch.arange(around * across).view(around, across)
    right, up, both = here.roll(-1, 0), here.roll(-1, 1), here.roll((-1, -1), (0, 1))
    halves = torch.stack((here, right, both), -1), torch.stack((here, both, up), -1)
    return Mesh(vertices, torch.cat(halves).view(-1, 3))


def near_surface(meshes: list[Mesh], count: int, spread: float = SPREAD) -> Tensor:
    """Points (meshes, count, 3) near the surfaces, with as many at a triangle as its area asks."""
    generator, found = generator_for(0, "queries"), []
    for vertices, faces in meshes:
        corners = vertices[faces]
        ab, ac = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
        area = torch.linalg.cross(ab, ac).norm(dim=-1)
        chosen = torch.multinomial(area, count, replacement=True, generator=generator)
        shares = -torch.rand(count, 3, 1, generator=generator).log()
        found.append((corners[chosen] * shares).sum(1) / shares.sum(1))
    points = torch.stack(found)
    return points + spread * torch.randn(points.shape, generator=generator)


class Way(NamedTuple):
    """How distances are found."""

    distance: Callable[[Tensor], Tensor]  # of points (meshes, n, 3)
    build_seconds: float | None = None  # for each mesh
    mesh_bytes: int | None = None  # that a grid takes

    def with_gradient(self, points: Tensor) -> Tensor:
        points = points.detach().requires_grad_()
        found = self.distance(points)
        torch.autograd.grad(found.sum(), points)
        return found.detach()


def trying_all(surface: Surface, points: Tensor) -> Tensor:
    """The distance of points (meshes, n, 3) without a tree or a kernel."""
    found = []
    for k, row in enumerate(points):
        triangles = surface.triangles[surface.bounds[k] : surface.bounds[k + 1]]
        nearest = triangles[nearest_of_all(row.detach(), triangles)]
        found.append(offsets(row, nearest).norm(dim=-1))
    return torch.stack(found)


def ways(meshes: list[Mesh], device: torch.device, sides: tuple[int, ...]) -> dict[str, Way]:
    """The usual one, then the reference, then grids."""
    which, exact, found = torch.arange(len(meshes), device=device), Surface(meshes, device), {}
    on_cpu = "igl" if find_spec("igl") else "scattered points"
    found["kernel" if device.type == "cuda" else on_cpu] = Way(lambda x: exact.distance(x, which))
    exact.distance(near_surface(meshes, 1).to(device), which)  # compiles the kernel, grows trees
    found[ALL] = Way(lambda x: trying_all(exact, x))
    for side in sides:
        began = time.perf_counter()
        grids = Surface(meshes, device, side)
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds, corners = time.perf_counter() - began, grids.grids
        assert corners is not None
        size = corners.numel() * corners.element_size() // len(meshes)
        found[f"grid {side}"] = Way(
            lambda x, grids=grids: grids.distance(x, which), seconds / len(meshes), size
        )
    return found


def measured(run: Benchmark, meshes: list[Mesh], queries: int, few: int) -> None:
    """A row for each way."""
    every = ways(meshes, run.device, (16,) if run.quick else SIDES)
    near, on_it = (near_surface(meshes, queries, s).to(run.device) for s in (SPREAD, 0.0))
    asked = {name: near[:, :few] if name == ALL else near for name in every}
    calls = {name: partial(way.with_gradient, asked[name]) for name, way in every.items()}
    timings = interleaved(calls, run.device, *((2, 0.0) if run.quick else (5, 0.5)))
    truth = next(iter(every.values())).distance(near)
    for name, way in every.items():
        count, timing = asked[name].shape[1], timings[name]
        error = way.distance(asked[name]) - truth[:, :count]
        run.add(
            way=name,
            meshes=len(meshes),
            triangles=sum(len(mesh.faces) for mesh in meshes),
            queries=count * len(meshes),
            queries_per_second=count * len(meshes) / timing.median,
            mean_error=error.abs().mean().item(),
            largest_error=error.abs().max().item(),
            mean_on_surface=way.distance(on_it[:, :count]).mean().item(),
            build_seconds=way.build_seconds,
            mesh_bytes=way.mesh_bytes,
            **timing.fields(),
        )


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--meshes", type=Path, help="folder with a meshes.npz of scaled parts")
    parser.add_argument("--small", action="store_true", help="fewer meshes and queries")
    run = Benchmark("distance", parser.parse_args(arguments))
    small = run.asked.small
    count = 2 if run.quick else 16 if small else 64
    if run.asked.meshes:
        meshes = parts(run.asked.meshes, count)
    else:
        meshes = [torus(8 + k, 6 + k) for k in range(count)]
    queries = 1 << (13 if small else 16) if run.device.type == "cuda" else 1 << 12
    queries = 100 if run.quick else queries
    measured(run, meshes, queries, few=50 if run.quick else 128)
    keys = ("way", "queries_per_second", "build_seconds", "mesh_bytes")
    keys += ("mean_error", "largest_error", "mean_on_surface")
    header = ("way", "a second", "build (s)", "bytes", "mean error", "largest", "mean on surface")
    show("The distance to meshes", header, [[each[key] for key in keys] for each in run.rows])
    run.save()


if __name__ == "__main__":
    main()
