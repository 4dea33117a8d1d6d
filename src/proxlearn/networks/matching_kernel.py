"""What planes see of a cloud, as a GPU kernel; `matching.looked` is the reference."""
# A kernel's arguments are not those of the function that it is written as.
# pyright: reportCallIssue=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl
from torch import Tensor

from proxlearn.networks._looking_kernel import counts, launch, load3, match, to_disc

if TYPE_CHECKING:
    from proxlearn.common.batch import Batch


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
    x, basis, some, cloud, ids, radius, out, n, m, k,
    TO_PLANES: tl.constexpr, TO_POINTS: tl.constexpr, TO_DISCS: tl.constexpr,
    SCALES: tl.constexpr, TURNED: tl.constexpr, TINY: tl.constexpr, SEEN: tl.constexpr,
    SIDE: tl.constexpr, REACH: tl.constexpr, POINTS: tl.constexpr,
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
    px, py, pz = load3(at, there)
    ox, oy, oz = load3(at + 3, there)
    height = px * nx + py * ny + pz * nz - offset
    rx, ry, rz = px - 2 * height * nx, py - 2 * height * ny, pz - 2 * height * nz
    turn = 2 * (ox * nx + oy * ny + oz * nz)
    ox, oy, oz = ox - turn * nx, oy - turn * ny, oz - turn * nz
    qx, qy, qz, mx, my, mz = match(
        rx, ry, rz, ox, oy, oz, cloud + instance * m * 6, ids + instance * (SIDE * SIDE * SIDE),
        there, TURNED, SIDE, REACH, POINTS,
    )  # fmt: skip
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
    if len(TO_DISCS) > 0:
        wx, wy, wz, off = to_disc(wx, wy, wz, mx, my, mz, apart, tl.load(radius + instance), TINY)
        across = wx * nx + wy * ny + wz * nz
        a = -2 * (along * across + height * (wx * fx + wy * fy + wz * fz))
        b = -2 * (sideways * across + height * (wx * sx + wy * sy + wz * sz))
        for s in tl.static_range(len(TO_DISCS)):
            w = one * tl.rsqrt(off * off + TO_DISCS[s] * TO_DISCS[s])
            _equations(result + 9 * s, w, a, b, 2 * across, off, 0.0, 0.0)
        result += 9 * len(TO_DISCS)
    counts(result, one, apart, far, facing, SCALES)


def looked(x: Tensor, basis: Tensor, prepared: "Batch", constants: dict[str, Any]) -> Tensor:
    """What planes x (i, n, 4) see, (i, n, SEEN); basis (i, n, 4, 3)."""
    return launch(_look, x, basis, prepared, constants)
