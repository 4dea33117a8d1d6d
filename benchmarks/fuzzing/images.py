"""Images: PNG, JPEG, GIF, BMP, TIFF and WebP, cut short, of sizes not true, in all modes."""

import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import proxlearn as px
from fuzzing._spoiled import bytes_spoiled, npy_spoiled, pick
from fuzzing.frame import Act, WrongAnswerError, command, finite
from proxlearn.images.read import read_image
from proxlearn.networks.boxes import Boxes
from proxlearn.problems.detection import Detection

WHAT = "images (png, jpg, gif, bmp, tiff, webp, npy)"
CASES = 250
SIDE = 32
FORMATS = ("png", "jpg", "gif", "bmp", "tiff", "webp")
MODES = ("RGB", "RGBA", "L", "LA", "P", "1", "I;16", "CMYK", "F", "I")


def prepare(folder: Path) -> Any:
    generator = np.random.default_rng(0)
    picture = Image.fromarray(generator.integers(0, 256, (40, 60, 3), dtype=np.uint8))
    for file_format in FORMATS:
        picture.save(folder / f"a.{file_format}")
    operator = px.Operator.untrained(
        Detection(side=SIDE), Boxes(mixed=8, channels=8, width=16, blocks=1), lam=1.0
    )
    operator.save(folder / "operator.safetensors")
    px.detect(folder / "a.png", operator, starts=4)
    return picture, operator, str(folder / "operator.safetensors")


def case(draw: np.random.Generator, prepared: Any, folder: Path) -> tuple[str, Act]:
    picture, operator, saved = prepared
    kind = pick(draw, (*FORMATS, *FORMATS[:2], "header.png", "header.bmp", "npy"))
    if kind == "npy":
        content = npy_spoiled(np.asarray(picture.resize((SIDE, SIDE))).transpose(2, 0, 1), draw)
    elif "header" in kind:
        content = _other_size(_saved(picture, kind[-3:]), draw)
    else:
        content = _saved(_other(picture, draw), kind)
        for _ in range(draw.integers(3)):
            content = bytes_spoiled(content, draw)
    file = folder / f"image.{kind}"
    file.write_bytes(content)
    about = f"{file.name}: {content[:300]!r}"
    if not draw.integers(8):
        typed = ("detect", file.name, "--operator", saved, "--starts", "4", "--out", "out")
        return f"{' '.join(typed)}: {about}", lambda: command(*typed)
    if kind == "npy":
        return f"tau {about}", lambda: finite(operator.instances.read(str(file)))
    return about, lambda: _detected(file, operator)


def _other(picture: Image.Image, draw: np.random.Generator) -> Image.Image:
    """Another mode or size, a clear colour, or turned by what its file says."""
    mode = pick(draw, MODES)
    other = picture.convert("L").convert("I").convert("I;16") if mode == "I;16" else picture
    other = other.convert(mode) if mode != "I;16" else other
    size = pick(draw, ((60, 40), (1, 1), (1, 3_000), (3_000, 1), (7, 5)))
    other = other.resize(size) if mode not in ("P", "1", "I;16") else other.crop((0, 0, *size))
    if draw.integers(2):
        other.info["transparency"] = int(draw.integers(300))
    if draw.integers(2):
        other.getexif()[0x0112] = int(draw.integers(12))
    return other


def _saved(picture: Image.Image, file_format: str) -> bytes:
    """The file of a picture, in RGB where the format does not know its mode."""
    name = "JPEG" if file_format == "jpg" else file_format.upper()
    for each in (picture, picture.convert("L").convert("RGB")):
        file = BytesIO()
        try:
            each.save(file, name, exif=each.getexif())
        except (OSError, ValueError, KeyError, TypeError, struct.error):
            continue
        return file.getvalue()
    raise AssertionError(f"{file_format} knows no red, green and blue")


def _other_size(content: bytes, draw: np.random.Generator) -> bytes:
    """A header with another size, and where there is one, a checksum that is right."""
    huge = ((60_000, 60_000), (2**31 - 1, 1), (1, 2**31 - 1), (0, 0), (13_000, 13_000), (9_000, 9))
    width, height = pick(draw, (*huge, (2**31, 2**31), (70_000, 2_500), (61, 40), (60, 41)))
    if content[:2] == b"BM":
        sizes = struct.pack("<ii", min(width, 2**31 - 1), -min(height, 2**31 - 1))
        return content[:18] + sizes + content[26:]
    header = b"IHDR" + struct.pack(">II", width, height) + content[24:29]
    return content[:12] + header + struct.pack(">I", zlib.crc32(header)) + content[33:]


def _detected(file: Path, operator: px.Operator) -> None:
    """The boxes in a picture, which have to be finite, and the picture as an instance."""
    found = px.detect(file, operator, starts=4, threshold=0.0)
    assert isinstance(found, px.Detections)
    finite(*([*each.bbox, each.score] for each in found.boxes))
    if read_image(file, SIDE).shape != (3, SIDE, SIDE):
        raise WrongAnswerError("an image of another size")
