"""A stream of taus in batches of a bounded size: no more are drawn than are solved at once."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, starmap
from numbers import Number
from typing import Any

import numpy as np
import torch
from torch import Tensor

from proxlearn.common.batch import Batch, size
from proxlearn.common.checks import array, said
from proxlearn.errors import InputError
from proxlearn.instances import Instances

MOST_SAID = 300  # characters of what is wrong with a tau


def chunks(instances: Instances, taus: Any, at_once: int) -> Iterator[Batch]:
    """The taus in order and checked, `at_once` to a batch; only the last batch may be smaller."""
    if isinstance(taus, Tensor):
        taus = array("taus", taus, "instances to go through")
    try:
        iter(taus)
    except TypeError:
        raise InputError(
            f"taus is {said(taus)}; expected instances to go through: an array, a list or an "
            "iterator."
        ) from None

    def checked(chunk: int, some: Any) -> Batch:
        batch = _batch(instances, some, chunk * at_once)
        instances.warn_of_unknown(batch)
        return batch

    return starmap(checked, enumerate(_some_at_a_time(taus, at_once)))


def _some_at_a_time(taus: Iterable[Any], at_once: int) -> Iterator[Any]:
    """An array is sliced; anything else is collected as it comes."""
    if isinstance(taus, (Tensor, np.ndarray)):
        slices = (taus[first : first + at_once] for first in range(0, len(taus), at_once))
        # A copy of each: the array may be a read-only file, which torch warns about.
        yield from slices if isinstance(taus, Tensor) else map(np.array, slices)
        return
    instances = iter(taus)
    while some := list(islice(instances, at_once)):
        yield some


def _batch(instances: Instances, some: Any, first: int) -> Batch:
    """Some instances as one batch: all at once where they are arrays of one shape, else one by
    one, with an error that says which one is wrong."""
    with suppress(Exception):  # the next lines find which of them it is
        batch = instances.batch(_stacked(some))
        if size(batch) == len(some):
            return batch
    return instances.together([_one(instances, tau, first + k) for k, tau in enumerate(some)])


def _stacked(some: Tensor | np.ndarray | Sequence[Any]) -> Tensor:
    if isinstance(some, (Tensor, np.ndarray)):
        return torch.as_tensor(some)
    if isinstance(some[0], Tensor):
        return torch.stack(list(some))
    if isinstance(some[0], np.ndarray) or isinstance(next(iter(some[0])), Number):
        return torch.from_numpy(np.asarray(some))
    raise TypeError("Structured instances are for the problem to put together.")


def _one(instances: Instances, tau: Any, index: int) -> Batch:
    try:
        batch = instances.batch(tau)
    except Exception as error:  # whatever a user's own kind of instances may do
        raise InputError(
            f"Tau {index} (counting from 0) cannot be used: {str(error)[:MOST_SAID]}"
        ) from error
    if size(batch) != 1:
        raise InputError(
            f"Tau {index} (counting from 0) is a batch of {size(batch)} instances: give the "
            "instances of a stream one at a time."
        )
    return batch
