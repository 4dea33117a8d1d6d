"""Picture files as tensors."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from proxlearn.errors import FileError, ProxlearnError

Image = UInt8[Tensor, "3 h w"]


class MissingImagesError(ProxlearnError, ImportError):
    """Pillow is not installed."""


def read_image(path: str | Path) -> Image:
    """A picture file, RGB, as a camera's orientation says it is to be seen."""
    try:
        from PIL import Image as Pillow
        from PIL import ImageOps
    except ImportError:
        raise MissingImagesError(
            "Pictures are read by Pillow, which is not installed: pip install 'proxlearn[images]'"
        ) from None
    if not Path(path).is_file():
        raise FileError(f"There is no picture at {path}: check the path.")
    try:
        with Pillow.open(path) as file:
            pixels = np.array(ImageOps.exif_transpose(file).convert("RGB"))
    except (OSError, ValueError, SyntaxError) as error:
        raise FileError(f"{path} cannot be read as a picture: {error}.") from None
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def stretched(image: Image, side: int) -> Image:
    """The same, stretched to a square."""
    square = torch.nn.functional.interpolate(
        image[None].float(), (side, side), mode="bilinear", antialias=True
    )
    return square[0].round().clamp(0, 255).byte()
