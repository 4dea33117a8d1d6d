"""Images and boxes as COCO lists them: a JSON file with `images` and `annotations`."""

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from proxlearn.common.checks import is_number
from proxlearn.common.contents import content_of, json_of, text_of
from proxlearn.common.progress import late_bar
from proxlearn.errors import FileError
from proxlearn.images.packed import SIDE, Packed
from proxlearn.images.read import Size, as_webp, opened, stretched

QUALITY = 85  # of the WebP files that are packed, from 1 to 100
SMALLEST = 0.5  # pixels: boxes with a shorter side are none, and what is beyond by less is not
WANTED = "annotations/instances_*.json, or instances*.json"


@dataclass(frozen=True)
class Report:
    """What was read, and what was left out and why; `print` says it in sentences."""

    images: int
    """listed"""
    packed: int
    """that could be read"""
    without: int
    """of those, how many have no boxes"""
    boxes: int
    """listed"""
    kept: int
    """of images that could be read"""
    clipped: int
    """of those, how many reached beyond their image"""
    crowds: int
    """boxes of many things at once, left out"""
    none: int
    """boxes left out that are outside their image, have no area, or are not four numbers"""
    lost: int
    """boxes of images that are not listed or could not be read"""
    skipped: dict[str, str] = field(default_factory=dict)
    """why images could not be read, by their files"""

    def __str__(self) -> str:
        lines = [
            f"{self.packed:,} of {self.images:,} images, {self.without:,} of them without boxes.",
            f"{self.kept:,} of {self.boxes:,} boxes, {self.clipped:,} clipped to their image.",
            f"Left out: {self.crowds:,} boxes of crowds, {self.none:,} without an area in the "
            f"image, {self.lost:,} of images that are not there.",
        ]
        if self.skipped:
            _, why = next(iter(self.skipped.items()))
            lines.append(f"{len(self.skipped):,} images were skipped. The first: {why}")
        return "\n".join(lines)


class Listed(NamedTuple):
    """An image of a list, not yet opened."""

    file: Path
    train: bool
    size: Size | None  # that its boxes are in
    boxes: list[Any]  # (left, top, width, height) in pixels, not yet checked


def read_coco(
    path: str | Path, images: str | Path | None = None, side: int = SIDE, quality: int = QUALITY
) -> tuple[Packed, Report]:
    """The images and boxes of a COCO list, every file opened, stretched to `side` x `side` and kept
    as a WebP file. The path is that of a JSON file, or of a folder with `instances.json` or
    `annotations/instances_*.json`. The folder of the images is given, or beside the list.

    An image is to train on if the list says `"split": "train"` of it or, where it says nothing,
    unless the list's name has "val" or "test" in it. Images that cannot be read are left out, and
    so are boxes that are none; the report has their numbers."""
    counts: Counter[str] = Counter()
    listed = [each for one in _lists(Path(path)) for each in _entries(one, images, counts)]
    listed.sort(key=lambda each: not each.train)
    skipped: dict[str, str] = {}
    files, boxes, names, trained = [], [], [], 0
    for entry, read in zip(listed, _opened_all(listed, side, quality)):
        if isinstance(read, FileError):
            skipped[str(entry.file)] = str(read)
            counts["lost"] += len(entry.boxes)
            continue
        file, size = read
        files.append(file)
        boxes.append(_in_parts(entry.boxes, entry.size or size, counts))
        names.append(entry.file.name)
        trained += entry.train
    without = sum(not len(each) for each in boxes)
    named = {k: counts[k] for k in ("boxes", "kept", "clipped", "crowds", "none", "lost")}
    report = Report(
        images=len(listed), packed=len(files), without=without, skipped=skipped, **named
    )
    if not files:
        raise FileError(f"No image of {path} can be read. {report}")
    return Packed.of(files, boxes, names, trained, side), report


def _opened_all(
    listed: list[Listed], side: int, quality: int
) -> Iterator[tuple[bytes, Size] | FileError]:
    """The file to pack of every image, and the image's own size, or why there is none."""

    def read(entry: Listed) -> tuple[bytes, Size] | FileError:
        try:
            image, size = opened(entry.file, content_of(entry.file), side, entry.size)
        except FileError as error:
            return error
        return as_webp(stretched(image, side), quality), size

    with late_bar("images") as show, ThreadPoolExecutor(os.cpu_count()) as threads:
        for k, done in enumerate(threads.map(read, listed)):
            show((k + 1) / len(listed))
            yield done


def _in_parts(boxes: list[Any], size: Size, counts: Counter[str]) -> Float[np.ndarray, "boxes 4"]:
    """Boxes (cx, cy, w, h) in parts of an image, clipped to it; those that are none left out."""
    whole, kept = np.array(size, float), []
    for box in boxes:
        if not (isinstance(box, list) and len(box) == 4 and all(map(is_number, box))):
            counts["none"] += 1
            continue
        low = np.array(box[:2], float)
        high = low + np.array(box[2:], float)
        inner = low.clip(0, whole), high.clip(0, whole)
        if (inner[1] - inner[0]).min() < SMALLEST:
            counts["none"] += 1
            continue
        beyond = max((inner[0] - low).max(), (high - inner[1]).max())
        counts["clipped"] += bool(beyond > SMALLEST)
        kept.append(np.concatenate(((inner[0] + inner[1]) / 2, inner[1] - inner[0])))
    counts["kept"] += len(kept)
    return np.array(kept).reshape(-1, 4) / np.tile(whole, 2)


def _lists(path: Path) -> list[Path]:
    """The JSON files at a path."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileError(f"There is nothing at {path}: give a JSON file, or a folder with {WANTED}.")
    for pattern in ("annotations/instances_*.json", "instances*.json"):
        if found := sorted(path.glob(pattern)):
            return found
    raise FileError(f"There is no list of images in {path}: it needs {WANTED}.")


def _entries(path: Path, images: str | Path | None, counts: Counter[str]) -> list[Listed]:
    """The images of one list, with their boxes."""
    listed, annotations = _content(path)
    for k, each in enumerate(listed):
        for name, kinds in (("file_name", str), ("id", int | str)):
            if not isinstance(each, dict) or not isinstance(each.get(name), kinds):
                raise FileError(f"Image {k} in {path} has no {name}.")
    boxes = _by_image(path, {each["id"] for each in listed}, annotations, counts)
    folder = _image_folder(path, images, *[each["file_name"] for each in listed[:1]])
    usual = "test" if any(word in path.stem for word in ("val", "test")) else "train"
    return [
        Listed(
            folder / each["file_name"],
            str(each.get("split", usual)).startswith("train"),
            _size(each),
            boxes[each["id"]],
        )
        for each in listed
    ]


def _by_image(
    path: Path, images: set[int | str], annotations: list[Any], counts: Counter[str]
) -> dict[int | str, list[Any]]:
    """The boxes of every image, but for those of crowds."""
    boxes: dict[int | str, list[Any]] = {image: [] for image in images}
    counts["boxes"] += len(annotations)
    for k, each in enumerate(annotations):
        if not isinstance(each, dict) or "bbox" not in each or "image_id" not in each:
            raise FileError(f"Annotation {k} in {path} lacks an image_id or a bbox.")
        image = each["image_id"]
        if each.get("iscrowd"):
            counts["crowds"] += 1
        elif isinstance(image, int | str) and image in boxes:
            boxes[image].append(each["bbox"])
        else:
            counts["lost"] += 1
    return boxes


def _content(path: Path) -> tuple[list[Any], list[Any]]:
    """The images and the annotations of a list, each still to be checked."""
    content = json_of(text_of(path, "list of images").encode(), path)
    for name in ("images", "annotations"):
        if not isinstance(content, dict) or not isinstance(content.get(name), list):
            raise FileError(f'{path} is no list as COCO has them: it needs "{name}": [...].')
    return content["images"], content["annotations"]


def _size(image: dict[str, Any]) -> Size | None:
    """The size that is listed of an image, if there is one."""
    width, height = (image.get(name, 0) for name in ("width", "height"))
    if not (is_number(width) and is_number(height) and min(width, height) > 0):
        return None
    return width, height


def _image_folder(path: Path, images: str | Path | None, first: str = "") -> Path:
    """Where the files are: what is given, or else the first place that has the first of them."""
    if images is not None:
        if not Path(images).is_dir():
            raise FileError(f"There is no folder of images at {images}: check the path.")
        return Path(images)
    here, name = path.parent, path.stem.removeprefix("instances_")
    places = (here, here / name, here / "images", here.parent / name, here.parent / "images" / name)
    return next((each for each in places if (each / first).is_file()), here)
