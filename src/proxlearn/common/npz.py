"""Reading .npz files of any origin: what they announce is compared with what is there before any
of it is read."""

import tokenize
import zlib
from pathlib import Path
from zipfile import BadZipFile, LargeZipFile, ZipExtFile, ZipFile

import numpy as np
from numpy.lib import format as npy

from proxlearn.common.contents import brief
from proxlearn.common.memory import afford
from proxlearn.errors import FileError, ProxlearnError

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
SIMPLE = "biufcSU"  # kinds of numbers, and of text
PIECE = 1 << 24  # bytes that are read at once
# What a damaged file makes of NumPy, of zlib and of the parser of the headers.
DAMAGED = (BadZipFile, LargeZipFile, zlib.error, tokenize.TokenError, SyntaxError, EOFError)
DAMAGED += (LookupError, ValueError, TypeError, ArithmeticError, RuntimeError, MemoryError)


def read_npz(path: str | Path, what: str = "file for NumPy") -> dict[str, np.ndarray]:
    """The arrays of a file, by name."""
    path = Path(path)
    try:
        there = path.is_file()  # no pipe, no device
    except (OSError, ValueError):  # a name that is too long, or has a zero byte
        there = False
    if not there:
        raise FileError(f"There is no {what} at {brief(path)}: check the path.")
    try:
        with ZipFile(path) as file:
            entries = file.infolist()
            total = sum(each.file_size for each in entries)
            afford(total, f"Reading {brief(path)}", "read it where there is more")
            arrays = {}
            for each in entries:
                with file.open(each) as opened:
                    arrays[each.filename.removesuffix(".npy")] = _array(opened, each.file_size)  # pyright: ignore[reportArgumentType]
            return arrays
    except ProxlearnError:
        raise
    except OSError as error:
        raise FileError(f"{brief(path)} cannot be read: {brief(error.strerror)}.") from None
    except DAMAGED as error:
        raise FileError(f"{brief(path)} is not a whole {what}: {brief(error)}.") from None


def _array(opened: ZipExtFile, size: int) -> np.ndarray:
    """One array of so many bytes, its header among them."""
    version = npy.read_magic(opened)
    shape, by_columns, dtype = HEADERS[version](opened)
    if dtype.kind not in SIMPLE:
        raise ValueError(f"an array of {dtype}")
    count = int(np.prod([int(side) for side in shape], dtype=object)) if shape else 1
    there = size - opened.tell()
    if min(shape, default=0) < 0 or count * dtype.itemsize != there:
        raise ValueError(f"an array {shape} of {dtype} in {there} bytes")
    flat = np.empty(there, np.uint8)
    for begin in range(0, there, PIECE):
        part = opened.read(min(PIECE, there - begin))
        flat[begin : begin + len(part)] = np.frombuffer(part, np.uint8)
    opened.read(1)  # at the end the sum of the content is checked
    return flat.view(dtype).reshape(shape, order="F" if by_columns else "C")
