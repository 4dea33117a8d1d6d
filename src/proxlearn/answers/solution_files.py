"""Files of solutions: named arrays in a .npz, .safetensors or .json, with what is said of them and
a checksum of it all, so that a damaged file is seen to be one."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as from_safetensors
from safetensors.numpy import save as to_safetensors

from proxlearn.common.arrays import read_npz
from proxlearn.common.checks import path_of
from proxlearn.common.contents import brief, check_file, content_of, json_of
from proxlearn.common.files import write_atomically, write_npz
from proxlearn.common.weight_files import metadata_of
from proxlearn.errors import FileError, InputError

WHAT = "file of solutions"
MOST_BYTES = 1 << 40  # of a .npz, which is read if there is memory for it
VERSION = 1  # of files with a checksum; those without have none

Arrays = dict[str, np.ndarray]
About = dict[str, Any]  # what is said of arrays, as JSON has it


class Digest:
    """The checksum of an array, whose rows may be added in several parts."""

    def __init__(self, dtype: np.dtype, shape: tuple[int, ...]):
        self.found = sha256(f"{dtype.str} {shape}".encode())

    def add(self, rows: np.ndarray) -> "Digest":
        self.found.update(np.ascontiguousarray(rows).tobytes())
        return self

    def __str__(self) -> str:
        return self.found.hexdigest()


Digests = Mapping[str, Digest | str]  # of each array, by its name


def array_format(path: str | Path) -> str:
    """The ending of a file of arrays; an error if there is no such format."""
    kind = path_of(path).suffix.lower()
    if kind not in READERS:
        raise InputError(f"{path} must end in one of {', '.join(READERS)}.")
    return kind


def write_arrays(path: str | Path, arrays: Arrays, about: About) -> Path:
    """Write named arrays, and what is to be said of them, in the format of the file's ending. JSON
    has lists, with null for NaN and infinity."""
    kind = array_format(path)
    if kind == ".json":
        lists = {k: np.where(np.isfinite(v), v, None).tolist() for k, v in arrays.items()}  # pyright: ignore[reportArgumentType, reportCallIssue]
        content = {"about": sealed(about, _digests_of_lists(lists))} | lists
        return write_atomically(path, json.dumps(content))
    whole = {name: np.ascontiguousarray(each) for name, each in arrays.items()}
    said = json.dumps(sealed(about, _digests(whole)))
    if kind == ".npz":
        return write_npz(path, whole | {"about": np.array(said)})
    return write_atomically(path, to_safetensors(whole, {"about": said}))


def read_arrays(path: str | Path) -> tuple[Arrays, About]:
    """What `write_arrays` wrote, seen to be undamaged."""
    read = READERS[array_format(path)]
    try:
        arrays, about, digests = read(path)
    except (SafetensorError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{brief(path)} is not a whole {WHAT}: {brief(error)}.") from None
    version = about.get("version", 0)
    if isinstance(version, int) and version > VERSION:
        raise FileError(
            f"{brief(path)} has version {version}, newer than the {VERSION} that this "
            "version of proxlearn reads: upgrade proxlearn."
        )
    if unsealed(about) != about and about != sealed(unsealed(about), digests):
        raise FileError(
            f"{brief(path)} is damaged: its checksum is not that of what it holds. Copy it again, "
            "or save the solutions again."
        )
    return arrays, unsealed(about)


def _read_json(path: str | Path) -> tuple[Arrays, About, Digests]:
    lists = json_of(content_of(path, what=WHAT), path)
    about = dict(lists.pop("about"))
    return {k: _numbers(each) for k, each in lists.items()}, about, _digests_of_lists(lists)


def _read_npz(path: str | Path) -> tuple[Arrays, About, Digests]:
    check_file(path, MOST_BYTES, WHAT)
    arrays = read_npz(path, f"a {WHAT}", ("about",))
    about = json_of(str(arrays.pop("about")).encode(), path)
    return arrays, dict(about), _digests(arrays)


def _read_safetensors(path: str | Path) -> tuple[Arrays, About, Digests]:
    content = content_of(path, what=WHAT)
    arrays = from_safetensors(content)
    about = json_of(metadata_of(content)["about"].encode(), path)
    return arrays, dict(about), _digests(arrays)


READERS = {".npz": _read_npz, ".safetensors": _read_safetensors, ".json": _read_json}


def _numbers(lists: Any) -> np.ndarray:
    """The array of nested lists, with NaN for null."""
    array = np.array(lists)
    return array.astype(float) if array.dtype == object else array


def _digests(arrays: Arrays) -> Digests:
    return {name: Digest(each.dtype, each.shape).add(each) for name, each in arrays.items()}


def _digests_of_lists(lists: dict[str, Any]) -> Digests:
    return {name: sha256(json.dumps(each).encode()).hexdigest() for name, each in lists.items()}


def sealed(about: About, digests: Digests) -> About:
    """What is said of arrays, with the version and a checksum of it and of the arrays."""
    about = about | {"version": VERSION}
    text = json.dumps([about, {name: str(each) for name, each in digests.items()}], sort_keys=True)
    return about | {"sha256": sha256(text.encode()).hexdigest()}


def unsealed(about: About) -> About:
    """The same without version and checksum."""
    return {name: each for name, each in about.items() if name not in ("version", "sha256")}
