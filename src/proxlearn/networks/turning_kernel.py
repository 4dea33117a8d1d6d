"""What lines see of a cloud, as a GPU kernel; `turning.looked` is the reference."""
# A kernel's arguments are not those of the function that it is written as.
# pyright: reportCallIssue=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false

from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from proxlearn.networks._looking_kernel import counts, launch, load3, match, to_disc
from proxlearn.spaces.base import across

if TYPE_CHECKING:
    from proxlearn.common.batch import Batch


@triton.jit
def _slopes(height, real, imaginary, up, a, b, whole, part, e, f, g, h):
    """How far turned points go along ways (up, a, b) in the frame, for two turns of the line and
    two shifts; `whole` and `part` are 1 - e^(-i phi), and (e f; g h) takes turns to the basis."""
    c, d = height * a - up * real, height * b - up * imaginary
    c, d = whole * c - part * d, whole * d + part * c
    return e * c + g * d, f * c + h * d, whole * a - part * b, whole * b + part * a


@triton.jit
def _equations(out, w, a, b, c, d, e):
    """Sums of fourteen products."""
    tl.store(out, tl.sum(w * a * a))
    tl.store(out + 1, tl.sum(w * a * b))
    tl.store(out + 2, tl.sum(w * a * c))
    tl.store(out + 3, tl.sum(w * a * d))
    tl.store(out + 4, tl.sum(w * b * b))
    tl.store(out + 5, tl.sum(w * b * c))
    tl.store(out + 6, tl.sum(w * b * d))
    tl.store(out + 7, tl.sum(w * c * c))
    tl.store(out + 8, tl.sum(w * c * d))
    tl.store(out + 9, tl.sum(w * d * d))
    tl.store(out + 10, tl.sum(w * a * e))
    tl.store(out + 11, tl.sum(w * b * e))
    tl.store(out + 12, tl.sum(w * c * e))
    tl.store(out + 13, tl.sum(w * d * e))


@triton.jit
def _coarse(out, w, height, real, imaginary, up, a, b, whole, part, e, f, g, h):
    """Equations of points and points: along every axis of the frame, where the error is `up`, `a`
    or `b`. Shifts do not go along the first."""
    a0, b0 = -whole * real + part * imaginary, -whole * imaginary - part * real
    a1, b1 = whole * height, part * height
    a0, b0 = e * a0 + g * b0, f * a0 + h * b0
    a2, b2 = -e * b1 + g * a1, -f * b1 + h * a1
    a1, b1 = e * a1 + g * b1, f * a1 + h * b1
    tl.store(out, tl.sum(w * (a0 * a0 + a1 * a1 + a2 * a2)))
    tl.store(out + 1, tl.sum(w * (a0 * b0 + a1 * b1 + a2 * b2)))
    tl.store(out + 2, tl.sum(w * (a1 * whole - a2 * part)))
    tl.store(out + 3, tl.sum(w * (a1 * part + a2 * whole)))
    tl.store(out + 4, tl.sum(w * (b0 * b0 + b1 * b1 + b2 * b2)))
    tl.store(out + 5, tl.sum(w * (b1 * whole - b2 * part)))
    tl.store(out + 6, tl.sum(w * (b1 * part + b2 * whole)))
    tl.store(out + 7, tl.sum(w * (whole * whole + part * part)))
    tl.store(out + 8, 0.0)
    tl.store(out + 9, tl.sum(w * (whole * whole + part * part)))
    tl.store(out + 10, tl.sum(w * (a0 * up + a1 * a + a2 * b)))
    tl.store(out + 11, tl.sum(w * (b0 * up + b1 * a + b2 * b)))
    tl.store(out + 12, tl.sum(w * (whole * a - part * b)))
    tl.store(out + 13, tl.sum(w * (part * a + whole * b)))


@triton.jit(do_not_specialize=["n", "m", "k"])
def _look(
    x, given, some, cloud, ids, radius, out, n, m, k,
    TO_PLANES: tl.constexpr, TO_POINTS: tl.constexpr, TO_DISCS: tl.constexpr,
    SCALES: tl.constexpr, TURNED: tl.constexpr, TINY: tl.constexpr, SEEN: tl.constexpr,
    SIDE: tl.constexpr, REACH: tl.constexpr, POINTS: tl.constexpr,
):  # fmt: skip
    """A program takes one line of x (i, n, 6) to what it sees, out (i, n, SEEN)."""
    line = tl.program_id(0).to(tl.int64)
    instance = line // n
    ux, uy, uz = load3(x + line * 6, True)
    cx, cy, cz = load3(x + line * 6 + 3, True)
    given += line * 12
    fx, fy, fz = load3(given, True)
    sx, sy, sz = load3(given + 3, True)
    e, f, g = load3(given + 6, True)
    h, cos, sin = load3(given + 9, True)
    column = tl.arange(0, POINTS)
    there = column < 2 * k
    one = tl.where(there, 1.0, 0.0)
    both = tl.where(column < k, sin, -sin)  # the first half is turned one way, the rest the other
    at = some + (instance * k + column % k) * 6
    px, py, pz = load3(at, there)
    ox, oy, oz = load3(at + 3, there)
    px, py, pz = px - cx, py - cy, pz - cz
    height = px * ux + py * uy + pz * uz
    a, b = px * fx + py * fy + pz * fz, px * sx + py * sy + pz * sz
    real, imaginary = cos * a - both * b, cos * b + both * a
    rx = height * ux + real * fx + imaginary * sx + cx
    ry = height * uy + real * fy + imaginary * sy + cy
    rz = height * uz + real * fz + imaginary * sz + cz
    up = ox * ux + oy * uy + oz * uz
    a, b = ox * fx + oy * fy + oz * fz, ox * sx + oy * sy + oz * sz
    a, b = cos * a - both * b, cos * b + both * a
    ox, oy, oz = up * ux + a * fx + b * sx, up * uy + a * fy + b * sy, up * uz + a * fz + b * sz
    qx, qy, qz, mx, my, mz = match(
        rx, ry, rz, ox, oy, oz, cloud + instance * m * 6, ids + instance * (SIDE * SIDE * SIDE),
        there, TURNED, SIDE, REACH, POINTS,
    )  # fmt: skip
    wx, wy, wz = rx - qx, ry - qy, rz - qz
    apart, far = wx * mx + wy * my + wz * mz, wx * wx + wy * wy + wz * wz
    facing = ox * mx + oy * my + oz * mz
    whole = 1 - cos
    up = mx * ux + my * uy + mz * uz
    a, b = mx * fx + my * fy + mz * fz, mx * sx + my * sy + mz * sz
    p, q, r, s = _slopes(height, real, imaginary, up, a, b, whole, both, e, f, g, h)
    result = out + line * SEEN
    for j in tl.static_range(len(TO_PLANES)):
        w = one * facing * facing * tl.rsqrt(apart * apart + TO_PLANES[j] * TO_PLANES[j])
        _equations(result + 14 * j, w, p, q, r, s, apart)
    result += 14 * len(TO_PLANES)
    up = wx * ux + wy * uy + wz * uz
    a, b = wx * fx + wy * fy + wz * fz, wx * sx + wy * sy + wz * sz
    for j in tl.static_range(len(TO_POINTS)):
        w = one * tl.rsqrt(far + TO_POINTS[j] * TO_POINTS[j])
        _coarse(result + 14 * j, w, height, real, imaginary, up, a, b, whole, both, e, f, g, h)
    result += 14 * len(TO_POINTS)
    if len(TO_DISCS) > 0:
        wx, wy, wz, off = to_disc(wx, wy, wz, mx, my, mz, apart, tl.load(radius + instance), TINY)
        up = wx * ux + wy * uy + wz * uz
        a, b = wx * fx + wy * fy + wz * fz, wx * sx + wy * sy + wz * sz
        p, q, r, s = _slopes(height, real, imaginary, up, a, b, whole, both, e, f, g, h)
        for j in tl.static_range(len(TO_DISCS)):
            w = one * tl.rsqrt(off * off + TO_DISCS[j] * TO_DISCS[j])
            _equations(result + 14 * j, w, p, q, r, s, off)
        result += 14 * len(TO_DISCS)
    counts(result, one, apart, far, facing, SCALES)


def looked(x: Tensor, basis: Tensor, prepared: "Batch", constants: dict[str, Any]) -> Tensor:
    """What lines x (i, n, 6) see, (i, n, SEEN); basis (i, n, 6, 4)."""
    sideways = across(x[..., :3])
    turns = sideways.mT @ basis[..., :3, :2]
    angle = prepared["angle"][:, None, None].expand(-1, x.shape[1], -1)
    given = (sideways.mT.flatten(2), turns.flatten(2), angle.cos(), angle.sin())
    return launch(_look, x, torch.cat(given, -1), prepared, constants, ways=2)
