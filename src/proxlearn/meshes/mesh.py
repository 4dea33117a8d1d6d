"""Triangle meshes and clouds of points: cleaning, scaling, areas, normals, points on the surface.
Lengths are in the file's own units until a mesh is `scaled`."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int64, Shaped
from torch import Generator, Tensor

from proxlearn.errors import InputError

THINNEST = 1e-12  # the least area of a triangle, in squares of the mesh's longest side
LARGEST = 1 << 62  # number that rows are told apart by
SIZES = (1e-30, 1e30)  # of meshes in their own units; beyond, single precision has no numbers


class Mesh(NamedTuple):
    """Triangles: the corners of a face are three rows of `vertices`, counterclockwise from outside
    where the file is in order."""

    vertices: Float[Tensor, "v 3"]
    faces: Int64[Tensor, "f 3"]


class Cloud(NamedTuple):
    """Points of a surface, with the unit normals there where they are known."""

    points: Float[Tensor, "n 3"]
    normals: Float[Tensor, "n 3"] | None


def scaled(mesh: Mesh) -> tuple[Mesh, Float[Tensor, "3"], float]:
    """The mesh with its bounding box centred at 0 and its longest side 1, in single precision; and
    the centre and the size it had: `vertices * size + center` are where they were."""
    center, size = box(mesh.vertices)
    if size == 0:
        raise InputError("The mesh has no size: all its vertices are at one point.")
    return Mesh(((mesh.vertices - center) / size).float(), mesh.faces), center, size


def box(points: Float[Tensor, "n 3"]) -> tuple[Float[Tensor, "3"], float]:
    """The centre of the points' bounding box, and the length of its longest side."""
    low, high = points.amin(0), points.amax(0)
    return (low + high) / 2, float((high - low).max())


def area_vectors(mesh: Mesh) -> Float[Tensor, "f 3"]:
    """Of each face: its normal, as long as its area."""
    a, b, c = mesh.vertices[mesh.faces].unbind(1)
    return torch.linalg.cross(b - a, c - a) / 2


def areas(mesh: Mesh) -> Float[Tensor, " f"]:
    return area_vectors(mesh).norm(dim=-1)


def face_normals(mesh: Mesh) -> Float[Tensor, "f 3"]:
    """Unit normals of the faces (0 for a face without area)."""
    return _unit(area_vectors(mesh))


def _unit(vectors: Float[Tensor, "n 3"]) -> Float[Tensor, "n 3"]:
    return torch.nn.functional.normalize(vectors, dim=-1, eps=1e-30)


def sampled(mesh: Mesh, count: int, generator: Generator) -> Cloud:
    """So many points spread evenly over a cleaned mesh, with the normals there, on the generator's
    device."""
    device = generator.device
    mesh = Mesh(mesh.vertices.to(device), mesh.faces.to(device))
    vectors = area_vectors(mesh)
    face = torch.multinomial(vectors.norm(dim=-1), count, replacement=True, generator=generator)
    s, t = torch.rand(2, count, 1, generator=generator, device=device, dtype=mesh.vertices.dtype)
    a, b, c = mesh.vertices[mesh.faces[face]].unbind(1)
    root = s.sqrt()  # evenly over the triangle, not towards its first corner
    points = (1 - root) * a + root * (1 - t) * b + root * t * c
    return Cloud(points, _unit(vectors[face]))


def cleaned(mesh: Mesh) -> Mesh:
    """The mesh with one vertex at each place, no faces without area, each face once, and only the
    vertices that are used. An error where nothing sensible is left."""
    vertices, faces = mesh
    if len(faces) and not (faces.amin() >= 0 and faces.amax() < len(vertices)):
        raise InputError(
            f"The faces name the vertices {faces.amin()} to {faces.amax()}, but there are "
            f"{len(vertices)} (from 0): the mesh is damaged or cut short."
        )
    vertices, faces = _used(mesh)
    bad = int((~vertices.isfinite().all(1)).sum())
    if bad:
        raise InputError(f"{bad} of {len(vertices)} vertices are not numbers (NaN or inf).")
    if len(faces):
        size = box(vertices)[1] or 1.0
        if not SIZES[0] <= size <= SIZES[1]:
            raise InputError(
                f"The mesh is {size:.1g} units long, so that its scale must be wrong: from "
                f"{SIZES[0]:g} to {SIZES[1]:g} can be used."
            )
        faces = first_alike(vertices)[faces]
        # In double precision and at unit size, so that no area under- or overflows.
        solid = areas(Mesh(vertices.double() / size, faces)) > THINNEST
        faces = faces[solid]
        faces = faces[first_alike(faces.sort(1).values) == torch.arange(len(faces)).to(faces)]
    if not len(faces):
        raise InputError("The mesh has no triangles with an area: there is no surface.")
    return _used(Mesh(vertices, faces))


def _used(mesh: Mesh) -> Mesh:
    """The mesh without vertices that no face names."""
    used = torch.zeros(len(mesh.vertices), dtype=torch.bool, device=mesh.faces.device)
    used[mesh.faces] = True
    return Mesh(mesh.vertices[used], (used.cumsum(0) - 1)[mesh.faces])


def first_alike(rows: Shaped[Tensor, "n k"]) -> Int64[Tensor, " n"]:
    """For each row, the first that is equal to it."""
    if not len(rows):
        return torch.zeros(0, dtype=torch.int64, device=rows.device)
    key, size = torch.zeros(len(rows), dtype=torch.int64, device=rows.device), 1
    for column in rows.T:  # faster than `unique` of whole rows
        if column.is_floating_point():
            column = column.unique(return_inverse=True)[1]
        column = column - column.amin()
        values = int(column.amax()) + 1
        if size * values > LARGEST:
            key, size = key.unique(return_inverse=True)[1], len(rows)
        key, size = key * values + column, size * values
    group, numbers = key.unique(return_inverse=True)[1], torch.arange(len(rows)).to(key)
    return torch.full_like(group, len(rows)).scatter_reduce(0, group, numbers, "amin")[group]
