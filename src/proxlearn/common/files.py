"""Files that are either whole or not there: written under a temporary name, then renamed. Those of
operators and of solutions have a checksum of what they hold, and say when they are damaged."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load as arrays_from_bytes
from safetensors.numpy import save as arrays_to_bytes
from safetensors.torch import load as weights_from_bytes
from safetensors.torch import save as weights_to_bytes
from torch import Tensor

from proxlearn.common.arrays import read_npz
from proxlearn.common.checks import path_of
from proxlearn.common.contents import brief, check_file, content_of, json_of
from proxlearn.errors import FileError, InputError

ARRAY_FORMATS = (".npz", ".safetensors", ".json")
Header = dict[str, Any]  # of a trained thing's file: all but its weights, as JSON
Weights = dict[str, Tensor]
MOST_SOLUTIONS = 1 << 40  # bytes of a .npz, which is read where there is memory for it
LONGEST_NAME = 60  # characters of a folder's name, of four bytes at most
TEMPORARY = ".tmp"  # how the name of a file ends while it is written
TEMPORARY_BYTES = 16  # more that the name has then
ARRAYS_VERSION = 1  # of files of arrays that have a checksum


@contextmanager
def whole_or_nothing(path: str | Path) -> Iterator[Path]:
    """Where to write what is to be at `path`: it gets there, folder and all, once it is whole and
    on the disk, so that it is whole after a power cut, too."""
    path = path_of(path, "file to write", TEMPORARY_BYTES)
    temporary = path.parent / f".{path.name}.{os.getpid()}{TEMPORARY}"
    writable_folder(path.parent)
    try:
        yield temporary
        _to_disk(temporary)
        temporary.replace(path)
        with suppress(OSError):  # not every system can do that with a folder
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


def write_arrays(path: str | Path, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Path:
    """Write named arrays and what is to be said of them (JSON), in the format that the file's
    ending asks for: .npz, .safetensors or .json (lists, with null for what is no number)."""
    kind = array_format(path)
    if kind == ".json":
        lists = {k: np.where(np.isfinite(v), v, None).tolist() for k, v in arrays.items()}  # pyright: ignore[reportArgumentType, reportCallIssue]
        return write_atomically(
            path, json.dumps({"about": sealed(about, _of_lists(lists))} | lists)
        )
    whole = {name: np.ascontiguousarray(each) for name, each in arrays.items()}
    said = json.dumps(sealed(about, _digests(whole)))
    if kind == ".npz":
        return write_npz(path, whole | {"about": np.array(said)})
    return write_atomically(path, arrays_to_bytes(whole, {"about": said}))


def read_arrays(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What `write_arrays` wrote."""
    kind, what = array_format(path), "file of solutions"
    try:
        if kind == ".json":
            lists = json_of(content_of(path, what=what), path)
            about = dict(lists.pop("about"))
            digests = _of_lists(lists)
            arrays = {name: _numbers(each) for name, each in lists.items()}
        else:
            if kind == ".npz":
                check_file(path, MOST_SOLUTIONS, what)
                arrays = read_npz(path, f"a {what}")
                said = str(arrays.pop("about"))
            else:
                content = content_of(path, what=what)
                arrays, said = arrays_from_bytes(content), _metadata(content)["about"]
            about = dict(json_of(said.encode(), path))
            digests = _digests(arrays)
    except (SafetensorError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise FileError(
            f"{brief(path)} is not a whole file of solutions: {brief(error)}."
        ) from None
    version = about.get("version", 0)
    if isinstance(version, int) and version > ARRAYS_VERSION:
        raise FileError(
            f"{brief(path)} has version {version}, newer than the {ARRAYS_VERSION} that this "
            "version of proxlearn reads: upgrade proxlearn."
        )
    if unsealed(about) != about and about != sealed(unsealed(about), digests):
        raise FileError(
            f"{brief(path)} is damaged: its checksum is not that of what it holds. Copy it again, "
            "or save the solutions again."
        )
    return arrays, unsealed(about)


def _numbers(lists: Any) -> np.ndarray:
    """The array of nested lists; what is no number, null, is NaN."""
    array = np.array(lists)
    return array.astype(float) if array.dtype == object else array


class Digest:
    """Of an array, whose rows may come in several parts."""

    def __init__(self, dtype: np.dtype, shape: tuple[int, ...]):
        self.found = sha256(f"{dtype.str} {shape}".encode())

    def add(self, rows: np.ndarray) -> "Digest":
        self.found.update(np.ascontiguousarray(rows).tobytes())
        return self

    def __str__(self) -> str:
        return self.found.hexdigest()


def _digests(arrays: dict[str, np.ndarray]) -> dict[str, Digest]:
    return {name: Digest(each.dtype, each.shape).add(each) for name, each in arrays.items()}


def _of_lists(lists: dict[str, Any]) -> dict[str, str]:
    return {name: sha256(json.dumps(each).encode()).hexdigest() for name, each in lists.items()}


def sealed(about: dict[str, Any], digests: Mapping[str, Digest | str]) -> dict[str, Any]:
    """What is said of arrays, with a version and a checksum of it all."""
    about = about | {"version": ARRAYS_VERSION}
    text = json.dumps([about, {name: str(each) for name, each in digests.items()}], sort_keys=True)
    return about | {"sha256": sha256(text.encode()).hexdigest()}


def unsealed(about: dict[str, Any]) -> dict[str, Any]:
    """The same without them."""
    return {name: each for name, each in about.items() if name not in ("version", "sha256")}


def write_weights(
    path: str | Path, kind: str, version: int, header: Header, weights: Weights
) -> Path:
    """Write one safetensors file of a trained thing: its weights, and a header with the rest."""
    about = {"format": f"proxlearn-{kind}", "version": str(version), "header": json.dumps(header)}
    whole = {name: each.detach().cpu().clone() for name, each in weights.items()}
    about["sha256"] = _checksum(about["header"], whole)
    return write_atomically(path, weights_to_bytes(whole, about))


def _checksum(header: str, weights: Weights) -> str:
    """Of all that a file says: a damaged one would give other solutions, and say nothing."""
    found = sha256(header.encode())
    for name in sorted(weights):
        found.update(name.encode() + weights[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def read_weights(
    path: str | Path, kind: str, version: int, sealed_from: int | None = None
) -> tuple[Header, Weights]:
    """The header and the weights that `write_weights` wrote of this kind, up to this version; from
    the version `sealed_from` on, a file without a checksum is damaged."""
    if Path(path).is_dir():  # of a training
        folder, path = path, Path(path) / f"{kind}.safetensors"
        if not path.is_file():
            raise FileError(f"{folder} is a folder without {path.name}: give the {kind}'s file.")
    content = content_of(path, what=f"{kind} file")
    try:
        weights, about = weights_from_bytes(content), _metadata(content)
    except (SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise FileError(
            f"{brief(path)} is not a whole safetensors file ({brief(error)}): it may be cut short "
            f"or of another kind. Save the {kind} again with {kind}.save(path)."
        ) from None
    if about.get("format") != f"proxlearn-{kind}":
        raise FileError(f"{brief(path)} is a safetensors file, but holds no proxlearn {kind}.")
    try:
        written = int(about["version"])
    except (LookupError, ValueError) as error:
        raise FileError(f"The header of {brief(path)} cannot be read: {brief(error)}.") from None
    if written > version:
        raise FileError(
            f"{brief(path)} has format {written}, newer than the {version} that this version of "
            "proxlearn reads: upgrade proxlearn."
        )
    missing = "sha256" not in about
    if missing and sealed_from is not None and written >= sealed_from:
        raise FileError(
            f"{brief(path)} is damaged: it has no checksum, as every file of format {written} has. "
            f"Copy it again, or save the {kind} again with {kind}.save(path)."
        )
    if not missing and about["sha256"] != _checksum(about.get("header", ""), weights):
        raise FileError(
            f"{brief(path)} is damaged: its checksum is not that of what it holds. Copy it again, "
            f"or save the {kind} again with {kind}.save(path)."
        )
    header = json_of(about.get("header", "").encode(), f"The header of {brief(path)}")
    if not isinstance(header, dict):
        raise FileError(f"The header of {brief(path)} is no object of JSON: save it again.")
    return header, weights


def _metadata(content: bytes) -> dict[str, str]:
    """What a safetensors file says besides its tensors."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]).get("__metadata__", {})


def array_format(path: str | Path) -> str:
    """The ending of a file of arrays; an error if there is no such format."""
    kind = path_of(path).suffix.lower()
    if kind not in ARRAY_FORMATS:
        raise InputError(f"{path} must end in one of {', '.join(ARRAY_FORMATS)}.")
    return kind


def usual_folder(name: str) -> Path:
    """A folder in runs/ named for a problem or a file, whatever its name may be."""
    return Path("runs") / (
        re.sub(r"[^\w .,+=-]", "_", name).strip(". ")[:LONGEST_NAME] or "problem"
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
