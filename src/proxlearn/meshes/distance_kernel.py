"""The distance to meshes as one GPU kernel, with its gradient.

`triangles.offsets` is the reference. A program takes some points of one instance and goes through
all triangles of its mesh, or through those at the corners of the points' cells. Where there are few
points, several programs share their triangles: each nominates the nearest of its own.
"""
# A kernel's arguments are not those of the function that it is written as.
# pyright: reportCallIssue=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from proxlearn.meshes import grid
from proxlearn.meshes.triangles import offsets

if TYPE_CHECKING:
    from proxlearn.meshes.distance import Surface

# Points and warps of a program: many points share a triangle that is read, but few share a cell.
ALL, GRID = {"TILE": 256, "num_warps": 2}, {"TILE": 128, "num_warps": 4}
ENOUGH, MOST_SHARES = 512, 32  # programs that keep a GPU busy; shares of the triangles
TINY = tl.constexpr(torch.finfo(torch.float32).tiny)


@triton.jit
def _from_edge(rx, ry, rz, ex, ey, ez, nx, ny, nz):
    """The way to points from an edge, given the ways r and e from the edge's start; and whether the
    points are on the inner side of the edge."""
    inverse = 1.0 / tl.maximum(ex * ex + ey * ey + ez * ez, TINY)
    share = tl.minimum(tl.maximum((rx * ex + ry * ey + rz * ez) * inverse, 0.0), 1.0)
    inner = rx * (ny * ez - nz * ey) + ry * (nz * ex - nx * ez) + rz * (nx * ey - ny * ex)
    return rx - share * ex, ry - share * ey, rz - share * ez, inner > 0


@triton.jit
def _shorter(x, y, z, other_x, other_y, other_z):
    first = x * x + y * y + z * z <= other_x * other_x + other_y * other_y + other_z * other_z
    return tl.where(first, x, other_x), tl.where(first, y, other_y), tl.where(first, z, other_z)


@triton.jit
def _offset(px, py, pz, triangle):
    """The way to points from the nearest point of one triangle, or of one for each point."""
    bx, by, bz = tl.load(triangle + 3), tl.load(triangle + 4), tl.load(triangle + 5)
    cx, cy, cz = tl.load(triangle + 6), tl.load(triangle + 7), tl.load(triangle + 8)
    nx, ny, nz = tl.load(triangle + 9), tl.load(triangle + 10), tl.load(triangle + 11)
    px -= tl.load(triangle)
    py -= tl.load(triangle + 1)
    pz -= tl.load(triangle + 2)
    x, y, z, inner = _from_edge(px, py, pz, bx, by, bz, nx, ny, nz)
    u, v, w, inner_too = _from_edge(
        px - bx, py - by, pz - bz, cx - bx, cy - by, cz - bz, nx, ny, nz
    )  # fmt: skip
    x, y, z = _shorter(x, y, z, u, v, w)
    inner = inner & inner_too
    u, v, w, inner_too = _from_edge(px - cx, py - cy, pz - cz, -cx, -cy, -cz, nx, ny, nz)
    x, y, z = _shorter(x, y, z, u, v, w)
    inner = inner & inner_too
    height = px * nx + py * ny + pz * nz
    x = tl.where(inner, height * nx, x)
    y = tl.where(inner, height * ny, y)
    z = tl.where(inner, height * nz, z)
    return x, y, z


@triton.jit
def _nearer(px, py, pz, triangles, candidate, best, least):
    """The nearer of two triangles, and the square of its distance: `best`, or a candidate."""
    x, y, z = _offset(px, py, pz, triangles + candidate * 12)
    square = x * x + y * y + z * z
    return tl.where(square < least, candidate, best), tl.minimum(square, least)


@triton.jit
def _cell(p, SIDE: tl.constexpr, REACH: tl.constexpr):
    """The index of a point's cell along one axis; 0 for what is no number."""
    place = (p + REACH) * ((SIDE - 1) / (2 * REACH))
    return tl.minimum(tl.maximum(place, 0.0), SIDE - 2.0).to(tl.int32)


@triton.jit
def _load(points, place, there):
    px = tl.load(points + place * 3, mask=there, other=0.0)
    py = tl.load(points + place * 3 + 1, mask=there, other=0.0)
    pz = tl.load(points + place * 3 + 2, mask=there, other=0.0)
    return px, py, pz


@triton.jit(do_not_specialize=["n", "tiles", "total"])
def _nominate(
    points, which, triangles, first, nominees, n, tiles, total,
    SHARES: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """points (i, n, 3) to the nearest triangles of each share of them, nominees (SHARES, i n)."""
    instance, share = (tl.program_id(0) // tiles).to(tl.int64), tl.program_id(1)
    column = tl.program_id(0) % tiles * TILE + tl.arange(0, TILE)
    there, place = column < n, instance * n + column
    px, py, pz = _load(points, place, there)
    mesh = tl.load(which + instance)
    begin = tl.load(first + mesh)
    count = (tl.load(first + mesh + 1) - begin).to(tl.int32)
    own = triangles + begin * 12
    k, end = count * share // SHARES, count * (share + 1) // SHARES
    best, least = tl.zeros((TILE,), tl.int32), tl.full((TILE,), float("inf"), tl.float32)
    while k < end:  # the interpreter knows no range of a loaded number
        best, least = _nearer(px, py, pz, own, k, best, least)
        k += 1
    tl.store(nominees + share.to(tl.int64) * total + place, best, mask=there)


@triton.jit(do_not_specialize=["n", "tiles", "total"])
def _search(
    points, which, triangles, first, grids, neighbors, nominees, distances, directions, nearest,
    n, tiles, total,
    SIDE: tl.constexpr, REACH: tl.constexpr, WALK: tl.constexpr, SHARES: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """points (i, n, 3) to distances (i, n), directions (i, n, 3) and indices of triangles (i, n).
    SIDE is 0 where all triangles are tried, and SHARES is 1 where none are nominated."""
    instance = (tl.program_id(0) // tiles).to(tl.int64)
    column = tl.program_id(0) % tiles * TILE + tl.arange(0, TILE)
    there, place = column < n, instance * n + column
    px, py, pz = _load(points, place, there)
    mesh = tl.load(which + instance)
    begin = tl.load(first + mesh)
    own = triangles + begin * 12
    best, least = tl.zeros((TILE,), tl.int32), tl.full((TILE,), float("inf"), tl.float32)
    if SHARES > 1:
        for share in range(SHARES):
            candidate = tl.load(nominees + share * total + place, mask=there, other=0)
            best, least = _nearer(px, py, pz, own, candidate, best, least)
    elif SIDE == 0:
        count = (tl.load(first + mesh + 1) - begin).to(tl.int32)
        k = 0
        while k < count:  # as above
            best, least = _nearer(px, py, pz, own, k, best, least)
            k += 1
    else:
        cell = _cell(px, SIDE, REACH) * SIDE + _cell(py, SIDE, REACH)
        cell = cell * SIDE + _cell(pz, SIDE, REACH)
        corners = grids + mesh * (SIDE * SIDE * SIDE) + cell
        for k in range(8):
            corner = corners + ((k // 4 * SIDE + k // 2 % 2) * SIDE + k % 2)
            candidate = tl.load(corner).to(tl.int32)
            best, least = _nearer(px, py, pz, own, candidate, best, least)
        for _ in range(WALK):
            beside = neighbors + (begin + best) * 3
            for k in range(3):
                best, least = _nearer(px, py, pz, own, tl.load(beside + k), best, least)
    x, y, z = _offset(px, py, pz, own + best * 12)
    distance = tl.sqrt(x * x + y * y + z * z)
    inverse = tl.where(distance > 0, 1.0 / distance, 0.0)
    tl.store(distances + place, distance, mask=there)
    tl.store(directions + place * 3, x * inverse, mask=there)
    tl.store(directions + place * 3 + 1, y * inverse, mask=there)
    tl.store(directions + place * 3 + 2, z * inverse, mask=there)
    tl.store(nearest + place, begin + best, mask=there)


class Found(NamedTuple):
    distance: Tensor  # (i, n)
    direction: Tensor  # (i, n, 3), away from the nearest point, of length 1; 0 on the surface
    triangle: Tensor  # (i, n), its index among those of all meshes


class Packed(NamedTuple):
    """What is needed of a `Surface` without grids."""

    triangles: Tensor
    first: Tensor
    grids: None = None
    neighbors: None = None
    side: None = None


def search(surface: "Surface | Packed", points: Tensor, which: Tensor) -> Found:
    """The nearest triangles of points (i, n, 3), and how far they are."""
    (i, n, _), points, which = points.shape, points.contiguous(), which.contiguous()
    gridded, how, shares, nominees = (None, None), ALL, 1, None
    if surface.grids is not None:
        gridded, how = (surface.grids, surface.neighbors), GRID
    tiles = triton.cdiv(n, how["TILE"])
    while surface.grids is None and 0 < i * tiles * shares < ENOUGH and shares < MOST_SHARES:
        shares *= 2
    if shares > 1:
        nominees = torch.empty(shares, i * n, dtype=torch.int32, device=points.device)
        _nominate[(i * tiles, shares)](
            points, which, surface.triangles, surface.first, nominees,
            n, tiles, i * n, SHARES=shares, **how,
        )  # fmt: skip
    found = Found(
        points.new_empty(i, n),
        torch.empty_like(points),
        torch.empty(i, n, dtype=torch.int64, device=points.device),
    )
    if i * n:
        _search[(i * tiles,)](
            points, which, surface.triangles, surface.first, *gridded, nominees, *found,
            n, tiles, i * n,
            SIDE=surface.side or 0, REACH=grid.REACH, WALK=grid.WALK, SHARES=shares, **how,
        )  # fmt: skip
    return found


class _Distance(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, surface: "Surface", which: Tensor, points: Tensor):
        found = search(surface, points, which)
        ctx.surface = surface
        ctx.save_for_backward(points, found.direction, found.triangle)
        return found.distance

    @staticmethod
    def backward(ctx: Any, slope: Tensor):  # pyright: ignore[reportIncompatibleMethodOverride]
        points, direction, triangle = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives are wanted: do it so that it has them
            offset = offsets(points, ctx.surface.triangles[triangle])
            direction = torch.nn.functional.normalize(offset, dim=-1, eps=TINY.value)
        return None, None, slope[..., None] * direction


def distance(surface: "Surface", points: Tensor, which: Tensor) -> Tensor:
    """The distances (i, n) of points (i, n, 3), with gradients."""
    return _Distance.apply(surface, which, points)
