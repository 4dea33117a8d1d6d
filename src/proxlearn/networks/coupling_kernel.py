"""The operator's network in a few GPU kernels, forward and backward.

`CouplingNetwork` is the reference; this computes the same for sizes that fit on chip. Forward, one
kernel takes a tile of points through all blocks. Backward, one takes the tile's gradient back
through all of them, layer by layer, and another computes the gradients of all weights as products
over all points.

The way back reads and writes matrices with a row for each point in each block. Their columns, with
h = `shared`, w = `width` and l = w, or 2w where gated:

    kept       u2 (w) | a (w) | u4 (l) | u5 (l)                           before activations
    gradients  heads (2d, padded) | u1 (h) | u2 (w) | a (w) | u4 (l) | u5 (l)
    hidden     x (d, padded) | z1 (h) | z2 (w) | z3 (w) | z4 (w) | z5 (w)   after activations

They are stored as bfloat16: gradients only steer the optimizer.
"""
# A kernel's arguments are not those of the function that it is written as.
# pyright: reportCallIssue=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false, reportAssignmentType=false

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from proxlearn.networks.coupling import CouplingNetwork

TILE = 64  # points of a program
CHUNK = 64  # columns of a layer that are on chip at once
PROGRAMS = 264  # of the last kernel: what a large GPU runs at once
REACH = tl.constexpr(2.0)  # as coupling.REACH; a test compares


@triton.jit
def _activate(u, SILU: tl.constexpr):
    return u * tl.sigmoid(u) if SILU else tl.maximum(u, 0.0)


@triton.jit
def _slope(u, SILU: tl.constexpr):
    s = tl.sigmoid(u)
    return s * (1 + u * (1 - s)) if SILU else tl.where(u > 0, 1.0, 0.0)


@triton.jit
def _product(a, b, PRECISION: tl.constexpr):
    if PRECISION == "bf16":
        result = tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16))
    else:
        result = tl.dot(a, b, input_precision="tf32" if PRECISION == "tf32" else "ieee")
    return result


@triton.jit
def _place(n, tiles, TILE: tl.constexpr):
    """A program's instance, which of its points count, and their rows among all points."""
    instance = tl.program_id(0) // tiles
    row = tl.program_id(0) % tiles * TILE + tl.arange(0, TILE)
    return instance, row < n, instance.to(tl.int64) * n + row


@triton.jit
def _first_layer(x, points, inside, w1, b1, k, DIM: tl.constexpr, CHUNK: tl.constexpr):
    """A chunk of the first layer, in full precision: it is what tells near points apart."""
    columns = k + tl.arange(0, CHUNK)
    u = tl.load(b1 + columns)[None, :]
    for j in tl.static_range(DIM):
        at = tl.load(x + points * DIM + j, mask=inside, other=0.0)
        at = tl.minimum(tl.maximum(at, -REACH), REACH)
        u += at[:, None] * tl.load(w1 + columns * DIM + j)[None, :]
    return u


@triton.jit
def _times(z, weight, first, WIDTH: tl.constexpr, PRECISION: tl.constexpr):
    """z (TILE, WIDTH) times WIDTH rows, from `first`, of a weight (out, in) transposed."""
    wide = tl.arange(0, WIDTH)
    return _product(z, tl.load(weight + (first + wide)[None, :] * WIDTH + wide[:, None]), PRECISION)


@triton.jit
def _with_share(h, share, WIDTH: tl.constexpr, GATED: tl.constexpr):
    """What goes into a block's first activation: tau's share scales (where gated) and shifts."""
    wide = tl.arange(0, WIDTH)
    if GATED:
        h *= 1 + tl.load(share + wide)[None, :]
        return h + tl.load(share + WIDTH + wide)[None, :]
    return h + tl.load(share + wide)[None, :]


@triton.jit
def _layer(
    z, weight, kept,
    WIDTH: tl.constexpr, GATED: tl.constexpr, SILU: tl.constexpr, PRECISION: tl.constexpr,
    KEEP: tl.constexpr,
):  # fmt: skip
    """`activation(a) * b` of two linear maps where gated, else `activation(a)`. The bias comes
    after the weight."""
    wide = tl.arange(0, WIDTH)
    bias = weight + (2 * WIDTH if GATED else WIDTH) * WIDTH
    u = _times(z, weight, 0, WIDTH, PRECISION) + tl.load(bias + wide)[None, :]
    if KEEP:
        tl.store(kept + wide[None, :], u)
    u = _activate(u, SILU)
    if GATED:
        v = _times(z, weight, WIDTH, WIDTH, PRECISION) + tl.load(bias + WIDTH + wide)[None, :]
        if KEEP:
            tl.store(kept + WIDTH + wide[None, :], v)
        u *= v
    return u


@triton.jit(do_not_specialize=["n", "tiles", "rows"])
def _forward(
    xs, shares, w1, b1, w2, b2, blocks, kept, scales,
    n, tiles, stride, rows,
    BLOCKS: tl.constexpr, SIZE: tl.constexpr,
    DIM: tl.constexpr, PADDED: tl.constexpr, WIDTH: tl.constexpr, SHARED: tl.constexpr,
    GATED: tl.constexpr, SILU: tl.constexpr, PRECISION: tl.constexpr, KEEP: tl.constexpr,
    TILE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """xs (blocks + 1, i, n, d): from the first, all others. `blocks` holds the weights of each
    block one after the other: wx, w4, b4, w5, b5, wh, bh, in all SIZE numbers."""
    LAYER: tl.constexpr = 2 * WIDTH if GATED else WIDTH
    instance, inside, points = _place(n, tiles, TILE)
    own = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    wide, coordinates = tl.arange(0, WIDTH), tl.arange(0, PADDED)
    all_points = tl.num_programs(0).to(tl.int64) // tiles * n * DIM
    kept += own[:, None] * (2 * WIDTH + 2 * LAYER)
    share, x, wx = shares + instance * stride, xs, blocks
    there = coordinates < DIM
    place = points[:, None] * DIM + coordinates[None, :]
    mask = inside[:, None] & there[None, :]

    for _ in range(BLOCKS):
        w4 = wx + WIDTH * WIDTH
        w5 = w4 + LAYER * WIDTH + LAYER
        wh = w5 + LAYER * WIDTH + LAYER
        z = tl.zeros((TILE, WIDTH), tl.float32)
        for k in range(0, SHARED, CHUNK):
            z1 = _activate(_first_layer(x, points, inside, w1, b1, k, DIM, CHUNK), SILU)
            chunk = w2 + k + wide[None, :] * SHARED + tl.arange(0, CHUNK)[:, None]
            z += _product(z1, tl.load(chunk), PRECISION)
        z += tl.load(b2 + wide)[None, :]
        if KEEP:
            tl.store(kept + wide[None, :], z)
        z = _times(_activate(z, SILU), wx, 0, WIDTH, PRECISION)
        if KEEP:
            tl.store(kept + WIDTH + wide[None, :], z)
        z = _activate(_with_share(z, share, WIDTH, GATED), SILU)
        z = _layer(z, w4, kept + 2 * WIDTH, WIDTH, GATED, SILU, PRECISION, KEEP)
        z = _layer(z, w5, kept + 2 * WIDTH + LAYER, WIDTH, GATED, SILU, PRECISION, KEEP)

        head, bh = wh + coordinates[None, :] * WIDTH + wide[:, None], wh + 2 * DIM * WIDTH
        scale = _product(z, tl.load(head, mask=there[None, :], other=0.0), PRECISION)
        scale += tl.load(bh + coordinates, mask=there, other=0.0)[None, :]
        shift = _product(z, tl.load(head + DIM * WIDTH, mask=there[None, :], other=0.0), PRECISION)
        shift += tl.load(bh + DIM + coordinates, mask=there, other=0.0)[None, :]
        if KEEP:
            tl.store(scales + place, scale, mask=mask)
        scale = tl.exp(tl.minimum(tl.maximum(scale, -2.0), 2.0))
        moved = tl.load(x + place, mask=mask, other=0.0) * scale + shift
        x += all_points
        tl.store(x + place, moved, mask=mask)
        tl.debug_barrier()  # the next block reads what others of this program wrote
        wx += SIZE
        share += LAYER
        if KEEP:
            scales += all_points
            kept += rows.to(tl.int64) * (2 * WIDTH + 2 * LAYER)


@triton.jit
def _into_layer(
    dz, u, v, gradients, hidden,
    WIDTH: tl.constexpr, GATED: tl.constexpr, SILU: tl.constexpr,
):  # fmt: skip
    """Back through a layer's activation (and gate): its result and gradients written down."""
    wide = tl.arange(0, WIDTH)[None, :]
    z, du = _activate(u, SILU), dz * _slope(u, SILU)
    if GATED:
        tl.store(gradients + WIDTH + wide, dz * z)
        z, du = z * v, du * v
    tl.store(gradients + wide, du)
    tl.store(hidden + wide, z)


@triton.jit
def _from_heads(
    x, wh, scales, kept, dy, dx, hidden, heads, gradients, inside, points,
    DIM: tl.constexpr, WIDTH: tl.constexpr, GATED: tl.constexpr, SILU: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """From the gradient after a block to that before its last layer; dx is begun."""
    wide = tl.arange(0, WIDTH)
    u = tl.load(kept + wide[None, :]).to(tl.float32)
    v = tl.load(kept + WIDTH + wide[None, :]).to(tl.float32) if GATED else u
    dz = tl.zeros((TILE, WIDTH), tl.float32)
    for j in tl.static_range(DIM):
        place = points * DIM + j
        scale = tl.load(scales + place, mask=inside, other=0.0)
        dshift = tl.load(dy + place, mask=inside, other=0.0)
        at = tl.load(x + place, mask=inside, other=0.0)
        direct = dshift * tl.exp(tl.minimum(tl.maximum(scale, -2.0), 2.0))
        dscale = tl.where((scale >= -2.0) & (scale <= 2.0), direct * at, 0.0)
        tl.store(dx + place, direct, mask=inside)
        tl.store(heads + j, dscale[:, None])
        tl.store(heads + DIM + j, dshift[:, None])
        dz += dscale[:, None] * tl.load(wh + j * WIDTH + wide)[None, :].to(tl.float32)
        dz += dshift[:, None] * tl.load(wh + (DIM + j) * WIDTH + wide)[None, :].to(tl.float32)
    _into_layer(dz, u, v, gradients, hidden, WIDTH, GATED, SILU)


@triton.jit
def _between(
    weight, share, kept, above, gradients, hidden, sums,
    SIZE: tl.constexpr, WIDTH: tl.constexpr, GATED: tl.constexpr, SHARES: tl.constexpr,
    SILU: tl.constexpr, PRECISION: tl.constexpr, TILE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """From the gradient before one layer, SIZE columns `above`, to that before the layer below it.
    SHARES says whether tau's share goes in there, and how: 0 not at all, 1 as a shift, 2 as a scale
    and a shift."""
    wide, chunk = tl.arange(0, WIDTH), tl.arange(0, CHUNK)
    kept += wide[None, :]
    u = tl.load(kept).to(tl.float32)
    v = tl.load(kept + WIDTH).to(tl.float32) if GATED else u
    dz = tl.zeros((TILE, WIDTH), tl.float32)
    for k in range(0, SIZE, CHUNK):
        g = tl.load(above + k + chunk[None, :])
        dz += _product(g, tl.load(weight + (k + chunk)[:, None] * WIDTH + wide[None, :]), PRECISION)
    if SHARES == 0:
        _into_layer(dz, u, v, gradients, hidden, WIDTH, GATED, SILU)
    else:
        before = _with_share(u, share, WIDTH, SHARES == 2)
        tl.store(hidden + wide[None, :], _activate(before, SILU))
        dz *= _slope(before, SILU)
        tl.store(sums + (SHARES - 1) * WIDTH + wide, tl.sum(dz, 0))
        if SHARES == 2:
            tl.store(sums + wide, tl.sum(dz * u, 0))
            dz *= 1 + tl.load(share + wide)[None, :]
        tl.store(gradients + wide[None, :], dz)


@triton.jit
def _into_first(
    x, w1, b1, w2, dx, hidden, gradients, inside, points,
    DIM: tl.constexpr, PADDED: tl.constexpr, WIDTH: tl.constexpr, SHARED: tl.constexpr,
    SILU: tl.constexpr, PRECISION: tl.constexpr, TILE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """From the gradient before the second layer to that of x, which is added to dx."""
    wide, coordinates = tl.arange(0, WIDTH), tl.arange(0, PADDED)
    dz = tl.load(gradients + SHARED + wide[None, :])
    total = tl.zeros((TILE, PADDED), tl.float32)
    for k in range(0, SHARED, CHUNK):
        columns = k + tl.arange(0, CHUNK)
        du = _product(dz, tl.load(w2 + wide[:, None] * SHARED + columns[None, :]), PRECISION)
        u = _first_layer(x, points, inside, w1, b1, k, DIM, CHUNK)
        tl.store(hidden + PADDED + columns[None, :], _activate(u, SILU))
        du *= _slope(u, SILU)
        tl.store(gradients + columns[None, :], du)
        first = w1 + columns[:, None] * DIM + coordinates[None, :]
        first = tl.load(first, mask=(coordinates < DIM)[None, :], other=0.0)
        total += _product(du, first, PRECISION)
    place = points[:, None] * DIM + coordinates[None, :]
    mask = inside[:, None] & (coordinates < DIM)[None, :]
    at = tl.load(x + place, mask=mask, other=0.0)
    seen = tl.minimum(tl.maximum(at, -REACH), REACH)
    tl.store(hidden + coordinates[None, :], seen)
    total = tl.where((at >= -REACH) & (at <= REACH), total, 0.0)
    tl.store(dx + place, tl.load(dx + place, mask=mask, other=0.0) + total, mask=mask)


@triton.jit(do_not_specialize=["n", "tiles", "rows"])
def _backward(
    xs, shares, w1, b1, w2, blocks, kept, scales, dxs, hidden, gradients, sums,
    n, tiles, stride, rows,
    BLOCKS: tl.constexpr, SIZE: tl.constexpr, HEADS: tl.constexpr,
    DIM: tl.constexpr, PADDED: tl.constexpr, WIDTH: tl.constexpr, SHARED: tl.constexpr,
    GATED: tl.constexpr, SILU: tl.constexpr, PRECISION: tl.constexpr,
    TILE: tl.constexpr, CHUNK: tl.constexpr, NARROW: tl.constexpr,
):  # fmt: skip
    """dxs (blocks + 1, i, n, d): from the last, all others; fills hidden, gradients and sums."""
    LAYER: tl.constexpr = 2 * WIDTH if GATED else WIDTH
    KEPT: tl.constexpr = 2 * WIDTH + 2 * LAYER
    G: tl.constexpr = HEADS + SHARED  # where the gradients of u2 are
    Z: tl.constexpr = PADDED + SHARED  # where z2 is
    HIDDEN: tl.constexpr = Z + 4 * WIDTH
    SHARES: tl.constexpr = 2 if GATED else 1
    instance, inside, points = _place(n, tiles, TILE)
    own = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    all_points = tl.num_programs(0).to(tl.int64) // tiles * n * DIM
    for k in range(BLOCKS):
        block = BLOCKS - 1 - k
        row = (own + block * rows.to(tl.int64))[:, None]
        before = block * all_points
        x, dx, scale = xs + before, dxs + before, scales + before
        u2, heads, z = kept + row * KEPT, gradients + row * (G + KEPT), hidden + row * HIDDEN
        a, u4, u5 = u2 + WIDTH, u2 + 2 * WIDTH, u2 + 2 * WIDTH + LAYER
        d2, z2 = heads + G, z + Z
        da, d4, d5 = d2 + WIDTH, d2 + 2 * WIDTH, d2 + 2 * WIDTH + LAYER
        share = shares + instance * stride + block * LAYER
        total = sums + tl.program_id(0) * stride + block * LAYER
        wx = blocks + block * SIZE
        w4 = wx + WIDTH * WIDTH
        w5 = w4 + LAYER * WIDTH + LAYER
        wh = w5 + LAYER * WIDTH + LAYER
        _from_heads(
            x, wh, scale, u5, dx + all_points, dx, z2 + 3 * WIDTH, heads, d5, inside, points,
            DIM, WIDTH, GATED, SILU, TILE,
        )  # fmt: skip
        tl.debug_barrier()  # between layers: each reads what others of this program wrote
        _between(
            w5, share, u4, d5, d4, z2 + 2 * WIDTH, total,
            LAYER, WIDTH, GATED, 0, SILU, PRECISION, TILE, NARROW,
        )  # fmt: skip
        tl.debug_barrier()
        _between(
            w4, share, a, d4, da, z2 + WIDTH, total,
            LAYER, WIDTH, False, SHARES, SILU, PRECISION, TILE, NARROW,
        )  # fmt: skip
        tl.debug_barrier()
        _between(
            wx, share, u2, da, d2, z2, total,
            WIDTH, WIDTH, False, 0, SILU, PRECISION, TILE, NARROW,
        )  # fmt: skip
        tl.debug_barrier()
        _into_first(
            x, w1, b1, w2, dx, z, heads + HEADS, inside, points,
            DIM, PADDED, WIDTH, SHARED, SILU, PRECISION, TILE, CHUNK,
        )  # fmt: skip
        tl.debug_barrier()


@triton.jit(do_not_specialize=["rows"])
def _weights(
    hidden, gradients, jobs, out, rows, size,
    HIDDEN: tl.constexpr, GRADIENTS: tl.constexpr, SIDE: tl.constexpr,
    EACH: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """A tile of a weight's gradient `g^T z`, and the sum of g for its bias, over EACH rows of a
    block. `jobs` says which columns, how many of them count, and where the result goes."""
    job = jobs + tl.program_id(0) * 7
    side = tl.arange(0, SIDE)
    gs = gradients + tl.multiple_of(tl.load(job), 16) + side[None, :]
    zs = hidden + tl.multiple_of(tl.load(job + 2), 16) + side[None, :]
    first = tl.program_id(2).to(tl.int64) * EACH
    tile, total = tl.zeros((SIDE, SIDE), tl.float32), tl.zeros((STEP, SIDE), tl.float32)
    for k in range(0, EACH, STEP):
        row = (first + k + tl.arange(0, STEP))[:, None]
        there, row = row < rows, tl.program_id(1).to(tl.int64) * rows + row
        g = tl.load(gs + row * GRADIENTS, mask=there, other=0.0)
        z = tl.load(zs + row * HIDDEN, mask=there, other=0.0)
        tile += _product(tl.trans(g), z, PRECISION)
        total += g.to(tl.float32)
    out += (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)).to(tl.int64) * size
    g_count, z_count = tl.load(job + 1), tl.load(job + 3)
    where = tl.load(job + 4) + side[:, None] * tl.load(job + 5) + side[None, :]
    tl.store(out + where, tile, mask=(side < g_count)[:, None] & (side < z_count)[None, :])
    bias = tl.load(job + 6)
    tl.store(out + bias + side, tl.sum(total, 0), mask=(side < g_count) & (bias >= 0))


class _Sizes:
    """The sizes of a network, and of the matrices of the way back."""

    def __init__(self, dim: int, width: int, shared: int, gated: bool, silu: bool):
        layer = 2 * width if gated else width
        self.dim, self.width, self.shared, self.layer = dim, width, shared, layer
        self.padded, self.heads = (max(16, triton.next_power_of_2(k)) for k in (dim, 2 * dim))
        self.kept = 2 * width + 2 * layer
        self.gradients = self.heads + shared + self.kept
        self.hidden = self.padded + shared + 4 * width
        # (out, in, whether it has a bias) of w1, w2, wx, w4, w5 and the heads
        into_w = [(width, width, False), (layer, width, True), (layer, width, True)]
        self.weights = [(shared, dim, True), (width, shared, True), *into_w, (2 * dim, width, True)]
        self.shapes = [
            shape
            for out, into, biased in self.weights
            for shape in [(out, into), (out,)][: 1 + biased]
        ]
        self.options = {  # of the kernels forward and backward
            "DIM": dim, "PADDED": self.padded, "WIDTH": width, "SHARED": shared, "GATED": gated,
            "SILU": silu, "TILE": TILE, "CHUNK": min(CHUNK, shared), "num_warps": 8,
        }  # fmt: skip

    def shapes_of_all(self, blocks: int) -> list[tuple[int, ...]]:
        """Of the weights, in the order of `_Network`'s arguments."""
        return self.shapes[:4] + self.shapes[4:] * blocks


_sizes = lru_cache(maxsize=64)(_Sizes)


@lru_cache(maxsize=64)
def _jobs(sizes: _Sizes, device: torch.device) -> Tensor:
    """Tiles of all weights of a block, for `_weights`: column and count of the gradients and of the
    hidden layer, place and stride of the result, place of the bias or -1."""
    h, w, layer, z, g = sizes.shared, sizes.width, sizes.layer, sizes.padded, sizes.heads
    of_z = (0, z, z + h, z + h + w, z + h + 2 * w, z + h + 3 * w)
    of_g = (g, g + h, g + h + w, g + h + 2 * w, g + h + 2 * w + layer, 0)
    jobs, place = [], 0
    for (out, into, biased), g, z in zip(sizes.weights, of_g, of_z):
        for r in range(0, out, w):
            for c in range(0, into, w):
                bias = place + out * into + r if biased and c == 0 else -1
                counts = min(w, out - r), min(w, into - c)
                at = place + r * into + c
                jobs.append([g + r, counts[0], z + c, counts[1], at, into, bias])
        place += out * into + out * biased
    return torch.tensor(jobs, dtype=torch.int32, device=device)


class _Network(torch.autograd.Function):
    """All blocks: x (i, n, d), tau's share of each block one after the other (i, s), then w1, b1,
    w2, b2 and the other weights of each block, to x (i, n, d)."""

    @staticmethod
    def forward(
        ctx: Any, sizes: _Sizes, precision: str, blocks: int, keep: bool, x: Tensor,
        shares: Tensor, *weights: Tensor,
    ):  # fmt: skip
        (i, n, d), tiles = x.shape, triton.cdiv(x.shape[1], TILE)
        rows, storage = i * tiles * TILE, torch.float32 if precision == "fp32" else torch.bfloat16
        xs = x.new_empty(blocks + 1, i, n, d)
        xs[0] = x
        w1, b1, w2, b2, *rest = weights
        packed = _packed(w2, rest, blocks)
        halved = packed.to(storage)
        used, half = (each.tensor_split([w2.numel()]) for each in (packed, halved))
        used = half if precision == "bf16" else used
        kept = torch.empty(blocks, rows if keep else 0, sizes.kept, dtype=storage, device=x.device)
        scales = torch.empty(blocks, *(x.shape if keep else (0,)), device=x.device)
        _forward[(i * tiles,)](
            xs, shares, w1, b1, used[0], b2, used[1], kept, scales,
            n, tiles, shares.shape[1], rows, **sizes.options,
            BLOCKS=blocks, SIZE=len(used[1]) // blocks, PRECISION=precision, KEEP=keep,
        )  # fmt: skip
        ctx.sizes, ctx.products = sizes, "fp32" if precision == "fp32" else "bf16"
        ctx.save_for_backward(xs, shares, w1, b1, *half, kept, scales)
        return xs[-1]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor):  # pyright: ignore[reportIncompatibleMethodOverride]
        sizes, (xs, shares, *weights, kept, scales) = ctx.sizes, ctx.saved_tensors
        (blocks, rows, _), (i, n) = kept.shape, xs.shape[1:3]
        programs = rows // TILE
        dxs = torch.empty_like(xs)
        dxs[-1] = dy
        hidden = kept.new_empty(blocks, rows, sizes.hidden)
        gradients = kept.new_empty(blocks, rows, sizes.gradients)
        sums = shares.new_empty(programs, shares.shape[1])
        _backward[(programs,)](
            xs, shares, *weights, kept, scales,
            dxs, hidden, gradients, sums, n, programs // i, shares.shape[1], rows, **sizes.options,
            BLOCKS=blocks, SIZE=len(weights[-1]) // blocks, HEADS=sizes.heads,
            PRECISION=ctx.products, NARROW=min(CHUNK, sizes.width),
        )  # fmt: skip
        every = _weight_gradients(sizes, hidden, gradients, ctx.products)
        if programs > i:  # several of an instance
            sums = sums.view(i, -1, shares.shape[1]).sum(1)
        return None, None, None, None, dxs[0], sums, *every


def _packed(w2: Tensor, weights: Sequence[Tensor], blocks: int) -> Tensor:
    """The second layer's weights and those of all blocks as one vector, each block at a multiple of
    16 numbers."""
    each = len(weights) // blocks
    pieces = [weight.flatten() for weight in weights]
    pad = _zeros(-sum(len(piece) for piece in pieces[:each]) % 16, weights[0].device)
    packed = [p for k in range(blocks) for p in (*pieces[k * each :][:each], pad)]
    return torch.cat([w2.flatten(), *packed])


@lru_cache(maxsize=64)
def _zeros(count: int, device: torch.device) -> Tensor:
    return torch.zeros(count, device=device)


def _weight_gradients(
    sizes: _Sizes, hidden: Tensor, gradients: Tensor, products: str
) -> list[Tensor]:
    """The gradients of all weights, in the order of `_Network`'s arguments. The rows are split so
    that the whole GPU is at work, and the parts added up in the same order every time."""
    jobs, (blocks, rows, _) = _jobs(sizes, hidden.device), hidden.shape
    parts = max(1, min(rows // TILE, PROGRAMS // (len(jobs) * blocks)))
    each = triton.cdiv(triton.cdiv(rows, parts), TILE) * TILE
    lengths = [math.prod(shape) for shape in sizes.shapes]
    partial = torch.empty(triton.cdiv(rows, each), blocks, sum(lengths), device=hidden.device)
    _weights[(len(jobs), blocks, len(partial))](
        hidden, gradients, jobs, partial, rows, sum(lengths),
        HIDDEN=sizes.hidden, GRADIENTS=sizes.gradients, SIDE=sizes.width, EACH=each, STEP=TILE,
        PRECISION=products, num_warps=8,
    )  # fmt: skip
    first, later = partial.sum(0).split([sum(lengths[:4]), sum(lengths[4:])], 1)
    pieces = [*first.sum(0).split(lengths[:4])]  # of the layers that all blocks share
    for block in later:
        pieces += block.split(lengths[4:])
    return [piece.view(shape) for piece, shape in zip(pieces, sizes.shapes_of_all(blocks))]


def apply(coupling: "CouplingNetwork", x: Tensor, share: Tensor, precision: str) -> Tensor:
    """What `coupling` computes of x and tau's share of the first layers; `precision` is that of the
    products on the way forward."""
    a, of_x = coupling.architecture, coupling.of_x
    layers = [of_x[0], of_x[2]]
    blocks: Any = coupling.blocks
    for block in blocks:
        layers += [block.from_x, *(each.linear for each in block.hidden), block.heads]
    weights = [weight for layer in layers for weight in layer.parameters()]
    share, keep = share.squeeze(1).float().contiguous(), torch.is_grad_enabled()  # for the way back
    sizes = _sizes(*coupling.sizes(x.shape[-1]))
    return _Network.apply(sizes, precision, a.blocks, keep, x, share, *weights)


def compile_for(sizes: list, blocks: int, precision: str, shape: list[int]) -> None:
    """Compile all that training and solving take for points of a shape (i, n, d), by using it."""
    own = _sizes(*sizes)
    shapes = [shape, (shape[0], blocks * own.layer), *own.shapes_of_all(blocks)]
    inputs = [torch.zeros(each, device="cuda", requires_grad=True) for each in shapes]
    _Network.apply(own, precision, blocks, True, *inputs).sum().backward()
    _Network.apply(own, precision, blocks, False, *inputs)
