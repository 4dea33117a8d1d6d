"""Meshes and clouds from files, by the file's ending."""

from collections.abc import Callable
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch

from proxlearn.errors import FileError
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
    if not path.is_file():
        raise FileError(f"There is no file at {path}: check the path.")
    try:
        if kind in CLOUDS:
            return _cloud(np.load(path) if kind == ".npy" else formats.xyz(path.read_bytes()))
        raw = FORMATS[kind](path.read_bytes())
        if kind == ".ply" and not len(raw.polygons):
            parts = (raw.vertices,) if raw.normals is None else (raw.vertices, raw.normals)
            return _cloud(np.hstack(parts))
        return _mesh(raw)
    except (OSError, EOFError, LookupError, TypeError, ValueError, OverflowError) as error:
        reason = "a line lacks a word" if isinstance(error, LookupError) else error
        raise FileError(f"{path} cannot be read as {kind[1:].upper()}: {reason}.") from None


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
        with np.load(path) as file:
            missing = [name for name in PACKED if name not in file]
            if missing:
                raise ValueError(f"it has no {', '.join(missing)}")
            vertices, faces, *offsets = (file[name] for name in PACKED)
        starts_v, starts_f = ([int(k) for k in each] for each in offsets)
        if (len(starts_v), starts_v[-1], starts_f[-1]) != (
            len(starts_f),
            len(vertices),
            len(faces),
        ):
            raise ValueError("its offsets do not fit its vertices and faces")
        all_vertices = torch.from_numpy(vertices.astype(np.float64))
        all_faces = torch.from_numpy(faces.astype(np.int64))
    except (OSError, EOFError, LookupError, TypeError, ValueError, BadZipFile) as error:
        raise FileError(f"{path} cannot be read as packed meshes: {error}.") from None
    return [
        Mesh(all_vertices[v0:v1], all_faces[f0:f1])
        for v0, v1, f0, f1 in zip(starts_v, starts_v[1:], starts_f, starts_f[1:])
    ]
