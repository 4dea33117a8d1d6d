"""The nearest disc of a cloud as a GPU kernel; `target.py` has the reference."""
# A kernel's arguments are not those of the function that it is written as.
# pyright: reportCallIssue=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false

import torch
import triton
import triton.language as tl
from torch import Tensor

from proxlearn.networks._looking_kernel import SMALLEST, load3, store3

TILE = 64  # points of a program
INDEX = tl.constexpr(8191)  # the bits of a key that say which disc it is
NONE = tl.constexpr(0x7F800000)  # an infinite distance to the first disc, as a key


@triton.jit
def _sorted(one, other):
    return tl.minimum(one, other), tl.maximum(one, other)


@triton.jit
def _nearer(x, y, z, discs, key, ox, oy, oz, mx, my, mz, least):
    """The way to points from the nearer of two discs, its normal, and the square of its length."""
    disc = discs + (key & INDEX) * 7
    nx, ny, nz, radius = tl.load(disc + 3), tl.load(disc + 4), tl.load(disc + 5), tl.load(disc + 6)
    u, v, w = x - tl.load(disc), y - tl.load(disc + 1), z - tl.load(disc + 2)
    above = u * nx + v * ny + w * nz
    u, v, w = u - above * nx, v - above * ny, w - above * nz
    outside = tl.maximum(1 - radius / tl.maximum(tl.sqrt(u * u + v * v + w * w), SMALLEST), 0.0)
    u, v, w = above * nx + outside * u, above * ny + outside * v, above * nz + outside * w
    square = u * u + v * v + w * w
    nearer = square < least
    ox, oy, oz = tl.where(nearer, u, ox), tl.where(nearer, v, oy), tl.where(nearer, w, oz)
    mx, my, mz = tl.where(nearer, nx, mx), tl.where(nearer, ny, my), tl.where(nearer, nz, mz)
    return ox, oy, oz, mx, my, mz, tl.minimum(square, least)


@triton.jit(do_not_specialize=["n", "m"])
def _near(points, discs, distances, directions, normals, n, m, TILE: tl.constexpr):
    """points (n, 3) and discs (m, 7) to distances (n), directions (n, 3) and normals (n, 3). The
    discs with the eight nearest middles are kept in order, as keys: the bits of a squared distance,
    the last of which make room for the index, so that it counts to a thousandth."""
    place = tl.program_id(0) * TILE + tl.arange(0, TILE)
    there = place < n
    x, y, z = load3(points + place * 3, there)
    a = tl.full((TILE,), NONE, tl.int32)
    b, c, d, e, f, g, h = a, a, a, a, a, a, a
    disc, k = discs, 0
    while k < m:
        u, v, w = x - tl.load(disc), y - tl.load(disc + 1), z - tl.load(disc + 2)
        square = u * u + v * v + w * w
        key = (square.to(tl.int32, bitcast=True) & ~INDEX) | k
        a, key = _sorted(a, key)
        b, key = _sorted(b, key)
        c, key = _sorted(c, key)
        d, key = _sorted(d, key)
        e, key = _sorted(e, key)
        f, key = _sorted(f, key)
        g, key = _sorted(g, key)
        h, key = _sorted(h, key)
        disc += 7
        k += 1
    best = (x, y, z, x, y, z, tl.full((TILE,), float("inf"), tl.float32))
    best = _nearer(x, y, z, discs, a, *best)
    best = _nearer(x, y, z, discs, b, *best)
    best = _nearer(x, y, z, discs, c, *best)
    best = _nearer(x, y, z, discs, d, *best)
    best = _nearer(x, y, z, discs, e, *best)
    best = _nearer(x, y, z, discs, f, *best)
    best = _nearer(x, y, z, discs, g, *best)
    ox, oy, oz, mx, my, mz, least = _nearer(x, y, z, discs, h, *best)
    far = tl.sqrt(least)
    part = 1 / tl.maximum(far, SMALLEST)
    tl.store(distances + place, far, mask=there)
    store3(directions + place * 3, ox * part, oy * part, oz * part, there)
    store3(normals + place * 3, mx, my, mz, there)


def nearest_discs(points: Tensor, discs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For each point (n, 3) how far the nearest of some discs (m, 7) is, the unit vector away from
    it, and its normal: of the eight with the nearest middles. There are at most 8,192."""
    n, points, discs = len(points), points.contiguous(), discs.contiguous()
    found = points.new_empty(n), torch.empty_like(points), torch.empty_like(points)
    if n:
        _near[(triton.cdiv(n, TILE),)](points, discs, *found, n, len(discs), TILE=TILE, num_warps=2)
    return found
