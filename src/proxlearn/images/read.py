"""Images from files, as bytes (3, side, side) of red, green and blue."""

import struct
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from proxlearn.common.checks import count, path_of
from proxlearn.common.contents import brief, content_of
from proxlearn.common.memory import afford
from proxlearn.errors import FileError, ProxlearnError

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif")
CLEAR = ("RGBA", "LA", "PA", "RGBa", "La")  # modes in which pixels may be transparent
# What Pillow raises for files that are damaged or are no images.
DAMAGED = (OSError, SyntaxError, ValueError, EOFError, TypeError, LookupError, struct.error)
AT_ONCE = 16  # bytes of a pixel while an image is read
Size = tuple[int, int]  # width and height


class Opened(NamedTuple):
    """An image, and the size that it has in its file."""

    image: "Image"
    size: Size


class MissingPillowError(ProxlearnError, ImportError):
    """Pillow is not installed."""


def read_image(path: str | Path, side: int) -> UInt8[Tensor, "3 s s"]:
    """The image of a file, stretched to a square."""
    path, side = path_of(path, "file of an image"), count("side", side)
    afford(AT_ONCE * side**2, f"An image of {side:,} x {side:,} pixels", "give a smaller side")
    return pixels(stretched(opened(path, content_of(path), side).image, side))


def opened(name: str | Path, content: bytes, side: int, known: Size | None = None) -> Opened:
    """The image in a file's bytes, in RGB and the right way up. A large one may come smaller, but
    not below `side`. Where the size that is `known` of it is that of the image as stored, and not
    as it is when turned, it stays as it is stored."""
    pillow = _pillow()
    from PIL import ImageOps

    try:
        with pillow.open(BytesIO(content)) as stored:
            width, height = size = stored.size
            stored.draft(None, (side, side))  # a JPEG can be decoded at a fraction of its size
            what = f"The image {brief(name)}, {width:,} x {height:,} pixels,"
            afford(AT_ONCE * stored.size[0] * stored.size[1], what, "make it smaller")
            upright = ImageOps.exif_transpose(stored)
            if upright.size != stored.size:  # by a quarter
                if known == size:
                    upright = stored.copy()
                else:
                    size = height, width
            return Opened(_rgb(upright), size)
    except ProxlearnError:
        raise
    except pillow.DecompressionBombError:
        most = 2 * (pillow.MAX_IMAGE_PIXELS or 0)
        raise FileError(
            f"The image {brief(name)} has, by its header, more than {most:,} pixels, which are the "
            "most that are read: make it smaller."
        ) from None
    except DAMAGED as error:
        raise FileError(f"{brief(name)} cannot be read as an image: {_reason(error)}.") from None


def stretched(image: "Image", side: int) -> "Image":
    """Width and height brought to `side`, each pixel a mean of those that it stands for."""
    return image.resize((side, side), _pillow().Resampling.BILINEAR)


def pixels(image: "Image") -> UInt8[Tensor, "3 h w"]:
    """The pixels of an image in RGB."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()


def as_webp(image: "Image", quality: int) -> bytes:
    """The image as a WebP file, two thirds the size of a JPEG that is as good."""
    written = BytesIO()
    image.save(written, "WEBP", quality=quality)
    return written.getvalue()


def _rgb(image: "Image") -> "Image":
    """In RGB: what is transparent is white, and of 16 bits the upper eight are kept."""
    if image.mode == "F":
        raise ValueError("its pixels are fractions; save it with 8 or 16 bits")
    if image.mode.startswith("I"):
        upper = np.asarray(image).astype(np.int64).clip(0, 0xFFFF) >> 8
        return _pillow().fromarray(upper.astype(np.uint8)).convert("RGB")
    if image.mode in CLEAR or "transparency" in image.info:
        image = image.convert("RGBA")
        white = _pillow().new("RGBA", image.size, "white")
        image = _pillow().alpha_composite(white, image)
    return image.convert("RGB")


def _reason(error: Exception) -> str:
    said = brief(error)
    if "cannot identify" in said:
        return f"it is none, or of no kind that is known ({', '.join(FORMATS)} are)"
    return said[:1].lower() + said[1:].rstrip(".") or "it is damaged"


def _pillow():
    try:
        from PIL import Image
    except ImportError:
        raise MissingPillowError(
            "Images need Pillow: pip install 'proxlearn[images]', or pip install pillow."
        ) from None
    return Image
