"""A batch of instances (taus): a tensor, or a dict, list or tuple of them, instances first."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Int64
from torch import Tensor

Batch = Any  # a tensor (i, ...) or a nesting of dicts, lists and tuples of such tensors
Points = Float[Tensor, "i n d"]  # n points for each instance
Values = Float[Tensor, "i n"]  # a number for each point
Flags = Bool[Tensor, "i n"]  # whether something is so of each point
Counts = Int[Tensor, "i n"]  # a whole number for each point
Device = torch.device | str


def tree_map(function: Callable[..., Any], batch: Batch, *others: Batch) -> Batch:
    """Apply `function` to every tensor of `batch` (and its counterparts in `others`)."""
    if isinstance(batch, dict):
        return {k: tree_map(function, v, *(o[k] for o in others)) for k, v in batch.items()}
    if isinstance(batch, (list, tuple)):
        parts = [tree_map(function, *each) for each in zip(batch, *others, strict=True)]
        return parts if isinstance(batch, list) else tuple(parts)
    return function(batch, *others)


def leaves(batch: Batch) -> list[Tensor]:
    """The tensors of a batch, in order."""
    found: list[Tensor] = []
    tree_map(found.append, batch)
    return found


def structure(batch: Batch) -> str:
    """How a batch is nested, without its tensors."""
    return repr(tree_map(lambda _: ..., batch))


def size(batch: Batch) -> int:
    """How many instances a batch holds."""
    return leaves(batch)[0].shape[0]


def select(batch: Batch, index: Any) -> Batch:
    """The instances `index` (a slice or an index tensor) of a batch."""
    return tree_map(lambda t: t[index], batch)


def move(batch: Batch, device: Device) -> Batch:
    """The batch on `device`: the one place where instances travel."""
    return tree_map(lambda t: t.to(device, non_blocking=True), batch)


def stack(instances: Sequence[Batch]) -> Batch:
    """Instances of equal shapes as one batch (what `Problem.collate` does by default)."""
    return tree_map(lambda *each: torch.stack(each), instances[0], *instances[1:])


def vector_of(tau: Batch) -> list[float] | None:
    """The numbers of the first instance, where instances are vectors."""
    return tau[0].tolist() if isinstance(tau, Tensor) and tau.ndim == 2 else None


def pieces(tau: Batch, x: Points, most: int) -> Iterator[tuple[slice, slice, Batch, Points]]:
    """Rows and columns of x with the instances that go with them, at most `most` points each."""
    columns = max(1, min(most, x.shape[1]))
    rows = max(1, most // columns)
    for i in range(0, x.shape[0], rows):
        some = slice(i, i + rows)
        instances = select(tau, some)
        for n in range(0, x.shape[1], columns):
            yield some, slice(n, n + columns), instances, x[some, n : n + columns]


def first_those(flags: Bool[Tensor, "i k"]) -> Int64[Tensor, "i k"]:
    """For every row, the order that puts those with a flag first; nothing else changes places."""
    return (~flags).long().argsort(dim=1, stable=True)


def columns_of(flags: Flags) -> Int64[Tensor, "i m"]:
    """The columns with a flag, in every row first, as many as the row with most of them has; other
    rows are filled up with columns of others."""
    most = int(flags.sum(1).max())
    return first_those(flags)[:, :most]
