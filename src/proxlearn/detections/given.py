"""What may be given as a picture, and the pictures of a folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from proxlearn.errors import FileError, InputError
from proxlearn.images.read import read_image

ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif")
EXPECTED = (
    "expected the path of a picture, an array (height, width, 3) or (3, height, width) of whole "
    "numbers from 0 to 255 or of others from 0 to 1, or a picture of Pillow"
)


class Picture(NamedTuple):
    """A picture with the name of its file, where it has one."""

    name: str | None
    image: UInt8[Tensor, "3 h w"]


class Pictures:
    """The pictures of a folder and of those inside it, by name, read as they are asked for. Those
    that cannot be read are left out, and `skipped` then says why, by name."""

    def __init__(self, folder: Path):
        every = (file for file in folder.rglob("*") if file.suffix.lower() in ENDINGS)
        self.folder, self.files = folder, sorted(every)
        self.skipped: dict[str, str] = {}
        if not self.files:
            raise FileError(f"There are no pictures in {folder}: give files of {_listed()}.")

    def __len__(self) -> int:
        """How many there are, before any is skipped."""
        return len(self.files)

    def __iter__(self) -> Iterator[Picture]:
        self.skipped = {}
        for file in self.files:
            name = str(file.relative_to(self.folder))
            try:
                image = read_image(file)
            except FileError as error:
                self.skipped[name] = str(error)
            else:
                yield Picture(name, image)

    def report(self) -> str | None:
        """A sentence on what was skipped in the last round; None where nothing was."""
        if not self.skipped:
            return None
        names = ", ".join(self.skipped)
        return f"{len(self.skipped)} of {len(self)} pictures were skipped: {names}."

    def check_some_were_read(self) -> None:
        """An error if the last round had nothing to give."""
        if len(self.skipped) == len(self):
            first, reason = next(iter(self.skipped.items()))
            raise FileError(
                f"None of the {len(self)} pictures in {self.folder} can be read, such as {first}: "
                f"{reason}"
            )


def picture_from(given: Any) -> Picture:
    """One picture: a file, an array or tensor, or a picture of Pillow."""
    if isinstance(given, str | Path):
        return Picture(Path(given).name, read_image(given))
    if hasattr(given, "convert") and hasattr(given, "size"):  # of Pillow, which need not be there
        given = np.array(given.convert("RGB"))
    try:
        pixels = given.detach().cpu() if isinstance(given, Tensor) else torch.tensor(given)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"The picture is {type(given).__name__}; {EXPECTED}.") from None
    if pixels.ndim != 3 or 3 not in (pixels.shape[0], pixels.shape[-1]) or not pixels.numel():
        raise InputError(f"The picture is an array {tuple(pixels.shape)}; {EXPECTED}.")
    pixels = pixels.permute(2, 0, 1) if pixels.shape[-1] == 3 else pixels
    return Picture(None, _whole(pixels).contiguous())


def _whole(pixels: Tensor) -> UInt8[Tensor, "3 h w"]:
    """Whole numbers from 0 to 255."""
    if pixels.dtype == torch.uint8:
        return pixels
    low, high = pixels.amin().item(), pixels.amax().item()
    if not (pixels.is_floating_point() and low >= 0 and high <= 1):
        kind = str(pixels.dtype).removeprefix("torch.")
        raise InputError(f"The picture is an array of {kind} from {low:g} to {high:g}; {EXPECTED}.")
    return (255 * pixels).round().to(torch.uint8)


def _listed() -> str:
    return f"{', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
