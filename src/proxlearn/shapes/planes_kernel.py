"""Steps of planes as GPU kernels: a whole one is one launch; `refine.py` has the reference."""
# A kernel's arguments are not those of the function that it is written as.
# pyright: reportCallIssue=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import triton
import triton.language as tl
from torch import Tensor

from proxlearn.networks._looking_kernel import SMALLEST, load3, solve3, store3

if TYPE_CHECKING:
    from proxlearn.shapes.target import Held, Near

BLOCK = 256  # points that a program moves at once


@triton.jit
def _store_moved(points, moved, nx, ny, nz, d, m, BLOCK: tl.constexpr):
    """The points (m, 3), reflected in one plane."""
    first = 0
    while first < m:
        place = first + tl.arange(0, BLOCK)
        px, py, pz = load3(points + place * 3, place < m)
        twice = 2 * (px * nx + py * ny + pz * nz - d)
        px, py, pz = px - twice * nx, py - twice * ny, pz - twice * nz
        store3(moved + place * 3, px, py, pz, place < m)
        first += BLOCK


@triton.jit(do_not_specialize=["m"])
def _reflect(planes, points, moved, m, BLOCK: tl.constexpr):
    """The points, reflected in each plane (k, 4), a program for each: moved (k, m, 3)."""
    row = tl.program_id(0).to(tl.int64)
    plane = planes + row * 4
    nx, ny, nz, d = tl.load(plane), tl.load(plane + 1), tl.load(plane + 2), tl.load(plane + 3)
    _store_moved(points, moved + row * m * 3, nx, ny, nz, d, m, BLOCK)


@triton.jit(do_not_specialize=["m", "counted", "first", "scale"])
def _step(
    planes, points, moved, distances, directions, normals, best, m, counted, first, scale,
    TOUCHING: tl.constexpr, DAMPED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Measures planes by how far their points are off, keeps the best of each, `best` (k, 7), and
    with a scale takes a step and moves the points again; a program for each plane."""
    row = tl.program_id(0).to(tl.int64)
    planes, best, moved = planes + row * 4, best + row * 7, moved + row * m * 3
    distances += row * m
    directions += row * m * 3
    normals += row * m * 3
    nx, ny, nz, d = tl.load(planes), tl.load(planes + 1), tl.load(planes + 2), tl.load(planes + 3)
    # Two ways across the normal: the reflection that takes it to the first axis takes others there.
    hx = nx + tl.where(nx < 0, -1.0, 1.0)
    half = 2 / (hx * hx + ny * ny + nz * nz)
    ax, ay, az = -half * ny * hx, 1 - half * ny * ny, -half * ny * nz
    bx, by, bz = -half * nz * hx, -half * nz * ny, 1 - half * nz * nz
    none = tl.zeros((BLOCK,), tl.float32)
    some, most, every, total = none, none, none, none
    aa, ab, ac, bb, bc, cc, ra, rb, rc = none, none, none, none, none, none, none, none, none
    begin = 0
    while begin < m:
        place = begin + tl.arange(0, BLOCK)
        there = place < m
        far = tl.load(distances + place, mask=there, other=0.0)
        some += tl.where(place < counted, far, 0.0)
        most, every = tl.maximum(most, far), every + far
        px, py, pz = load3(points + place * 3, there)
        vx, vy, vz = load3(directions + place * 3, there)
        ox, oy, oz = load3(normals + place * 3, there)
        touching = far <= TOUCHING
        wx, wy = tl.where(touching, ox, vx), tl.where(touching, oy, vy)
        wz = tl.where(touching, oz, vz)
        signed = far * (vx * wx + vy * wy + vz * wz)
        weight = tl.where(there, 1 / tl.sqrt(far * far + scale * scale + SMALLEST * SMALLEST), 0.0)
        up, height = wx * nx + wy * ny + wz * nz, px * nx + py * ny + pz * nz - d
        one = (px * ax + py * ay + pz * az) * up + height * (wx * ax + wy * ay + wz * az)
        two = (px * bx + py * by + pz * bz) * up + height * (wx * bx + wy * by + wz * bz)
        one, two, three = -2 * one, -2 * two, 2 * up
        total += weight
        aa += weight * one * one
        ab += weight * one * two
        ac += weight * one * three
        bb += weight * two * two
        bc += weight * two * three
        cc += weight * three * three
        ra += weight * one * signed
        rb += weight * two * signed
        rc += weight * three * signed
        begin += BLOCK
    mean, farthest, mean_of_all = tl.sum(some) / counted, tl.max(most), tl.sum(every) / m
    better = (first != 0) | (mean_of_all < tl.load(best + 6))
    store3(best, nx, ny, nz, better)
    tl.store(best + 3, d, mask=better)
    store3(best + 4, mean, farthest, mean_of_all, better)
    if scale > 0:
        weights = tl.sum(total).to(tl.float64)
        one, two, three = solve3(
            tl.sum(aa) / weights + DAMPED, tl.sum(ab) / weights, tl.sum(ac) / weights,
            tl.sum(bb) / weights + DAMPED, tl.sum(bc) / weights, tl.sum(cc) / weights + DAMPED,
            tl.sum(ra) / weights, tl.sum(rb) / weights, tl.sum(rc) / weights,
        )  # fmt: skip
        one, two, three = one.to(tl.float32), two.to(tl.float32), three.to(tl.float32)
        nx, ny, nz = nx + one * ax + two * bx, ny + one * ay + two * by, nz + one * az + two * bz
        d += three
        # The same plane from its other side, where it would be at a negative distance.
        length = tl.where(d < 0, -1.0, 1.0) * tl.sqrt(nx * nx + ny * ny + nz * nz)
        nx, ny, nz, d = nx / length, ny / length, nz / length, tl.abs(d)
        store3(planes, nx, ny, nz, None)
        tl.store(planes + 3, d)
        _store_moved(points, moved, nx, ny, nz, d, m, BLOCK)


def descended(
    planes: Tensor,
    points: Tensor,
    held: "Held",
    near: "Callable[[Tensor, Held], Near]",
    scales: Sequence[float],
    counted: int,
    touching: float,
    damped: float,
) -> Tensor:
    """As `refine._descended`, of planes."""
    (k, _), m, points = planes.shape, len(points), points.contiguous()
    planes = planes.contiguous().clone()
    moved, best = points.new_empty(k, m, 3), points.new_empty(k, 7)
    how = {"BLOCK": BLOCK, "num_warps": 4}
    _reflect[(k,)](planes, points, moved, m, **how)
    for number, scale in enumerate((*scales, 0.0)):
        found = near(moved.flatten(0, 1), held)
        _step[(k,)](
            planes, points, moved, *found, best, m, counted, int(number == 0), scale,
            TOUCHING=touching, DAMPED=damped, **how,
        )  # fmt: skip
    return best
