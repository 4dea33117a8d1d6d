"""A triangle mesh."""

from typing import NamedTuple

from jaxtyping import Float, Int64
from torch import Tensor


class Mesh(NamedTuple):
    """Corners, and the triangles between them as indices of corners."""

    vertices: Float[Tensor, "v 3"]
    faces: Int64[Tensor, "f 3"]
