"""Many images with their boxes in one file: they are stored as WebP and decoded by threads."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64, UInt8
from torch import Tensor

from proxlearn.common.arrays import read_npz
from proxlearn.common.batch import Device, move
from proxlearn.common.checks import path_of
from proxlearn.common.contents import brief
from proxlearn.common.files import write_npz
from proxlearn.common.memory import afford
from proxlearn.common.progress import late_bar
from proxlearn.errors import FileError, ProxlearnError
from proxlearn.images.read import opened, pixels, stretched

SIDE = 256  # of images that are stretched to squares, unless told otherwise
ARRAYS = ("content", "offset", "boxes", "box_offset", "names", "trained", "side")


@dataclass(frozen=True)
class Labelled:
    """Images and their boxes on a device, those to train on first."""

    pixels: UInt8[Tensor, "m 3 s s"]
    boxes: Float[Tensor, "m k 4"]
    """(cx, cy, w, h) in parts of the image, filled up with zeros"""
    count: Int64[Tensor, " m"]
    """how many boxes each image has"""
    trained: int
    """how many images are to train on"""

    def __len__(self) -> int:
        return len(self.count)

    def to(self, device: Device) -> "Labelled":
        pixels, boxes, count = move((self.pixels, self.boxes, self.count), device)
        return Labelled(pixels, boxes, count, self.trained)


@dataclass(frozen=True)
class Packed:
    """Images as files, one after the other, and their boxes; image k has the bytes of
    `content` from `offset[k]` up to the next, and so the rows of `boxes` from `box_offset[k]`."""

    content: UInt8[np.ndarray, " bytes"]
    offset: Int64[np.ndarray, " _"]
    boxes: Float32[np.ndarray, "all 4"]
    """(cx, cy, w, h) in parts of the image"""
    box_offset: Int64[np.ndarray, " _"]
    names: tuple[str, ...]
    """the files that they were"""
    trained: int
    """how many are to train on, which are the first; the others are to test on"""
    side: int
    """width and height of the images in pixels"""

    @classmethod
    def of(
        cls,
        files: Sequence[bytes],
        boxes: Sequence[Float[np.ndarray, "_ 4"]],
        names: Sequence[str],
        trained: int,
        side: int,
    ) -> "Packed":
        """Files and boxes put one after the other."""
        content = np.frombuffer(b"".join(files), np.uint8)
        every = np.concatenate([np.zeros((0, 4)), *boxes]).astype(np.float32)
        offset, box_offset = ([0, *map(len, each)] for each in (files, boxes))
        sums = (np.cumsum(each, dtype=np.int64) for each in (offset, box_offset))
        return cls(content, next(sums), every, next(sums), tuple(names), trained, side)

    def __len__(self) -> int:
        return len(self.names)

    def save(self, path: str | Path) -> Path:
        """Write one file (.npz) for `read_packed`."""
        if Path(path).suffix != ".npz":
            raise FileError(f"{path} must end in .npz: that is what packed images are.")
        return write_npz(path, {name: np.array(getattr(self, name)) for name in ARRAYS})

    def boxes_of(self, k: int) -> Float32[np.ndarray, "_ 4"]:
        """Of one image."""
        return self.boxes[self.box_offset[k] : self.box_offset[k + 1]]

    def decoded(self, side: int | None = None) -> Labelled:
        """The pixels of all images, stretched to a side; by default, as they are stored."""
        side = side or self.side
        needed = len(self) * (3 * side**2 + 16 * int(np.diff(self.box_offset).max(initial=1)))
        what = f"{len(self):,} images of {side} x {side} pixels"
        afford(needed, what, "give fewer, or a smaller side")
        every = torch.empty(len(self), 3, side, side, dtype=torch.uint8)

        def decode(k: int) -> None:
            file = self.content[self.offset[k] : self.offset[k + 1]].tobytes()
            image = opened(f"{self.names[k]} among packed images", file, side).image
            every[k] = pixels(stretched(image, side))

        with late_bar("images") as show, ThreadPoolExecutor(os.cpu_count()) as threads:
            for k, _ in enumerate(threads.map(decode, range(len(self)))):
                show((k + 1) / len(self))
        count = np.diff(self.box_offset)
        boxes = torch.zeros(len(self), max(1, int(count.max(initial=0))), 4)
        for k, each in enumerate(count):
            boxes[k, :each] = torch.from_numpy(self.boxes_of(k))
        return Labelled(every, boxes, torch.from_numpy(count), self.trained)


def read_packed(path: str | Path) -> Packed:
    """What `Packed.save` wrote."""
    path = path_of(path, "file of packed images")
    if path.is_dir() or (path.is_file() and path.suffix.lower() != ".npz"):
        raise FileError(
            f"{brief(path)} is no file of packed images (.npz). A list of images with boxes as "
            "COCO has it, or its folder, is packed by read_coco of proxlearn.images.coco: "
            "packed, report = read_coco(path)."
        )
    try:
        arrays = read_npz(path, "packed images", ARRAYS)
        content, offset, boxes, box_offset, names, trained, side = (arrays[k] for k in ARRAYS)
        lists = content, offset, box_offset, names
        if any(each.ndim != 1 for each in lists) or trained.ndim or side.ndim:
            raise ValueError("its arrays are not of the right shape")
        packed = Packed(
            content.astype(np.uint8),
            offset.astype(np.int64),
            boxes.astype(np.float32).reshape(-1, 4),
            box_offset.astype(np.int64),
            tuple(map(str, names)),
            int(trained),
            int(side),
        )
        _check(packed)
    except ProxlearnError:
        raise
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{path} cannot be read as packed images: {brief(error)}.") from None
    return packed


def _check(packed: Packed) -> None:
    """An error where the parts of a file do not fit each other."""
    for offset, whole in ((packed.offset, packed.content), (packed.box_offset, packed.boxes)):
        steps = np.diff(offset)
        fits = len(offset) == len(packed) + 1 and offset[0] == 0 and offset[-1] == len(whole)
        if not fits or steps.min(initial=0) < 0:
            raise ValueError("its offsets do not fit its images and boxes")
    if not (packed.boxes >= 0).all() or not (packed.boxes <= 1).all():
        raise ValueError("some of its boxes are not in parts of the image, from 0 to 1")
    if not 0 <= packed.trained <= len(packed) or not len(packed) or packed.side < 1:
        raise ValueError("it has no images, or fewer than it says")
