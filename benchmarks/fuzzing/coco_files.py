"""COCO's lists of images and boxes, and packed images: what JSON should not say, files that are not
there, boxes of no area, arrays that do not fit each other."""

import json
import os
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from fuzzing._spoiled import ODD_VALUES, bytes_spoiled, json_spoiled, npy_of, npy_spoiled, pick
from fuzzing.frame import Act, finite
from fuzzing.meshes import zipped
from proxlearn.images.coco import read_coco
from proxlearn.images.packed import ARRAYS, Packed, read_packed

WHAT = "COCO files and packed images (json, npz)"
CASES = 150
SIDE = 16
ODD_FILES = (
    "../../etc/passwd",
    "/dev/zero",
    "pipe",
    ".",
    "",
    "\0",
    "x" * 300,
    "list.json",
    "0.png/a",
)
ODD_SIZES = (0, -1, 1e308, 10**400, "60", None, 1e-300, True)
ODD_BOXES = (
    [], [1, 2, 3], [1, 2, 3, None], "abcd", [1e308, 1e308, 1e308, 1e308], [10**400, 0, 1, 1],
    [0, 0, -5, 5], [0, 0, 1e-300, 1e-300], [-1e308, 0, 1e308, 5], {"x": 1}, [True] * 4, [[1]] * 4,
)  # fmt: skip


def prepare(folder: Path) -> Any:
    file = BytesIO()
    Image.new("RGB", (60, 40), (200, 100, 0)).save(file, "PNG")
    images = [{"id": k, "file_name": f"{k}.png", "width": 60, "height": 40} for k in range(3)]
    boxes = [{"id": k, "image_id": k % 3, "bbox": [5 * k, 3, 10, 12]} for k in range(5)]
    packed = Packed.of([file.getvalue()] * 3, [np.full((1, 4), 0.5)] * 3, ["a", "b", "c"], 2, SIDE)
    packed.save(folder / "packed.npz").read_bytes()
    packed.decoded()
    arrays = {name: np.array(getattr(packed, name)) for name in ARRAYS}
    content = (folder / "packed.npz").read_bytes()
    return file.getvalue(), {"images": images, "annotations": boxes}, arrays, content


def case(draw: np.random.Generator, prepared: Any, folder: Path) -> tuple[str, Act]:
    image, listed, arrays, packed = prepared
    if not draw.integers(3):
        spoiled = pick(draw, ARRAYS)
        content = (
            _packed(arrays, spoiled, draw) if draw.integers(3) else bytes_spoiled(packed, draw)
        )
        (folder / "packed.npz").write_bytes(content)
        return f"packed.npz with other {spoiled}", lambda: _decode(Path("packed.npz"))
    for k in range(3):
        (folder / f"{k}.png").write_bytes(image)
    os.mkfifo(folder / "pipe")
    text = json_spoiled(listed, draw) if draw.integers(2) else json.dumps(_odd(listed, draw))
    (folder / "list.json").write_text(text, errors="replace")
    return text, lambda: _read(Path("list.json"))


def _odd(listed: dict[str, Any], draw: np.random.Generator) -> dict[str, Any]:
    """A list with something odd in a place where it counts."""
    listed = json.loads(json.dumps(listed))
    image, box = pick(draw, listed["images"]), pick(draw, listed["annotations"])
    how = draw.integers(6)
    if how == 0:
        image["file_name"] = pick(draw, ODD_FILES)
    elif how == 1:
        image[pick(draw, ("width", "height"))] = pick(draw, ODD_SIZES)
    elif how == 2:
        box["bbox"] = pick(draw, ODD_BOXES)
    elif how == 3:
        image[pick(draw, ("id", "split"))] = pick(draw, ODD_VALUES)
    elif how == 4:
        box[pick(draw, ("image_id", "iscrowd"))] = pick(draw, ODD_VALUES)
    else:
        listed["images"] = [image] * int(pick(draw, (0, 2, 100)))
    return listed


def _packed(arrays: dict[str, np.ndarray], spoiled: str, draw: np.random.Generator) -> bytes:
    parts = {name: npy_of(array) for name, array in arrays.items()}
    array = arrays[spoiled]
    if array.dtype.kind == "U" or not array.ndim:
        odd = (array[..., None], array.astype("S5"), np.array(-1), np.array(10**9), np.array(["a"]))
        parts[spoiled] = npy_of(pick(draw, odd))
    elif draw.integers(2):
        parts[spoiled] = npy_spoiled(array, draw)
    else:
        other = array.astype(float)
        other.flat[draw.integers(other.size)] = pick(draw, (-1, 10**12, np.nan, 1e300, 3, 255))
        with np.errstate(all="ignore"):
            parts[spoiled] = npy_of(other.astype(array.dtype))
    return zipped(parts)


def _read(path: Path) -> None:
    """All boxes are in parts of their image, and the report adds up."""
    packed, report = read_coco(path, side=SIDE)
    finite(packed.boxes)
    assert len(packed) == report.packed
    assert report.kept == len(packed.boxes)
    assert ((packed.boxes >= 0) & (packed.boxes <= 1)).all()
    assert str(report)


def _decode(path: Path) -> None:
    labelled = read_packed(path).decoded()
    finite(labelled.boxes)
