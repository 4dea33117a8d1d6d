"""Files that are either whole or not there: written under a temporary name, then renamed."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as arrays_to_bytes
from safetensors.torch import save as weights_to_bytes
from torch import Tensor

from proxlearn.common.checks import path_of
from proxlearn.errors import FileError, InputError

TEMPORARY = 16  # bytes more that the name of a file has while it is written
ARRAY_FORMATS = (".npz", ".safetensors", ".json")
Header = dict[str, Any]  # of a trained thing's file: all but its weights, as JSON
Weights = dict[str, Tensor]


@contextmanager
def whole_or_nothing(path: str | Path) -> Iterator[Path]:
    """Where to write what is to be at `path`: it gets there, folder and all, once it is whole."""
    path = path_of(path, "file to write", TEMPORARY)
    temporary = path.parent / f".{path.name}.{os.getpid()}.tmp"
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


def write_arrays(path: str | Path, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> Path:
    """Write named arrays and what is to be said of them (JSON), in the format that the file's
    ending asks for: .npz, .safetensors or .json (lists, with null for what is no number)."""
    said, kind = json.dumps(about), array_format(path)
    if kind == ".npz":
        return write_npz(path, arrays | {"about": np.array(said)})
    if kind == ".safetensors":
        whole = {name: np.ascontiguousarray(each) for name, each in arrays.items()}
        return write_atomically(path, arrays_to_bytes(whole, {"about": said}))
    lists = {k: np.where(np.isfinite(v), v, None).tolist() for k, v in arrays.items()}  # pyright: ignore[reportArgumentType, reportCallIssue]
    return write_atomically(path, json.dumps({"about": about} | lists))


def read_arrays(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What `write_arrays` wrote."""
    kind = array_format(path)
    if not path_of(path).is_file():
        raise FileError(f"There is no file at {path}.")
    try:
        if kind == ".npz":
            with np.load(path) as file:
                arrays = dict(file)
            about = json.loads(str(arrays.pop("about")))
        elif kind == ".safetensors":
            with safe_open(path, framework="np") as file:
                about = json.loads(file.metadata()["about"])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        else:
            lists = json.loads(Path(path).read_text())
            about = lists.pop("about")
            arrays = {name: np.array(each) for name, each in lists.items()}
            # What is no number, null, is NaN.
            arrays = {k: v.astype(float) if v.dtype == object else v for k, v in arrays.items()}
    except (SafetensorError, BadZipFile, OSError, LookupError, TypeError, ValueError) as error:
        raise FileError(f"{path} is not a whole file of solutions: {error!r}.") from None
    return arrays, about


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
    digest = sha256(header.encode())
    for name in sorted(weights):
        digest.update(name.encode() + weights[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def read_weights(path: str | Path, kind: str, version: int) -> tuple[Header, Weights]:
    """The header and the weights that `write_weights` wrote of this kind, up to this version."""
    if Path(path).is_dir():  # of a training
        folder, path = path, Path(path) / f"{kind}.safetensors"
        if not path.is_file():
            raise FileError(f"{folder} is a folder without {path.name}: give the {kind}'s file.")
    elif not Path(path).is_file():
        raise FileError(f"There is no {kind} file at {path}: check the path.")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise FileError(
            f"{path} is not a whole safetensors file ({error}): it may be cut short or of another "
            f"kind. Save the {kind} again with {kind}.save(path)."
        ) from None
    if metadata.get("format") != f"proxlearn-{kind}":
        raise FileError(f"{path} is a safetensors file, but holds no proxlearn {kind}.")
    known = metadata.get("sha256")  # files of earlier versions have none
    if known and known != _checksum(metadata.get("header", ""), weights):
        raise FileError(
            f"{path} is damaged: its checksum is not that of what it holds. Copy it again, or save "
            f"the {kind} again with {kind}.save(path)."
        )
    try:
        written, header = int(metadata["version"]), json.loads(metadata["header"])
    except (LookupError, ValueError) as error:
        raise FileError(f"The header of {path} cannot be read: {error!r}.") from None
    if written > version:
        raise FileError(
            f"{path} has format {written}, newer than the {version} that this version of proxlearn "
            "reads: upgrade proxlearn."
        )
    return header, weights


def array_format(path: str | Path) -> str:
    """The ending of a file of arrays; an error if there is no such format."""
    kind = path_of(path).suffix.lower()
    if kind not in ARRAY_FORMATS:
        raise InputError(f"{path} must end in one of {', '.join(ARRAY_FORMATS)}.")
    return kind


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
