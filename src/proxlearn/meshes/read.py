"""Meshes and clouds from files, by the file's ending."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from proxlearn.common.arrays import read_npy, read_npz
from proxlearn.common.contents import AS_OBJECTS, brief, check_file, content_of
from proxlearn.common.memory import afford
from proxlearn.errors import FileError, ProxlearnError
from proxlearn.meshes import formats
from proxlearn.meshes.formats import Raw
from proxlearn.meshes.mesh import Cloud, Mesh

FORMATS: dict[str, Callable[[bytes], Raw]] = {
    ".obj": formats.obj,
    ".off": formats.off,
    ".ply": formats.ply,
    ".stl": formats.stl,
}
CLOUDS = (".xyz", ".npy")
PACKED = ("vertices", "faces", "vertex_offset", "face_offset")


def read_mesh(path: str | Path) -> Mesh:
    """The mesh of a file (OBJ, OFF, PLY or STL), as it is there: polygons become fans of triangles,
    vertices are in double precision, nothing is cleaned or scaled."""
    shape = read_shape(path)
    if isinstance(shape, Cloud):
        raise FileError(f"{path} holds {len(shape.points)} points and no faces: it is no mesh.")
    return shape


def read_shape(path: str | Path) -> Mesh | Cloud:
    """The mesh of a file, or the cloud of points of one that is made for them: .xyz and .npy, with
    3 columns, or 6 where there are normals, and a PLY file that names no faces."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in (*FORMATS, *CLOUDS):
        known = ", ".join((*FORMATS, *CLOUDS))
        raise FileError(f"{path} is of no kind that can be read: give one of {known}.")
    check_file(path)
    try:
        if kind == ".npy":
            return _cloud(read_npy(path, "points"))
        _afford(path)
        if kind == ".xyz":
            return _cloud(formats.xyz(content_of(path)))
        raw = FORMATS[kind](content_of(path))
        if kind == ".ply" and not len(raw.polygons):
            parts = (raw.vertices,) if raw.normals is None else (raw.vertices, raw.normals)
            return _cloud(np.hstack(parts))
        return _mesh(raw)
    except ProxlearnError:
        raise
    except (OSError, EOFError, LookupError, TypeError, ValueError, OverflowError) as error:
        reason = "a line lacks a word" if isinstance(error, LookupError) else brief(error)
        raise FileError(f"{brief(path)} cannot be read as {kind[1:].upper()}: {reason}.") from None


def _afford(path: Path) -> None:
    """An error where a file is too large for the lists of numbers that are made of it."""
    size = path.stat().st_size
    afford(AS_OBJECTS * size, f"Reading {brief(path)}, {size:,} bytes,", "give a coarser mesh")


def _mesh(raw: Raw) -> Mesh:
    if not len(raw.polygons):
        raise ValueError(f"there are {len(raw.vertices)} vertices and no faces in it")
    faces, count = fans(raw.polygons), len(raw.vertices)
    if not (faces.min() >= 0 and faces.max() < count):
        raise ValueError(f"a face names a vertex that is not among the {count} there are")
    return Mesh(torch.from_numpy(raw.vertices), torch.from_numpy(faces))


def fans(polygons) -> np.ndarray:
    """Polygons as triangles (f, 3), all those of one polygon around its first corner."""
    if isinstance(polygons, np.ndarray):
        return polygons.astype(np.int64)
    if any(len(each) < 3 for each in polygons):
        raise ValueError("a face has fewer than three corners")
    triangles = [(p[0], p[k], p[k + 1]) for p in polygons for k in range(1, len(p) - 1)]
    named = np.array(triangles)
    if named.dtype.kind == "f" and (named != np.floor(named)).any():
        raise ValueError("a face names a vertex by a number that is not whole")
    return np.array(triangles, np.int64).reshape(-1, 3)


def _cloud(rows: np.ndarray) -> Cloud:
    """Points (n, 3), or points and normals (n, 6)."""
    if rows.ndim != 2 or rows.shape[1] not in (3, 6) or not len(rows):
        raise ValueError(f"points are (n, 3), or (n, 6) with normals, not {rows.shape}")
    points = torch.from_numpy(rows.astype(float))
    if not points.isfinite().all():
        raise ValueError("some coordinates are not numbers (NaN or inf)")
    if points.shape[1] == 3:
        return Cloud(points, None)
    return Cloud(points[:, :3], torch.nn.functional.normalize(points[:, 3:], dim=-1, eps=1e-30))


def read_packed(path: str | Path) -> list[Mesh]:
    """Many meshes of one .npz file: `vertices` (all, 3) and `faces` (all, 3), counted from 0 in
    each mesh; mesh k has the rows from `vertex_offset[k]` and `face_offset[k]` up to the next."""
    try:
        arrays = read_npz(path, "packed meshes", PACKED)
        vertices, faces, starts_v, starts_f = (_numbers(arrays[name]) for name in PACKED)
        if vertices.shape[1:] != (3,) or faces.shape[1:] != (3,):
            raise ValueError(f"its vertices are {vertices.shape} and its faces {faces.shape}")
        whole = _runs(starts_v, len(vertices)) and _runs(starts_f, len(faces))
        if not whole or len(starts_v) != len(starts_f):
            raise ValueError("its offsets do not fit its vertices and faces")
    except ProxlearnError:
        raise
    except ValueError as error:
        raise FileError(f"{brief(path)} cannot be read as packed meshes: {error}.") from None
    all_vertices = torch.from_numpy(vertices.astype(np.float64))
    all_faces = torch.from_numpy(faces.astype(np.int64))
    starts_v, starts_f = starts_v.astype(int).tolist(), starts_f.astype(int).tolist()
    return [
        Mesh(all_vertices[v0:v1], all_faces[f0:f1])
        for v0, v1, f0, f1 in zip(starts_v, starts_v[1:], starts_f, starts_f[1:])
    ]


def _runs(starts: np.ndarray, count: int) -> bool:
    """Whether these are where meshes begin and end among so many rows."""
    if starts.ndim != 1 or len(starts) < 2 or (starts[0], starts[-1]) != (0, count):
        return False
    return bool((np.diff(starts.astype(float)) >= 0).all())


def _numbers(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "iuf":
        raise ValueError(f"it holds {array.dtype}, not numbers")
    return array
