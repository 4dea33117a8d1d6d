"""Arrays of NumPy's files, which anyone may have written: a header is believed only as far as the
file goes, and no more is read than there is memory for."""

import lzma
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from jaxtyping import Shaped
from numpy.lib import format as npy

from proxlearn.common.contents import MOST, brief, check_file
from proxlearn.common.memory import afford
from proxlearn.errors import FileError, ProxlearnError

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
PIECE = 1 << 24  # bytes that are read at once
MOST_ENTRIES = 1 << 62  # of an array, one side of it or its bytes
# What a damaged zip file raises.
DAMAGED = (BadZipFile, OSError, LookupError, ValueError, RuntimeError, EOFError, OverflowError)
DAMAGED += (NotImplementedError, zlib.error, lzma.LZMAError, struct.error)


@dataclass(frozen=True)
class Header:
    """What the header of a .npy says of its array, checked against the size of the file."""

    dtype: np.dtype
    shape: tuple[int, ...]
    by_columns: bool  # the first index changes fastest
    begin: int  # bytes before the array

    @property
    def numbers(self) -> int:
        return math.prod(self.shape)

    def shaped(self, flat: Shaped[np.ndarray, " n"]) -> Shaped[np.ndarray, "..."]:
        return flat.reshape(self.shape, order="F" if self.by_columns else "C")


def read_npy(path: str | Path, what: str) -> Shaped[np.ndarray, "..."]:
    """The array of real numbers in a .npy, in this machine's byte order; errors say `what` it
    should be."""
    with _errors_of(path, what), Path(path).open("rb") as file:
        header = _header_of(file, Path(path).stat().st_size)
        _afford(header, path)
        return _real(header.shaped(np.fromfile(file, header.dtype, header.numbers)))


def mapped_npy(path: str | Path, what: str) -> Shaped[np.ndarray, "..."]:
    """The array in a .npy, of any type, left on disk until it is used."""
    with _errors_of(path, what), Path(path).open("rb") as file:
        _header_of(file, Path(path).stat().st_size)
        return npy.open_memmap(path, mode="r")


def read_npz(
    path: str | Path, what: str, names: Sequence[str] = ()
) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The arrays of a .npz by name, numbers or text; an error where one of `names` is missing."""
    with _errors_of(path, what), ZipFile(path) as file:
        inside = {each.filename.removesuffix(".npy"): each for each in file.infolist()}
        if missing := [name for name in names if name not in inside]:
            raise ValueError(f"it has no {', '.join(missing)}")
        total = sum(each.file_size for each in inside.values())
        afford(total, f"Reading {brief(path)}", "read it where there is more")
        arrays = {}
        for name, about in inside.items():
            with file.open(about) as part:
                arrays[name] = _of_part(part, about.file_size)
    return arrays


@contextmanager
def _errors_of(path: str | Path, what: str) -> Iterator[None]:
    """Within, an error in reading a file becomes a sentence on what is wrong with it."""
    check_file(path, MOST_ENTRIES)
    try:
        yield
    except ProxlearnError:
        raise
    except DAMAGED as error:
        # An error without words is that of a seek to before the beginning, say.
        damaged = isinstance(error, OSError) or not str(error)
        reason = "it is damaged" if damaged else brief(error).strip("'\".")
        raise FileError(f"{brief(path)} cannot be read as {what}: {reason}.") from None


def _of_part(part: Any, size: int) -> Shaped[np.ndarray, "..."]:
    """One array of a file of several, `size` bytes with its header."""
    header = _header_of(part, size)
    there = size - header.begin
    if there != header.numbers * header.dtype.itemsize:
        raise ValueError(f"one of its arrays says less than the {there:,} bytes that follow")
    flat = np.empty(there, np.uint8)
    for begin in range(0, there, PIECE):
        content = part.read(min(PIECE, there - begin))
        flat[begin : begin + len(content)] = np.frombuffer(content, np.uint8)
    part.read(1)  # reading to the end has the checksum checked
    return header.shaped(flat.view(header.dtype))


def _header_of(file: Any, size: int) -> Header:
    """The header of a .npy of so many bytes, or a ValueError; the array begins where the file
    then is."""
    try:
        version = npy.read_magic(file)
        shape, by_columns, dtype = HEADERS[version](file)
        begin = file.tell()
    except Exception:  # NumPy has many ways to fail at one
        raise ValueError("it has no header of a .npy, or a damaged one") from None
    sides = (*shape, math.prod(shape))
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"it holds {brief(dtype)}, not numbers")
    if not all(0 <= each <= MOST_ENTRIES for each in sides) or len(shape) > 32:
        raise ValueError(f"its header promises an array {brief(shape)}, which there cannot be")
    promised, there = math.prod(shape) * dtype.itemsize, size - begin
    if promised > there:
        raise ValueError(
            f"its header promises an array {brief(shape)} of {brief(dtype)}, {promised:,} bytes, "
            f"and {there:,} follow"
        )
    return Header(dtype, shape, by_columns, begin)


def _real(numbers: Shaped[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
    """Real numbers of a type that PyTorch knows."""
    if numbers.dtype.kind not in "biuf":
        raise ValueError(f"it holds {brief(numbers.dtype)}, not real numbers")
    kind = numbers.dtype.newbyteorder("=")
    return numbers.astype(float if kind.itemsize > 8 else kind, copy=False)


def _afford(header: Header, path: str | Path) -> None:
    needed = 2 * header.numbers * header.dtype.itemsize  # it and a copy
    if needed > MOST:
        afford(needed, f"The array in {brief(path)}", "give a part of it")
