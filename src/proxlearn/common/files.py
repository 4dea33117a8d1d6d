"""Files that are written whole or not at all, under a temporary name that is then changed; the
folders they go to; and rows, lines of JSON."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from proxlearn.common.checks import path_of
from proxlearn.errors import FileError

LONGEST_FOLDER = 60  # characters of a folder's name, of four bytes each at most
TEMPORARY = ".tmp"  # the ending of a file's name while it is written
TEMPORARY_BYTES = 16  # how much longer the name is then


@contextmanager
def whole_or_nothing(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to: at the end what is there is flushed to the disk and renamed to
    `path`, so that even after a power cut a file there is whole."""
    path = writable_file(path)
    temporary = path.parent / f".{path.name}.{os.getpid()}{TEMPORARY}"
    try:
        yield temporary
        _to_disk(temporary)
        temporary.replace(path)
        with suppress(OSError):  # not every system can flush a folder
            _to_disk(path.parent)
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror}.") from None
    finally:
        temporary.unlink(missing_ok=True)


def _to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


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


def usual_folder(name: str) -> Path:
    """A folder in runs/ named for a problem or a file, whatever its name may be."""
    return Path("runs") / (
        re.sub(r"[^\w .,+=-]", "_", name).strip(". ")[:LONGEST_FOLDER] or "problem"
    )


def writable_folder(folder: str | Path) -> Path:
    """The folder, made where missing; an error before any work is done if it cannot be written."""
    folder = path_of(folder, "folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        wrong = None if os.access(folder, os.W_OK) else "no permission"
    except OSError as error:
        wrong = error.strerror
    if wrong:
        raise FileError(f"Cannot write to the folder {folder}: {wrong}. Choose another folder.")
    return folder


def writable_file(path: str | Path) -> Path:
    """The file that a path leads to, its folder made where missing; an error before any work is
    done if there is no file to write, but a folder, a pipe or a device: renaming would put a file
    in the place of /dev/null."""
    path = path_of(path, "file to write", TEMPORARY_BYTES)
    if path.is_symlink():  # which stays, and leads to what is written
        path = Path(os.path.realpath(path))
    writable_folder(path.parent)
    if path.is_dir():
        raise FileError(f"{path} is a folder: give the name of a file to write.")
    if path.exists() and not path.is_file():
        raise FileError(f"{path} is a pipe or a device: give the name of a file to write.")
    return path


def write_rows(path: str | Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Write rows as a whole file of JSON lines, in place of any file that was there."""
    return write_atomically(path, "".join(json.dumps(each) + "\n" for each in rows))


def append_rows(path: str | Path, rows: Iterable[dict[str, Any]]) -> None:
    """Add rows to a file of JSON lines."""
    path = writable_file(path)
    try:
        with path.open("a") as file:
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
