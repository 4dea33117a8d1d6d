"""What may be given as a shape, and how it becomes a clean mesh or cloud in its own units."""

from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from proxlearn.common.checks import array, path_of
from proxlearn.common.contents import brief
from proxlearn.errors import FileError, InputError
from proxlearn.instances.cloud import FEWEST
from proxlearn.meshes.mesh import Cloud, Mesh, box, cleaned
from proxlearn.meshes.normals import different
from proxlearn.meshes.read import read_shape

EXPECTED = (
    "a mesh (vertices, faces), points (n, 3), points with normals (n, 6), or the path of "
    "a file of one of these"
)


def shape_from(given: Any) -> Mesh | Cloud:
    """The mesh or cloud that is given, in double precision on the CPU: as it is, as arrays, as an
    object with `vertices` and `faces`, or as a file. Meshes are cleaned."""
    if isinstance(given, str | Path):
        return _of_file(path_of(given, "file of a shape"))
    if isinstance(given, Cloud):
        points, normals = given
        return _checked(Cloud(_array(points), None if normals is None else _array(normals)))
    if hasattr(given, "vertices") and hasattr(given, "faces"):
        given = (given.vertices, given.faces)
    if isinstance(given, tuple) and len(given) == 2:
        vertices, faces = (_array(each) for each in given)
        if vertices.shape[1:] != (3,) or faces.shape[1:] != (3,):
            raise InputError(
                f"The mesh has vertices {tuple(vertices.shape)} and faces {tuple(faces.shape)}; "
                "expected (v, 3) and (f, 3): split other polygons into triangles."
            )
        return cleaned(Mesh(vertices, faces.long()))
    rows = _array(given)
    if rows.ndim != 2 or rows.shape[1] not in (3, 6):
        raise InputError(f"The shape is an array {tuple(rows.shape)}; expected {EXPECTED}.")
    return _checked(Cloud(rows[:, :3], rows[:, 3:] if rows.shape[1] == 6 else None))


def _of_file(path: Path) -> Mesh | Cloud:
    """The same, where what is wrong with it is said of the file."""
    shape = read_shape(path)
    try:
        return shape_from(shape)
    except InputError as error:
        raise FileError(f"{brief(path)} cannot be used. {error}") from None


def _array(given: Any) -> Float[Tensor, "..."]:
    return array("The shape", given, EXPECTED).detach().cpu().double()


def _checked(cloud: Cloud) -> Cloud:
    points, normals = cloud
    count = len(points)
    if not points.isfinite().all():
        raise InputError("The cloud holds NaN or infinite numbers; every one must be finite.")
    if count >= FEWEST and box(points)[1] == 0:
        raise InputError("The cloud has no size: all its points are at one place.")
    some = different(points) if count >= FEWEST else range(count)
    if len(some) < FEWEST:
        places = f", at {len(some)} places" if len(some) < count else ""
        raise InputError(
            f"The cloud has {count} points{places}: give at least {FEWEST}, better 2,000 or more."
        )
    if normals is None:
        return Cloud(points[some].double(), None)
    normals = normals[some].double()
    length = normals.norm(dim=-1, keepdim=True)
    whole = bool((length.isfinite() & (length > 0)).all())  # else they are estimated
    return Cloud(points[some].double(), normals / length if whole else None)
