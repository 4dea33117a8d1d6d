"""What planes see of a cloud, and the nearest points of a grid's corners, as GPU kernels;
`matching.looked` and `matching.nearest_ids` are the references."""
# A kernel's arguments are not those of the function that it is written as.
# pyright: reportCallIssue=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false

from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from proxlearn.meshes import grid

if TYPE_CHECKING:
    from proxlearn.common.batch import Batch

TILE = 128  # corners of a program


@triton.jit
def _load3(pointer, mask):
    x = tl.load(pointer, mask=mask, other=0.0)
    y = tl.load(pointer + 1, mask=mask, other=0.0)
    z = tl.load(pointer + 2, mask=mask, other=0.0)
    return x, y, z


@triton.jit
def _cell(p, SIDE: tl.constexpr, REACH: tl.constexpr):
    place = (p + REACH) * ((SIDE - 1) / (2 * REACH))
    return tl.minimum(tl.maximum(place, 0.0), SIDE - 2.0).to(tl.int32)


@triton.jit
def _equations(out, w, a, b, c, e, first, second):
    """Sums of nine products; `first` and `second` are added to the first two of the diagonal."""
    tl.store(out, tl.sum(w * a * a) + first)
    tl.store(out + 1, tl.sum(w * a * b))
    tl.store(out + 2, tl.sum(w * a * c))
    tl.store(out + 3, tl.sum(w * b * b) + second)
    tl.store(out + 4, tl.sum(w * b * c))
    tl.store(out + 5, tl.sum(w * c * c))
    tl.store(out + 6, tl.sum(w * a * e))
    tl.store(out + 7, tl.sum(w * b * e))
    tl.store(out + 8, tl.sum(w * c * e))


@triton.jit
def _coarse(out, w, a, b, c, e, height, along, sideways):
    """Equations of points and points, whose errors in the plane are `along` and `sideways`."""
    more = 4 * tl.sum(w * height * height)
    _equations(out, w, a, b, c, e, more, more)
    tl.store(out + 6, tl.sum(w * (a * e - 2 * height * along)))
    tl.store(out + 7, tl.sum(w * (b * e - 2 * height * sideways)))


@triton.jit(do_not_specialize=["n", "m", "k"])
def _look(
    x, basis, some, cloud, ids, out, n, m, k,
    TO_PLANES: tl.constexpr, TO_POINTS: tl.constexpr, SCALES: tl.constexpr, TURNED: tl.constexpr,
    SEEN: tl.constexpr, SIDE: tl.constexpr, REACH: tl.constexpr, POINTS: tl.constexpr,
):  # fmt: skip
    """A program takes one plane of x (i, n, 4) to what it sees, out (i, n, SEEN)."""
    plane = tl.program_id(0).to(tl.int64)
    instance = plane // n
    nx, ny, nz = tl.load(x + plane * 4), tl.load(x + plane * 4 + 1), tl.load(x + plane * 4 + 2)
    offset = tl.load(x + plane * 4 + 3)
    frame = basis + plane * 12  # (4, 3)
    fx, fy, fz = tl.load(frame), tl.load(frame + 3), tl.load(frame + 6)
    sx, sy, sz = tl.load(frame + 1), tl.load(frame + 4), tl.load(frame + 7)
    column = tl.arange(0, POINTS)
    there = column < k
    one = tl.where(there, 1.0, 0.0)
    at = some + (instance * k + column) * 6
    px, py, pz = _load3(at, there)
    ox, oy, oz = _load3(at + 3, there)
    height = px * nx + py * ny + pz * nz - offset
    rx, ry, rz = px - 2 * height * nx, py - 2 * height * ny, pz - 2 * height * nz
    turn = 2 * (ox * nx + oy * ny + oz * nz)
    ox, oy, oz = ox - turn * nx, oy - turn * ny, oz - turn * nz
    cell = (_cell(rx, SIDE, REACH) * SIDE + _cell(ry, SIDE, REACH)) * SIDE + _cell(rz, SIDE, REACH)
    corners = ids + instance * (SIDE * SIDE * SIDE) + cell
    qx, qy, qz, mx, my, mz = rx, ry, rz, ox, oy, oz
    least = tl.full((POINTS,), float("inf"), tl.float32)
    for corner in tl.static_range(8):
        step = (corner // 4 * SIDE + corner // 2 % 2) * SIDE + corner % 2
        match = cloud + (instance * m + tl.load(corners + step)) * 6
        ux, uy, uz = _load3(match, there)
        vx, vy, vz = _load3(match + 3, there)
        square = (rx - ux) * (rx - ux) + (ry - uy) * (ry - uy) + (rz - uz) * (rz - uz)
        cost = square - TURNED * tl.abs(ox * vx + oy * vy + oz * vz)
        nearer = cost < least
        least = tl.minimum(cost, least)
        qx, qy, qz = tl.where(nearer, ux, qx), tl.where(nearer, uy, qy), tl.where(nearer, uz, qz)
        mx, my, mz = tl.where(nearer, vx, mx), tl.where(nearer, vy, my), tl.where(nearer, vz, mz)
    wx, wy, wz = rx - qx, ry - qy, rz - qz
    apart, far = wx * mx + wy * my + wz * mz, wx * wx + wy * wy + wz * wz
    along, sideways = px * fx + py * fy + pz * fz, px * sx + py * sy + pz * sz
    across = mx * nx + my * ny + mz * nz
    facing = ox * mx + oy * my + oz * mz
    a = -2 * (along * across + height * (mx * fx + my * fy + mz * fz))
    b = -2 * (sideways * across + height * (mx * sx + my * sy + mz * sz))
    result = out + plane * SEEN
    for s in tl.static_range(len(TO_PLANES)):
        w = one * facing * facing * tl.rsqrt(apart * apart + TO_PLANES[s] * TO_PLANES[s])
        _equations(result + 9 * s, w, a, b, 2 * across, apart, 0.0, 0.0)
    result += 9 * len(TO_PLANES)
    level = wx * nx + wy * ny + wz * nz
    ahead, aside = wx * fx + wy * fy + wz * fz, wx * sx + wy * sy + wz * sz
    for s in tl.static_range(len(TO_POINTS)):
        w = one * tl.rsqrt(far + TO_POINTS[s] * TO_POINTS[s])
        _coarse(result + 9 * s, w, -2 * along, -2 * sideways, 2 * one, level, height, ahead, aside)
    result += 9 * len(TO_POINTS)
    for s in tl.static_range(len(SCALES)):
        square = SCALES[s] * SCALES[s]
        tl.store(result + s, tl.sum(one * apart * apart / (apart * apart + square)))
        tl.store(result + len(SCALES) + s, tl.sum(one * far / (far + square)))
    result += 2 * len(SCALES)
    tl.store(result, tl.sum(one * tl.abs(apart)))
    tl.store(result + 1, tl.sum(one * tl.sqrt(far)))
    tl.store(result + 2, tl.sum(one * tl.abs(facing)))


@triton.jit(do_not_specialize=["m", "c", "tiles"])
def _nearest(points, corners, ids, m, c, tiles, TILE: tl.constexpr):
    """points (i, m, 3) and corners (c, 3) to the nearest points, ids (i, c)."""
    instance = (tl.program_id(0) // tiles).to(tl.int64)
    column = tl.program_id(0) % tiles * TILE + tl.arange(0, TILE)
    there = column < c
    x, y, z = _load3(corners + column * 3, there)
    best, least = tl.zeros((TILE,), tl.int32), tl.full((TILE,), float("inf"), tl.float32)
    point, k = points + instance * m * 3, 0
    while k < m:
        u, v, w = tl.load(point), tl.load(point + 1), tl.load(point + 2)
        square = (x - u) * (x - u) + (y - v) * (y - v) + (z - w) * (z - w)
        best = tl.where(square < least, k, best)
        least = tl.minimum(square, least)
        point += 3
        k += 1
    tl.store(ids + instance * c + column, best, mask=there)


def looked(x: Tensor, basis: Tensor, prepared: "Batch", sizes: dict[str, Any]) -> Tensor:
    """What planes x (i, n, 4) see, (i, n, SEEN); `sizes`: the constants of the kernel."""
    (i, n, _), (k, m) = x.shape, (prepared["some"].shape[1], prepared["cloud"].shape[1])
    side = round(prepared["ids"].shape[1] ** (1 / 3))
    out = x.new_empty(i, n, sizes["SEEN"])
    if i * n:
        _look[(i * n,)](
            x.contiguous(), basis.contiguous(), prepared["some"].contiguous(),
            prepared["cloud"].contiguous(), prepared["ids"].contiguous(), out, n, m, k,
            **sizes, SIDE=side, REACH=grid.REACH, POINTS=triton.next_power_of_2(k), num_warps=4,
        )  # fmt: skip
    return out


def nearest_ids(points: Tensor, corners: Tensor) -> Tensor:
    """The points (i, m, 3) that are nearest to corners (c, 3), (i, c)."""
    (i, m, _), c = points.shape, len(corners)
    ids = torch.empty(i, c, dtype=torch.int32, device=points.device)
    tiles = triton.cdiv(c, TILE)
    _nearest[(i * tiles,)](points, corners, ids, m, c, tiles, TILE=TILE, num_warps=4)
    return ids
