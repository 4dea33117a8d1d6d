"""The distance to meshes: queries a second with their gradient, what has to be built before, and
the errors of grids.

    python benchmarks/distance.py [--meshes FOLDER]

FOLDER holds a `meshes.npz` of real parts; without it, the meshes are tori of several sizes. Queries
are points of the surface, moved by a Gaussian of 1% of the part's size, so that errors are those
near the surface, where they matter. "all triangles" is the reference without a tree or a kernel.
"""

import math
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from _shared import Benchmark, options, show
from _timing import interleaved
from torch import Tensor

from proxlearn.common.seeds import generator_for
from proxlearn.meshes.mesh import Mesh
from proxlearn.meshes.distance import Surface
from proxlearn.meshes.triangles import nearest_of_all, offsets

SPREAD = 0.01
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


def near_surface(meshes: list[Mesh], count: int) -> Tensor:
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
    return points + SPREAD * torch.randn(points.shape, generator=generator)


def with_gradient(distance: Callable[[Tensor], Tensor], points: Tensor) -> Callable[[], Tensor]:
    def call() -> Tensor:
        asked = points.detach().requires_grad_()
        found = distance(asked)
        torch.autograd.grad(found.sum(), asked)
        return found.detach()

    return call


def trying_all(surface: Surface, points: Tensor) -> Tensor:
    """The distance of points (meshes, n, 3) without a tree or a kernel."""
    found = []
    for k, row in enumerate(points):
        triangles = surface.triangles[surface.bounds[k] : surface.bounds[k + 1]]
        nearest = triangles[nearest_of_all(row.detach(), triangles)]
        found.append(offsets(row, nearest).norm(dim=-1))
    return torch.stack(found)


def measured(run: Benchmark, meshes: list[Mesh], queries: int, few: int) -> None:
    """A row for each way."""
    which = torch.arange(len(meshes), device=run.device)
    points = near_surface(meshes, queries).to(run.device)
    wait = torch.cuda.synchronize if run.device.type == "cuda" else lambda: None
    exact, calls, about = Surface(meshes, run.device), {}, {}
    fast = "kernel" if run.device.type == "cuda" else "igl"
    if find_spec("triton" if fast == "kernel" else "igl"):
        calls[fast] = with_gradient(lambda x: exact.distance(x, which), points)
    calls["all triangles"] = with_gradient(lambda x: trying_all(exact, x), points[:, :few])
    calls.get(fast, wait)()  # trees are built, and kernels compiled, when they are first used
    for side in SIDES[: 1 if run.quick else None]:
        began = time.perf_counter()
        gridded = Surface(meshes, run.device, side)
        wait()
        about[f"grid {side}"] = {
            "build_seconds": (time.perf_counter() - began) / len(meshes),
            "mesh_bytes": _bytes(gridded) // len(meshes),
        }
        calls[f"grid {side}"] = with_gradient(
            lambda x, gridded=gridded: gridded.distance(x, which), points
        )
    timings = interleaved(calls, run.device, *((2, 0.0) if run.quick else (5, 0.5)))
    truth = calls.get(fast, calls["all triangles"])()
    for way, call in calls.items():
        found, timing = call(), timings[way]
        shared = min(found.shape[1], truth.shape[1])
        error = found[:, :shared] - truth[:, :shared]
        run.add(
            way=way,
            meshes=len(meshes),
            triangles=len(exact.triangles),
            queries=found.numel(),
            queries_per_second=found.numel() / timing.median,
            mean_error=error.abs().mean().item(),
            largest_error=error.abs().max().item(),
            **timing.fields(),
            **about.get(way, {"build_seconds": None, "mesh_bytes": None}),
        )


def _bytes(surface: Surface) -> int:
    return 0 if surface.grids is None else surface.grids.numel() * surface.grids.element_size()


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--meshes", type=Path, help="folder with a meshes.npz of scaled parts")
    run = Benchmark("distance", parser.parse_args(arguments))
    count = 2 if run.quick else 64
    if run.asked.meshes:
        meshes = parts(run.asked.meshes, count)
    else:
        meshes = [torus(8 + k, 6 + k) for k in range(count)]
    queries = 100 if run.quick else (1 << 16 if run.device.type == "cuda" else 1 << 12)
    measured(run, meshes, queries, few=50 if run.quick else 128)
    keys = ("way", "queries_per_second", "build_seconds", "mesh_bytes", "mean_error")
    keys += ("largest_error",)
    show("The distance to meshes", keys, [[each[key] for key in keys] for each in run.rows])
    run.save()


if __name__ == "__main__":
    main()
