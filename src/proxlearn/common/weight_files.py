"""Files of trained weights: one safetensors file with a header, JSON, that holds the rest, and a
checksum of both."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as from_safetensors
from safetensors.torch import save as to_safetensors
from torch import Tensor

from proxlearn.common.contents import brief, content_of, json_of
from proxlearn.common.files import write_atomically
from proxlearn.errors import FileError

Header = dict[str, Any]  # all that a trained thing's file holds but its weights, as JSON
Weights = dict[str, Tensor]


def write_weights(
    path: str | Path, kind: str, version: int, header: Header, weights: Weights
) -> Path:
    """Write the weights of a trained thing of this kind, and a header with everything else."""
    about = {"format": f"proxlearn-{kind}", "version": str(version), "header": json.dumps(header)}
    whole = {name: each.detach().cpu().clone() for name, each in weights.items()}
    about["sha256"] = _checksum(about["header"], whole)
    return write_atomically(path, to_safetensors(whole, about))


def read_weights(
    path: str | Path, kind: str, version: int, sealed_from: int | None = None
) -> tuple[Header, Weights]:
    """The header and the weights that `write_weights` wrote of this kind, up to this version; from
    the version `sealed_from` on, a file without a checksum is damaged."""
    path = _file_of(path, kind)
    weights, about = _opened(path, kind)
    written = _check_version(path, about, version)
    if "sha256" in about or (sealed_from is not None and written >= sealed_from):
        _check_sum(path, kind, weights, about)
    header = json_of(about.get("header", "").encode(), f"The header of {brief(path)}")
    if not isinstance(header, dict):
        raise FileError(f"The header of {brief(path)} is no object of JSON: save it again.")
    return header, weights


def metadata_of(content: bytes) -> dict[str, str]:
    """What a safetensors file says besides its tensors."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]).get("__metadata__", {})


def _file_of(path: str | Path, kind: str) -> Path:
    """The file itself, where the folder of a training is given."""
    if not Path(path).is_dir():
        return Path(path)
    file = Path(path) / f"{kind}.safetensors"
    if not file.is_file():
        raise FileError(f"{path} is a folder without {file.name}: give the {kind}'s file.")
    return file


def _opened(path: Path, kind: str) -> tuple[Weights, dict[str, str]]:
    content = content_of(path, what=f"{kind} file")
    try:
        weights, about = from_safetensors(content), metadata_of(content)
    except (SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise FileError(
            f"{brief(path)} is not a whole safetensors file ({brief(error)}): it may be cut short "
            f"or of another kind. Save the {kind} again with {kind}.save(path)."
        ) from None
    if about.get("format") != f"proxlearn-{kind}":
        raise FileError(f"{brief(path)} is a safetensors file, but holds no proxlearn {kind}.")
    return weights, about


def _check_version(path: Path, about: dict[str, str], newest: int) -> int:
    """The version in which the file was written, if this proxlearn can read it."""
    try:
        written = int(about["version"])
    except (LookupError, ValueError) as error:
        raise FileError(f"The header of {brief(path)} cannot be read: {brief(error)}.") from None
    if written > newest:
        raise FileError(
            f"{brief(path)} has format {written}, newer than the {newest} that this version of "
            "proxlearn reads: upgrade proxlearn."
        )
    return written


def _check_sum(path: Path, kind: str, weights: Weights, about: dict[str, str]) -> None:
    """A damaged file would give other solutions without a word."""
    if "sha256" not in about:
        wrong = f"it has no checksum, as every file of format {about['version']} has"
    elif about["sha256"] != _checksum(about.get("header", ""), weights):
        wrong = "its checksum is not that of what it holds"
    else:
        return
    raise FileError(
        f"{brief(path)} is damaged: {wrong}. Copy it again, or save the {kind} again with "
        f"{kind}.save(path)."
    )


def _checksum(header: str, weights: Weights) -> str:
    """The checksum of all that a file says."""
    found = sha256(header.encode())
    for name in sorted(weights):
        found.update(name.encode() + weights[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
