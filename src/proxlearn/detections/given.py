"""What may be given as a picture, and the pictures of a folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from proxlearn.common.checks import array
from proxlearn.common.contents import content_of
from proxlearn.errors import FileError, InputError
from proxlearn.images.read import FORMATS, MissingPillowError, Size, opened

if TYPE_CHECKING:
    from PIL.Image import Image

WHOLE = 1 << 16  # a side that no file has: a picture of all its pixels
EXPECTED = (
    "the path of a picture, an array (height, width, 3) or (3, height, width) of whole "
    "numbers from 0 to 255 or of others from 0 to 1, or a picture of Pillow"
)


class Picture(NamedTuple):
    """A picture in RGB, with the name of its file, where it has one."""

    name: str | None
    image: "Image"  # which may be smaller than that of the file, but not than what is looked at
    size: Size  # of the file's: width and height


class Pictures:
    """The pictures of a folder, by name, read as they are asked for, for an operator that looks at
    `side` x `side` pixels. Those that cannot be read are left out, and `skipped` then says why, by
    name. Folders inside are not looked into."""

    def __init__(self, folder: Path, side: int):
        every = (file for file in folder.iterdir() if file.suffix.lower() in FORMATS)
        self.folder, self.files, self.side = folder, sorted(every), side
        self.skipped: dict[str, str] = {}
        if not self.files:
            raise FileError(f"There are no pictures in {folder}: give {', '.join(FORMATS)}.")

    def __len__(self) -> int:
        """How many there are, before any is skipped."""
        return len(self.files)

    def __iter__(self) -> Iterator[Picture]:
        self.skipped = {}
        for file in self.files:
            try:
                picture = read(file, self.side)
            except FileError as error:
                self.skipped[file.name] = str(error).removeprefix(f"{file} ")
            else:
                yield picture

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


def read(path: str | Path, side: int = WHOLE) -> Picture:
    """The picture of a file; a large one may come smaller, but not below `side`."""
    return Picture(Path(path).name, *opened(path, content_of(path), side))


def picture_from(given: Any, side: int = WHOLE) -> Picture:
    """One picture: a file, an array or tensor, or a picture of Pillow."""
    if isinstance(given, str | Path):
        return read(given, side)
    try:
        from PIL import Image
    except ImportError:
        raise MissingPillowError("Pictures need Pillow: pip install 'proxlearn[images]'.") from None
    if isinstance(given, Image.Image):
        return Picture(None, given.convert("RGB"), given.size)
    pixels = array("The picture", given, EXPECTED).detach().cpu()
    if pixels.ndim != 3 or 3 not in (pixels.shape[0], pixels.shape[-1]) or not pixels.numel():
        raise InputError(f"The picture is an array {tuple(pixels.shape)}; expected {EXPECTED}.")
    pixels = pixels if pixels.shape[-1] == 3 else pixels.permute(1, 2, 0)
    image = Image.fromarray(_whole(pixels, given).contiguous().numpy())
    return Picture(None, image, image.size)


def _whole(pixels: Tensor, given: Any) -> Tensor:
    """Whole numbers from 0 to 255, of pixels that were given as an array of this type."""
    if pixels.dtype == torch.uint8:
        return pixels
    kind = str(getattr(given, "dtype", pixels.dtype)).removeprefix("torch.")
    fractions = pixels.is_floating_point() and "int" not in kind  # unsigned ones came as fractions
    pixels = pixels if pixels.is_floating_point() else pixels.long()
    low, high = pixels.amin().item(), pixels.amax().item()
    if kind == "bool" or not (low >= 0 and high <= (1 if fractions else 255)):
        raise InputError(
            f"The picture is an array of {kind} from {low:g} to {high:g}; expected {EXPECTED}."
        )
    return (255 * pixels).round().to(torch.uint8) if fractions else pixels.to(torch.uint8)
