"""What users give, checked and converted in one place, each error a sentence: numbers of Python,
NumPy or PyTorch, arrays of any layout and type, seeds, paths."""

import math
import os
import reprlib
from collections.abc import Callable, Iterable
from dataclasses import fields
from decimal import Decimal
from numbers import Integral, Number, Real
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from proxlearn.errors import InputError, UnknownNameError

MOST = (1 << 63) - 1  # the largest whole number that 64 bits hold
LARGEST = 1e30  # rate or lam, by which numbers of 32 bits can be multiplied
LONGEST_NAME, LONGEST_PATH = 255, 4_000  # in bytes, as file systems have it


def said(value: Any) -> str:
    """What was given, as an error repeats it: short, whatever it is."""
    try:
        return reprlib.repr(value)
    except Exception:  # such as a whole number of 5,000 digits
        return f"a {type(value).__name__}"


def plain_number(value: Any) -> Any:
    """The number in an array or tensor without dimensions (None if that holds none, on the device
    'meta'); anything else as it is."""
    if isinstance(value, Tensor | np.ndarray | np.generic) and value.ndim == 0:
        return None if isinstance(value, Tensor) and value.is_meta else value.item()
    return value


def is_number(value: Any) -> bool:
    """Whether it is a finite number; True and False do not count."""
    value = plain_number(value)
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can be
        return False


def number(name: str, value: Any) -> float:
    """A setting that has to be a finite number."""
    return _number(name, value, "a finite number", lambda given: True)


def positive(name: str, value: Any) -> float:
    """A setting that has to be a positive number."""
    return _number(name, value, "a positive number", lambda given: given > 0)


def rate_of(name: str, value: Any) -> float:
    """A setting that has to be a positive number which numbers of 32 bits can be multiplied by."""
    return _number(
        name, value, f"a positive number, {LARGEST:g} at most", lambda given: 0 < given <= LARGEST
    )


def at_least_zero(name: str, value: Any) -> float:
    """A setting that has to be a number, 0 or more."""
    return _number(name, value, "a number, 0 or more", lambda given: given >= 0)


def share(name: str, value: Any, of: str) -> float:
    """A setting that has to be a number from 0 to 1."""
    return _number(name, value, f"{of}, from 0 to 1", lambda given: 0 <= given <= 1)


def _number(name: str, value: Any, expected: str, fits: Callable[[float], bool]) -> float:
    given = plain_number(value)
    if not (is_number(given) and fits(given)):
        raise InputError(f"{name} must be {expected}, not {said(value)}.")
    return float(given)


def whole(name: str, value: Any, least: int | None = None, means: str = "") -> int:
    """A setting that has to be a whole number, `least` or more; `means` says what the least is."""
    given = plain_number(value)
    found = int(given) if isinstance(given, Integral) and not isinstance(given, bool) else None
    if found is None or not (-MOST if least is None else least) <= found <= MOST:
        expected = "" if least is None else f", {least}{means} or more"
        too_large = " (64 bits do not hold it)" if abs(found or 0) > MOST else ""
        raise InputError(f"{name} must be a whole number{expected}, not {said(value)}{too_large}.")
    return found


def count(name: str, value: Any) -> int:
    """A setting that has to be a whole number, 1 or more."""
    positive(name, value)
    return whole(name, value)


def steps_of(value: Any) -> int:
    """A number of applications, or of a method's steps."""
    return whole("steps", value, 0, " (the starts themselves)")


def seed_of(value: Any) -> int:
    """A seed: 1, but neither 1.0 nor True, which would draw something else."""
    return whole("seed", value)


def flag(name: str, value: Any) -> bool:
    """A setting that is on or off."""
    given = plain_number(value)
    if not isinstance(given, bool | int) or given not in (0, 1):
        raise InputError(f"{name} must be True or False, not {said(value)}.")
    return bool(given)


def one_of(what: str, value: Any, known: Iterable[str]) -> str:
    """One of the known names."""
    known = list(known)
    if not isinstance(value, str):
        raise InputError(f"{what} must be one of {', '.join(known)}, not {said(value)}.")
    if value not in known:
        raise UnknownNameError(what, value, known)
    return value


def listed(name: str, value: Any, of: str) -> list[Any]:
    """One or more things in a list, an array or any other iterable."""
    try:
        every = [] if isinstance(value, str | bytes | dict) else list(value)
    except Exception:  # whatever an iterator of the user's own may do
        every = []
    if not every:
        raise InputError(f"{name} must be a list of {of}, at least one, not {said(value)}.")
    return every


CONVERTED = {  # by the type of a field
    bool: flag,
    int: lambda name, value: whole(name, value, 0),
    float: at_least_zero,
}


def check_fields(made: Any) -> None:
    """Check and convert the fields of a dataclass that are numbers, 0 or more, or flags."""
    for each in fields(made):
        kinds = set(get_args(each.type) or (each.type,))
        convert = CONVERTED.get(*kinds - {NoneType}) if len(kinds - {NoneType}) == 1 else None
        value = getattr(made, each.name)
        if convert and not (value is None and NoneType in kinds):
            object.__setattr__(made, each.name, convert(each.name, value))


def path_of(value: Any, what: str = "path", more: int = 0) -> Path:
    """A path that a file system takes, even if a name in it gets so many bytes longer."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise InputError(f"The {what} must be a path, such as 'folder/file', not {said(value)}.")
    path = Path(value)
    name = max((os.fsencode(each) for each in path.parts), key=len, default=b"")
    if b"\0" in os.fsencode(path) or not os.fspath(value):
        raise InputError(
            f"The {what} {said(str(path))} is no path: it is empty or has a zero byte."
        )
    longest = LONGEST_NAME - more
    if len(name) > longest or len(os.fsencode(path)) > LONGEST_PATH:
        raise InputError(
            f"The {what} {said(str(path))} is too long: a name in it may have {longest} "
            f"bytes and the whole {LONGEST_PATH:,}. Choose a shorter one."
        )
    return path


def array(name: str, value: Any, expected: str) -> Shaped[Tensor, "..."]:
    """Real numbers in any form, dense, on the device where they are: lists, arrays of NumPy with
    any strides, order of bytes or type, tensors, and what else NumPy takes for an array."""
    try:
        return _array(value)
    except Exception as error:  # whatever a type of the user's own may do
        why = f": {error}" if isinstance(error, UnfitError) else ""
    raise InputError(f"{name} must be {expected}, not {said(value)}{why}.")


def floats(name: str, value: Any, expected: str) -> Shaped[Tensor, "..."]:
    """The same in single precision, each one finite."""
    found = array(name, value, expected).to(torch.float32)
    if not found.isfinite().all():
        raise InputError(f"{name} holds NaN or infinite numbers; every entry must be finite.")
    return found


def shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of the array that `array` would make; None where it would be an error."""
    try:
        return tuple(_array(value).shape)
    except Exception:  # as above
        return None


class UnfitError(Exception):
    """Why something is no array of real numbers, in words."""


def _array(value: Any) -> Tensor:
    if isinstance(value, list | tuple) and any(isinstance(each, Tensor) for each in value):
        return torch.stack([_array(each) for each in value])
    found = value if isinstance(value, Tensor) else torch.from_numpy(_of_numpy(value))
    if found.is_meta:
        raise UnfitError("the device 'meta' holds no numbers")
    if found.is_complex():
        raise UnfitError("its numbers are complex; they must be real")
    if found.is_quantized:
        found = found.dequantize()
    return found if found.layout == torch.strided else found.to_dense()


def _of_numpy(value: Any) -> np.ndarray:
    """A copy in this machine's byte order and of a type that PyTorch knows."""
    several = value if isinstance(value, list | tuple) else (value,)
    if any(isinstance(e, np.ma.MaskedArray) and np.ma.is_masked(e) for e in several):
        raise UnfitError("some of it is masked, so fill it first, as in array.filled(0)")
    try:
        found = np.asarray(value)
    except ValueError:
        raise UnfitError("its rows are not of one length") from None
    if found.dtype.kind == "O":
        if not all(isinstance(each, Number | np.bool_ | Decimal) for each in found.flat):
            raise UnfitError("it holds what is no number")
        found = found.astype(np.float64)
    if found.dtype.kind == "c":
        raise UnfitError("its numbers are complex; they must be real")
    if found.dtype.kind not in "biuf":
        raise UnfitError("it holds what is no number")
    wide = found.dtype.itemsize > 8 or (found.dtype.kind == "u" and found.dtype.itemsize > 1)
    kind = np.dtype(np.float64) if wide else found.dtype.newbyteorder("=")
    return np.array(found, dtype=kind, order="C")
