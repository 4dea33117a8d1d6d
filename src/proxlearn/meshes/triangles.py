"""Points and triangles: what is nearest, exactly, also where a triangle is a segment or a point.

A triangle is kept as four vectors: a corner a, the edges ab and ac, and the unit normal, which is 0
where the triangle has no area. The normal is computed in 64 bits, so that with 32 bits the distance
to a sliver is as precise as that to any other triangle.
"""

from functools import reduce

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from proxlearn.meshes.mesh import Mesh

Triangles = Float[Tensor, "t 4 3"]
FLAT = 1e-12  # the sine of a corner below which a triangle is a segment
PAIRS = 1 << 20  # of a point and a triangle, at most so many at once
TOGETHER = 64  # points that are near each other and are searched for at once
SLACK = 1e-5  # of the longest distance: far more than distances are rounded by


def triangles_of(mesh: Mesh) -> Triangles:
    """The triangles of a mesh, in the precision of its vertices."""
    a, b, c = mesh.vertices.double()[mesh.faces].unbind(1)
    ab, ac = b - a, c - a
    normal = torch.linalg.cross(ab, ac)
    area = normal.norm(dim=-1, keepdim=True)
    flat = area <= FLAT * ab.norm(dim=-1, keepdim=True) * ac.norm(dim=-1, keepdim=True)
    normal = torch.where(flat, 0.0, normal / area)
    return torch.stack((a, ab, ac, normal), 1).to(mesh.vertices.dtype)


def offsets(points: Float[Tensor, "*#n 3"], triangles: Float[Tensor, "*#n 4 3"]) -> Tensor:
    """`p - q`, where q is the point of a triangle that is nearest to p. Its length is the distance,
    and the derivatives of that with respect to p are right, the second ones too.

    It is the way from the plane, for a point on the inner side of all edges; otherwise the shortest
    of the ways from the edges."""
    a, ab, ac, normal = triangles.permute(-2, -1, *range(triangles.dim() - 2)).contiguous()
    ap = points.movedim(-1, 0).contiguous() - a  # coordinates first: sums over them are fast
    edges = ((ap, ab), (ap - ab, ac - ab), (ap - ac, -ac))
    inner = [_dot(start, torch.linalg.cross(normal, edge, dim=0)) > 0 for start, edge in edges]
    beside = reduce(_shorter, [_from_edge(start, edge) for start, edge in edges])
    above = _dot(ap, normal) * normal
    return torch.where(inner[0] & inner[1] & inner[2], above, beside).movedim(0, -1)


def _from_edge(start: Tensor, edge: Tensor) -> Tensor:
    """The way to a point from an edge, given the ways from the edge's start to both."""
    square = _dot(edge, edge).clamp(min=torch.finfo(edge.dtype).tiny)
    return start - (_dot(start, edge) / square).clamp(0, 1) * edge


def _shorter(one: Tensor, other: Tensor) -> Tensor:
    return torch.where(_dot(one, one) <= _dot(other, other), one, other)


def _dot(one: Tensor, other: Tensor) -> Tensor:
    return (one * other).sum(0)


@torch.no_grad()
def nearest_of(
    points: Float[Tensor, "n 3"], candidates: Float[Tensor, "#n c 4 3"]
) -> Int64[Tensor, "n"]:
    """Which of its candidates is nearest to each point."""
    return offsets(points[:, None], candidates).square().sum(-1).argmin(-1)


@torch.no_grad()
def nearest_of_all(points: Float[Tensor, "n 3"], triangles: Triangles) -> Int64[Tensor, "n"]:
    """The triangle that is nearest to each point, by trying all. Points near each other are taken
    together, and triangles that are too far from all of them are left out."""
    found = torch.empty(len(points), dtype=torch.int64, device=points.device)
    if not len(points):
        return found
    for some in _by_place(points).split(max(1, min(TOGETHER, PAIRS // len(triangles)))):
        center = points[some].mean(0, keepdim=True)
        radius = (points[some] - center).norm(dim=-1).max()
        away = offsets(center, triangles).norm(dim=-1)
        enough = away.min() + 2 * radius + SLACK * away.max()
        near = (~(away > enough)).nonzero()[:, 0]  # all, where a point is no number
        found[some] = near[nearest_of(points[some], triangles[None, near])]
    return found


def _by_place(points: Float[Tensor, "n 3"]) -> Int64[Tensor, "n"]:
    """The order of points by the cells of a lattice with about TOGETHER points in each."""
    low, high = points.amin(0), points.amax(0)
    side = max(1, round((len(points) / TOGETHER) ** (1 / 3)))
    cell = ((points - low) / (high - low) * side).nan_to_num(0.0).clamp(0, side - 1).long()
    return ((cell[:, 0] * side + cell[:, 1]) * side + cell[:, 2]).argsort(stable=True)
