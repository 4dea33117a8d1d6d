"""Solving on a CPU: the points in pieces that fit into a core's cache, one piece on each core."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from proxlearn.common.batch import Batch, Points, pieces, tree_map
from proxlearn.spaces import Space

IN_CACHE = 1 << 18  # numbers in the widest layer for the points of a piece
LEAST = 64  # points that are worth a thread
STILL = 2e-7  # of the space's diameter, that a point moves at most once it has settled


def on_cores(
    function: Callable[[Points, Batch], Batch], x: Points, prepared: Batch, numbers: int
) -> Batch:
    """`function(x, prepared)`, tensors (i n ...): on a GPU at once, on a CPU piece by piece and
    without gradients. Each piece has one thread: several threads in one small operation would
    mostly wait for each other.

    numbers: how many the widest layer has for a point."""
    if x.is_cuda:
        return function(x, prepared)
    threads = torch.get_num_threads()
    share = max(LEAST, -(-x[..., 0].numel() // threads))
    most = max(1, min(share, IN_CACHE // numbers))
    parts = list(pieces(prepared, x, most))
    if len(parts) < 2:
        return function(x, prepared)

    def of_one(part: tuple) -> tuple[slice, slice, Batch]:
        rows, columns, own, some = part
        with torch.no_grad():  # which holds for the thread that says it
            return rows, columns, function(some, own)

    if threads == 1:
        done = list(map(of_one, parts))
    else:
        try:
            with ThreadPoolExecutor(threads, "core", torch.set_num_threads, (1,)) as pool:
                done = list(pool.map(of_one, parts))
        finally:
            torch.set_num_threads(threads)  # new threads take the number that was set last
    return _joined(done, x)


def until_settled(
    apply: Callable[[Points, Batch], Points], x: Points, prepared: Batch, steps: int, space: Space
) -> Points:
    """So many applications; a point that an application moves no more than rounding does is left
    out of the rest."""
    result, left = x.clone(), torch.arange(x.shape[1])
    for _ in range(steps):
        result[:, left] = y = apply(x, prepared)
        moving = space.squared_distance(x, y).amax(0) > (STILL * space.diameter) ** 2
        x, left = y[:, moving], left[moving]
        if not len(left):
            break
    return result


def _joined(done: list[tuple[slice, slice, Batch]], x: Points) -> Batch:
    def whole(*parts: Tensor) -> Tensor:
        result = parts[0].new_empty(*x.shape[:2], *parts[0].shape[2:])
        for (rows, columns, _), part in zip(done, parts):
            result[rows, columns] = part
        return result

    return tree_map(whole, *(part for _, _, part in done))
