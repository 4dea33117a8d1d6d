"""What the GPU kernels of `matching_kernel.py` and `turning_kernel.py` share, and the nearest
points of a grid's corners as a kernel; `_looking.py` has the references."""
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

TILE = 128  # corners, or equations, of a program
SMALLEST = tl.constexpr(1e-12)


@triton.jit
def load3(pointer, mask):
    x = tl.load(pointer, mask=mask, other=0.0)
    y = tl.load(pointer + 1, mask=mask, other=0.0)
    z = tl.load(pointer + 2, mask=mask, other=0.0)
    return x, y, z


@triton.jit
def store3(pointer, x, y, z, mask):
    tl.store(pointer, x, mask=mask)
    tl.store(pointer + 1, y, mask=mask)
    tl.store(pointer + 2, z, mask=mask)


@triton.jit
def solve3(aa, ab, ac, bb, bc, cc, ra, rb, rc):
    """The `x` with `A x = -r`, by the upper half of A and r, with Cholesky's factors of A."""
    la = tl.sqrt(tl.maximum(aa, SMALLEST))
    lab, lac = ab / la, ac / la
    lb = tl.sqrt(tl.maximum(bb - lab * lab, SMALLEST))
    lbc = (bc - lab * lac) / lb
    lc = tl.sqrt(tl.maximum(cc - lac * lac - lbc * lbc, SMALLEST))
    xa = ra / la
    xb = (rb - lab * xa) / lb
    xc = (rc - lac * xa - lbc * xb) / lc / lc
    xb = (xb - lbc * xc) / lb
    xa = (xa - lab * xb - lac * xc) / la
    return -xa, -xb, -xc


@triton.jit(do_not_specialize=["n"])
def _solve3(systems, lam, steps, n, TILE: tl.constexpr):
    """Equations (n, 9), as `_looking.equations` has them, and lam (n) to steps (n, 3)."""
    place = tl.program_id(0) * TILE + tl.arange(0, TILE)
    there = place < n
    system, more = systems + place * 9, tl.load(lam + place, mask=there, other=1.0)
    aa, ab, ac = load3(system, there)
    bb, bc, cc = load3(system + 3, there)
    ra, rb, rc = load3(system + 6, there)
    x, y, z = solve3(aa + more, ab, ac, bb + more, bc, cc + more, ra, rb, rc)
    store3(steps + place * 3, x, y, z, there)


@triton.jit
def cell_of(p, SIDE: tl.constexpr, REACH: tl.constexpr):
    place = (p + REACH) * ((SIDE - 1) / (2 * REACH))
    return tl.minimum(tl.maximum(place, 0.0), SIDE - 2.0).to(tl.int32)


@triton.jit
def match(
    rx, ry, rz, ox, oy, oz, cloud, ids, there,
    TURNED: tl.constexpr, SIDE: tl.constexpr, REACH: tl.constexpr, POINTS: tl.constexpr,
):  # fmt: skip
    """Of moved points r with normals o the matches in the cloud, and the normals there."""
    cell = (cell_of(rx, SIDE, REACH) * SIDE + cell_of(ry, SIDE, REACH)) * SIDE + cell_of(
        rz, SIDE, REACH
    )
    qx, qy, qz, mx, my, mz = rx, ry, rz, ox, oy, oz
    least = tl.full((POINTS,), float("inf"), tl.float32)
    for corner in tl.static_range(8):
        step = (corner // 4 * SIDE + corner // 2 % 2) * SIDE + corner % 2
        other = cloud + tl.load(ids + cell + step) * 6
        ux, uy, uz = load3(other, there)
        vx, vy, vz = load3(other + 3, there)
        square = (rx - ux) * (rx - ux) + (ry - uy) * (ry - uy) + (rz - uz) * (rz - uz)
        cost = square - TURNED * tl.abs(ox * vx + oy * vy + oz * vz)
        nearer = cost < least
        least = tl.minimum(cost, least)
        qx, qy, qz = tl.where(nearer, ux, qx), tl.where(nearer, uy, qy), tl.where(nearer, uz, qz)
        mx, my, mz = tl.where(nearer, vx, mx), tl.where(nearer, vy, my), tl.where(nearer, vz, mz)
    return qx, qy, qz, mx, my, mz


@triton.jit
def to_disc(wx, wy, wz, mx, my, mz, apart, radius, TINY: tl.constexpr):
    """The direction and length of the way from the nearest point of a disc."""
    bx, by, bz = wx - apart * mx, wy - apart * my, wz - apart * mz
    length = tl.sqrt(bx * bx + by * by + bz * bz)
    outside = tl.maximum(1 - radius / tl.maximum(length, 1e-12), 0.0)
    wx, wy, wz = apart * mx + outside * bx, apart * my + outside * by, apart * mz + outside * bz
    far = tl.sqrt(wx * wx + wy * wy + wz * wz)
    inside, part = far < TINY, 1 / tl.maximum(far, TINY)
    wx, wy = tl.where(inside, mx, wx * part), tl.where(inside, my, wy * part)
    return wx, wy, tl.where(inside, mz, wz * part), tl.where(inside, apart, far)


@triton.jit
def counts(out, one, apart, far, facing, SCALES: tl.constexpr):
    """How many matches are near, and the sums of distances and of how much normals agree."""
    for s in tl.static_range(len(SCALES)):
        square = SCALES[s] * SCALES[s]
        tl.store(out + s, tl.sum(one * apart * apart / (apart * apart + square)))
        tl.store(out + len(SCALES) + s, tl.sum(one * far / (far + square)))
    out += 2 * len(SCALES)
    tl.store(out, tl.sum(one * tl.abs(apart)))
    tl.store(out + 1, tl.sum(one * tl.sqrt(far)))
    tl.store(out + 2, tl.sum(one * tl.abs(facing)))


@triton.jit(do_not_specialize=["m", "c", "tiles"])
def _nearest(points, corners, ids, m, c, tiles, TILE: tl.constexpr):
    """points (i, m, 3) and corners (c, 3) to the nearest points, ids (i, c)."""
    instance = (tl.program_id(0) // tiles).to(tl.int64)
    column = tl.program_id(0) % tiles * TILE + tl.arange(0, TILE)
    there = column < c
    x, y, z = load3(corners + column * 3, there)
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


def launch(
    kernel: Any,
    x: Tensor,
    more: Tensor,
    prepared: "Batch",
    constants: dict[str, Any],
    ways: int = 1,
) -> Tensor:
    """What every x (i, n, d) sees of the cloud, (i, n, SEEN), a program for each, which moves
    points in so many ways. `more`: what the kernel is told of each x besides."""
    (i, n, _), (k, m) = x.shape, (prepared["some"].shape[1], prepared["cloud"].shape[1])
    side = round(prepared["ids"].shape[1] ** (1 / 3))
    out = x.new_empty(i, n, constants["SEEN"])
    radius = prepared.get("radius", x)  # not read where there are no discs
    if i * n:
        kernel[(i * n,)](
            x.contiguous(), more.contiguous(), prepared["some"].contiguous(),
            prepared["cloud"].contiguous(), prepared["ids"].contiguous(), radius, out, n, m, k,
            **constants, SIDE=side, REACH=grid.REACH, POINTS=triton.next_power_of_2(ways * k),
            num_warps=4,
        )  # fmt: skip
    return out


def nearest_ids(points: Tensor, corners: Tensor) -> Tensor:
    """The points (i, m, 3) that are nearest to corners (c, 3), (i, c)."""
    (i, m, _), c = points.shape, len(corners)
    ids = torch.empty(i, c, dtype=torch.int32, device=points.device)
    tiles = triton.cdiv(c, TILE)
    _nearest[(i * tiles,)](points, corners, ids, m, c, tiles, TILE=TILE, num_warps=4)
    return ids


def solved(system: Tensor, lam: Tensor) -> Tensor:
    """As `_looking.solved`, of three equations."""
    shape = torch.broadcast_shapes(system.shape[:-1], lam.shape)
    system, lam = system.expand(*shape, 9).contiguous(), lam.expand(shape).contiguous()
    steps, n = system.new_empty(*shape, 3), lam.numel()
    if n:
        _solve3[(triton.cdiv(n, TILE),)](system, lam, steps, n, TILE=TILE, num_warps=4)
    return steps
