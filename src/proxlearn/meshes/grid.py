"""A grid over a mesh: the triangle nearest to each of its corners.

A point begins with the nearest of the 8 triangles at the corners of its cell, and walks over shared
edges for as long as that leads nearer, but at most WALK times. The distance to the triangle where
it ends is exact, where a grid of distances would be interpolated; a nearer triangle may be missed,
so what a grid gives is never too short.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from proxlearn.meshes.mesh import Mesh

REACH = 0.75  # the grid covers [-REACH, REACH]^3: a scaled mesh and a quarter of its size around
WALK = 2  # steps to neighbors: each makes errors about half as large


def corners(side: int, device: torch.device) -> Float[Tensor, "c 3"]:
    """The corners of a grid with `side` of them along each axis."""
    along = torch.linspace(-REACH, REACH, side, device=device)
    return torch.cartesian_prod(along, along, along)


def around(points: Float[Tensor, "n 3"], side: int) -> Int64[Tensor, "n 8"]:
    """The indices of the 8 corners of the cell that each point is in, or is nearest to."""
    low = (points + REACH) * ((side - 1) / (2 * REACH))
    low = low.clamp(0, side - 2).nan_to_num(0.0).long()
    first = (low[:, :1] * side + low[:, 1:2]) * side + low[:, 2:]
    x, y, z = torch.cartesian_prod(*torch.arange(2, device=points.device).expand(3, 2)).unbind(-1)
    return first + (x * side + y) * side + z


def smallest_integers(most: int) -> torch.dtype:
    """The type with the fewest bits that holds indices below `most`."""
    return torch.int16 if most <= torch.iinfo(torch.int16).max + 1 else torch.int32


def neighbors_of(mesh: Mesh) -> Int64[Tensor, "f 3"]:
    """The triangles at the edges ab, bc and ca of each triangle; where there is none, itself. Where
    several meet, they are neighbors in a circle."""
    corner = _places(mesh.vertices)  # some files repeat corners for every triangle
    a, b = corner[mesh.faces], corner[mesh.faces.roll(-1, 1)]
    edge = (torch.minimum(a, b) * len(mesh.vertices) + torch.maximum(a, b)).flatten()
    sorted_edge, order = edge.sort(stable=True)
    _, which, count = sorted_edge.unique_consecutive(return_inverse=True, return_counts=True)
    begin = (count.cumsum(0) - count)[which]
    here = torch.arange(len(edge), device=edge.device)
    following = begin + (here - begin + 1) % count[which]
    neighbors = torch.empty_like(edge)
    neighbors[order] = order[following] // 3
    return neighbors.view(-1, 3)


def _places(vertices: Float[Tensor, "v 3"]) -> Int64[Tensor, "v"]:
    """A number for each vertex, the same for those at the same place (`unique(dim=0)` is slow)."""
    order = torch.arange(len(vertices), device=vertices.device)
    for axis in range(3):
        order = order[vertices[order, axis].argsort(stable=True)]
    ordered, places = vertices[order], torch.zeros_like(order)
    places[order[1:]] = (ordered[1:] != ordered[:-1]).any(1).cumsum(0)
    return places
