"""Modules built from what a file says of them: never one far larger than the file's weights, and
only weights that fit are put into it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)

from proxlearn.common.contents import brief
from proxlearn.common.memory import afford, enough
from proxlearn.errors import FileError, InputError, ProxlearnError

SPARE = 10  # times the weights of the file: a module may make some that it then replaces
MOST_MADE = 10_000  # weights of a new network, each a matrix or a vector
IN_TRAINING = 16  # bytes of a weight, with all that trains it
SMALL = 1 << 28  # bytes: for less, the free memory is not looked up
SMALLER = "give a smaller architecture="
# What making a module of a spoiled header may raise.
WRONG = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError)
WRONG += (AssertionError, MemoryError)
LONGEST_ERROR = 700  # characters of an error that is repeated
Module = TypeVar("Module", bound=nn.Module)


class FitError(ValueError):
    """How weights differ from those that a module has."""


@contextmanager
def readable(path: str | Path) -> Iterator[None]:
    """Within, what a file's header describes is made: an error there is a fault of the file."""
    try:
        yield
    except FitError as error:
        raise _not_fitting(path, error) from None
    except (ProxlearnError, *WRONG) as error:
        ours = type(error) is ValueError or isinstance(error, ProxlearnError)
        said = str(error) if ours else f"{type(error).__name__}: {error}"
        reason = brief(said, LONGEST_ERROR).removesuffix(".")
        raise FileError(
            f"The header of {brief(path)} cannot be read: {reason}. The file is damaged, or of "
            "another version."
        ) from None


def _not_fitting(path: str | Path, error: FitError) -> FileError:
    return FileError(f"The weights in {brief(path)} do not fit its header: {error}.")


def built(make: Callable[[], Module], weights: dict[str, Tensor]) -> Module:
    """What `make` builds; an error as soon as it has far more weights than the file."""
    with _no_more_than(weights):
        return make()


def filled(module: Module, weights: dict[str, Tensor], path: str | Path) -> Module:
    """The module with a file's weights; an error where they do not fit or are no numbers."""
    try:
        check_fit(module, weights)
    except FitError as error:
        raise _not_fitting(path, error) from None
    every = torch.stack(
        [each.isfinite().all() for each in weights.values()] or [torch.tensor(True)]
    )
    if not every.all():
        raise FileError(
            f"{brief(path)} holds weights that are NaN or infinite: the file is damaged, or its "
            "training went wrong. Get the file again, or train again."
        )
    module.load_state_dict(weights)
    return module


def check_fit(module: nn.Module, weights: dict[str, Tensor]) -> None:
    """An error that names weights which are missing, too many, or of another shape or type."""
    own = module.state_dict()
    for what, names in (("are missing", own.keys() - weights), ("too many", weights.keys() - own)):
        if names:
            raise FitError(f"{len(names)} {what}, such as {brief(min(names))}")
    for name, mine in own.items():
        given = weights[name]
        if given.shape != mine.shape or given.dtype != mine.dtype:
            raise FitError(
                f"{name} is {tuple(given.shape)} of {given.dtype}, where the header describes "
                f"{tuple(mine.shape)} of {mine.dtype}"
            )


def built_anew(make: Callable[[], Module]) -> Module:
    """What `make` builds to be trained; an error as soon as there is no memory for that."""

    def check(made: int, numbers: int) -> None:
        if made > MOST_MADE:
            raise InputError(
                f"A network of more than {MOST_MADE:,} layers is too large: {SMALLER}."
            )
        if (needed := IN_TRAINING * numbers) > SMALL:
            afford(needed, f"A network of {numbers:,} weights or more", SMALLER)

    with enough("so large a network", SMALLER), _counted(check):
        return make()


def _no_more_than(weights: dict[str, Tensor]) -> AbstractContextManager[None]:
    """Within, an error as soon as this thread makes modules with far more weights than these."""
    there = sum(each.numel() for each in weights.values())

    def check(made: int, numbers: int) -> None:
        if made > SPARE * (len(weights) + 10) or numbers > SPARE * (there + 1000):
            raise FitError(f"it describes a network far larger than {there:,} numbers")

    return _counted(check)


@contextmanager
def _counted(check: Callable[[int, int], None]) -> Iterator[None]:
    """Within, `check` is given how many weights this thread has made, and the numbers in them. It
    is called before they are filled with numbers, and so before they take memory."""
    thread, made, numbers = threading.get_ident(), 0, 0

    def count(module: nn.Module, name: str, weight: Tensor | None) -> None:
        nonlocal made, numbers
        if weight is not None and threading.get_ident() == thread:
            made, numbers = made + 1, numbers + weight.numel()
            check(made, numbers)

    hooks = (
        register_module_parameter_registration_hook(count),
        register_module_buffer_registration_hook(count),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
