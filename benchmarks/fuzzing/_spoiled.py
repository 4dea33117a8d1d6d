"""What several kinds of fault share: the bytes, words and headers of a file, spoiled."""

import json
import struct
from copy import deepcopy
from io import BytesIO
from typing import Any

import numpy as np

# What stands in place of a number, a name or a word.
ODD_WORDS = (
    "nan", "inf", "-inf", "-1", "0", "-0.0", "1e400", "1e38", "-1e300", "1e-320", "1.5", "9" * 19,
    "9" * 40, "9" * 5_000, "1000000000", "2147483648", "0x10", "1_0", "1e", "+", "abc", "\u00bd",
    "\u0663", "\u00e9", "\0", "null", "true", "{}", "[" * 20_000, "{'weight':", "{'weight': 'a'}",
    "{'weight': None}", "{1: " * 500, "/", "//", "-", ",", ";", "#", "\ufeff",
)  # fmt: skip
ODD_TYPES = (
    "<f8", ">f8", "<f4", "<f2", "<f16", "<i8", ">i2", "|u1", "|b1", "<c16", "<U3", "|S4", "|O",
    "<M8[s]", "|V8", "<f99", "", "<U0", "<U1000000000", [("a", "<f8")], [["a"]], None, 3,
)  # fmt: skip
ODD_SHAPES = (
    (), (0,), (0, 3), (1,), (10**9,), (2**62, 4), (2**63, 2**63), (10**30,), (-1, 3), (3, -3),
    (1,) * 40, (0, 2**62), (0, 10**30), [3, 3], "33", None, (1.5, 2), (True, 3), (10**6, 10**6),
)  # fmt: skip
ODD_VALUES = (
    None, True, -1, 0, 1.5, 1e400, float("nan"), 10**30, "", "abc", [], {}, [[]], [1, "a"],
    {"a": 1}, "\u202e", "\0", -(10**9), 1e-320,
)  # fmt: skip


def pick(draw: np.random.Generator, every: Any) -> Any:
    """One of several."""
    return every[int(draw.integers(len(every)))]


def bytes_spoiled(content: bytes, draw: np.random.Generator) -> bytes:
    """Bits flipped, bytes changed, a part left out, doubled or filled, or an end cut off."""
    spoiled = bytearray(content)
    for _ in range(draw.integers(1, 4)):
        if not spoiled:
            break
        first = int(draw.integers(len(spoiled)))
        last = min(len(spoiled), first + int(draw.integers(1, 64)))
        how = draw.integers(7)
        if how == 0:
            spoiled[first] ^= 1 << int(draw.integers(8))
        elif how == 1:
            spoiled[first] = int(draw.integers(256))
        elif how == 2:
            del spoiled[first:last]
        elif how == 3:
            spoiled[first:first] = spoiled[first:last]
        elif how == 4:
            spoiled[first:last] = bytes([int(pick(draw, (0, 255, 32)))]) * (last - first)
        elif how == 5:
            del spoiled[first:]
        else:
            number = int(pick(draw, (2**31 - 1, 2**32 - 1, 2**31, 10**9, 0)))
            spoiled[first : first + 4] = struct.pack("<I", number)
    return bytes(spoiled)


def words_spoiled(text: str, draw: np.random.Generator) -> str:
    """Words changed, lines left out, doubled or in another order, or other ends of lines."""
    lines = [line.split(" ") for line in text.splitlines()]
    for _ in range(draw.integers(1, 4)):
        if not lines:
            break
        k = int(draw.integers(len(lines)))
        word, how = int(draw.integers(len(lines[k]))), draw.integers(8)
        if how < 4:
            lines[k] = [*lines[k][:word], pick(draw, ODD_WORDS), *lines[k][word + 1 :]]
        elif how == 4:
            lines[k] = lines[k][:word] + lines[k][word + 1 :]
        elif how == 5:
            lines.pop(k)
        elif how == 6:
            lines[k:k] = [lines[k]] * int(pick(draw, (1, 2, 1_000)))
        else:
            draw.shuffle(lines)
    end = pick(draw, ("\n", "\n", "\n", "\r\n", "\r"))
    return end.join(" ".join(words) for words in lines) + end


def npy_of(array: np.ndarray) -> bytes:
    file = BytesIO()
    np.save(file, array)
    return file.getvalue()


def npy_spoiled(array: np.ndarray, draw: np.random.Generator) -> bytes:
    """The file of an array: of another type, shape or order, with a header that lies, odd numbers
    in it, or spoiled bytes."""
    how = draw.integers(5)
    if how == 0:
        return bytes_spoiled(npy_of(array), draw)
    if how == 1:
        odd = array.astype(float)
        for _ in range(draw.integers(1, 4)):
            odd[tuple(draw.integers(odd.shape))] = pick(
                draw, (np.nan, np.inf, -np.inf, 1e300, -1e38, 1e-320, 1e30, -1.0, 0.0)
            )
        return npy_of(odd)
    if how == 2:
        kind = pick(draw, ("f2", ">f4", ">f8", "f16", "c8", "i1", "u2", ">i8", "?", "U5", "O"))
        with np.errstate(all="ignore"):
            return npy_of(np.asfortranarray(array).astype(kind))
    if how == 3:
        turned = (array[..., None], array[:0], array.T, array.ravel(), array[..., :-1], array[None])
        return npy_of(pick(draw, turned))
    shape = pick(draw, ODD_SHAPES) if draw.integers(2) else array.shape
    kind = pick(draw, ODD_TYPES) if draw.integers(2) else array.dtype.str
    said = f"{{'descr': {kind!r}, 'fortran_order': {pick(draw, (True, False, 3))}, "
    said += f"'shape': {shape!r}, }}"
    said = pick(draw, (said, said, said, said[:-5], said + "(" * 900, said.replace("descr", "d")))
    version = bytes(pick(draw, ((1, 0), (1, 0), (2, 0), (3, 0), (9, 9))))
    length = struct.pack("<H" if version[0] == 1 else "<I", len(said) + 1)
    return b"\x93NUMPY" + version + length + said.encode() + b"\n" + array.tobytes()


def json_spoiled(said: Any, draw: np.random.Generator) -> str:
    """What JSON says, with a value of it changed or left out, or spoiled as text."""
    how = draw.integers(6)
    if how == 0:
        return words_spoiled(json.dumps(said), draw)
    if how == 1:
        return pick(draw, ("[" * 100_000, '{"a":' * 100_000, "[" * 60 + "]" * 60, "", "3", "null"))
    if how == 2:
        return bytes_spoiled(json.dumps(said).encode(), draw).decode(errors="replace")
    said = json.loads(json.dumps(said))
    for _ in range(draw.integers(1, 4)):
        _change(said, draw)
    return json.dumps(said)


def _change(said: Any, draw: np.random.Generator) -> None:
    """One value somewhere inside, changed or left out."""
    while isinstance(said, list | dict) and said:
        key = pick(draw, [*(said if isinstance(said, dict) else range(len(said)))])
        inside = said[key]
        if isinstance(inside, list | dict) and inside and draw.integers(4):
            said = inside
        elif draw.integers(4):
            said[key] = deepcopy(pick(draw, ODD_VALUES))
            return
        else:
            said.pop(key)
            return
