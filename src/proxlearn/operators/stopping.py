"""Iterating until every point has arrived: a point that stopped costs nothing more."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

State = tuple[Tensor, ...]  # what is kept of every point, (instances, points, ...) each


def until_arrived(
    state: State, steps: int, step: Callable[..., tuple[State, Bool[Tensor, "i k"]]]
) -> tuple[Int[Tensor, "i n"], Bool[Tensor, "i n"]]:
    """Change `state` in place, at most `steps` times: how often each point was tried, and whether
    it has arrived.

    `step(*state)` takes and returns the state of some points of every instance, those that still
    move among them, and says which go on; one that does not has arrived.
    """
    used = torch.zeros(state[0].shape[:2], dtype=torch.int32, device=state[0].device)
    moving = torch.ones_like(used, dtype=torch.bool)
    for _ in range(steps):
        some = _first_columns(moving)
        if not some.shape[1]:
            break
        before, still = [_take(each, some) for each in state], moving.gather(1, some)
        after, goes = step(*before)
        for each, old, new in zip(state, before, after):
            wide = still.view(*still.shape, *[1] * (each.ndim - 2))
            each.scatter_(1, _wide(some, each), torch.where(wide, new, old))
        used.scatter_add_(1, some, still.int())
        moving.scatter_(1, some, goes & still)
    return used, ~moving


def _first_columns(moving: Bool[Tensor, "i n"]) -> Int[Tensor, "i k"]:
    """The places of the points that move, as many for every instance as move in the busiest."""
    most = int(moving.sum(1).max())
    return moving.int().argsort(dim=1, descending=True, stable=True)[:, :most]


def _take(each: Shaped[Tensor, "i n ..."], places: Int[Tensor, "i k"]) -> Shaped[Tensor, "i k ..."]:
    return each.gather(1, _wide(places, each))


def _wide(places: Int[Tensor, "i k"], each: Shaped[Tensor, "i n ..."]) -> Int[Tensor, "i k ..."]:
    """The places, for every number that is kept of a point."""
    return places.view(*places.shape, *[1] * (each.ndim - 2)).expand(-1, -1, *each.shape[2:])
