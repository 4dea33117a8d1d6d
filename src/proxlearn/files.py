"""Files that are either whole or not there: written under a temporary name, then renamed."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from proxlearn.errors import FileError


@contextmanager
def whole_or_nothing(path: str | Path) -> Iterator[Path]:
    """Where to write what is to be at `path`: it gets there, folder and all, once it is whole."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    writable_folder(path.parent)
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror}.") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: str | Path, content: bytes | str) -> Path:
    """Write `content` to `path`, making its folder, so that a reader never sees half of it."""
    with whole_or_nothing(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
    return Path(path)


def write_npz(path: str | Path, arrays: dict[str, np.ndarray]) -> Path:
    """Write named arrays to one file for NumPy."""
    buffer = BytesIO()
    np.savez(buffer, **arrays)  # pyright: ignore[reportArgumentType]
    return write_atomically(path, buffer.getvalue())


def writable_folder(folder: str | Path) -> Path:
    """The folder, made where missing; an error before any work is done if it cannot be written."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"Cannot write to the folder {folder}: {error.strerror}. Choose another with --out."
        ) from None
    if not os.access(folder, os.W_OK):
        raise FileError(f"Cannot write to the folder {folder}: no permission. Choose another.")
    return folder


def write_rows(path: str | Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Write rows as a whole file of JSON lines, in place of any file that was there."""
    return write_atomically(path, "".join(json.dumps(each) + "\n" for each in rows))


def append_rows(path: str | Path, rows: Iterable[dict[str, Any]]) -> None:
    """Add rows to a file of JSON lines."""
    writable_folder(Path(path).parent)
    try:
        with Path(path).open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror}.") from None


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    try:
        rows = [json.loads(line) for line in Path(path).read_text().splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise FileError(f"Cannot read rows from {path}: {error}") from None
    if not all(isinstance(row, dict) for row in rows):
        raise FileError(f"Cannot read rows from {path}: a line is not a JSON object.")
    return rows
