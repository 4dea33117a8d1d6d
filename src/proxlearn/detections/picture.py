"""A picture with its boxes drawn into it, for a file."""

import colorsys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from proxlearn.common.files import write_atomically
from proxlearn.detections.answer import Box, Detections
from proxlearn.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
LEAST = 480  # pixels of the longer side: smaller pictures are enlarged, so that scores can be read
TURN = 0.618  # of the circle of hues, from one box to the next
LINE, LETTERS = 1 / 250, 1 / 40  # of the longer side


def picture(image: "Image", found: Detections, path: str | Path) -> Path:
    """Draw the boxes that are listed, each with its score; png or jpg."""
    from PIL import ImageDraw, ImageFont

    kind = FORMATS.get(Path(path).suffix.lower())
    if kind is None:
        raise InputError(f"Cannot draw to {path}: its ending must be one of {', '.join(FORMATS)}.")
    scale = max(1, round(LEAST / max(image.size)))
    canvas = image.resize((scale * image.width, scale * image.height))
    pen, longest = ImageDraw.Draw(canvas), max(canvas.size)
    font, line = ImageFont.load_default(max(10, longest * LETTERS)), max(2, round(longest * LINE))
    for k, box in reversed([*enumerate(found.boxes)]):  # the best on top
        color = _color(k)
        sides = _sides(box, scale)
        pen.rectangle(sides, outline=color, width=line)
        label = pen.textbbox((0, 0), f"{box.score:.2f}", font=font)
        left = min(sides[0], canvas.width - label[2])
        top = max(0.0, sides[1] - label[3] - line)
        pen.rectangle((left, top, left + label[2] + line, top + label[3] + line), fill=color)
        pen.text((left + line / 2, top), f"{box.score:.2f}", fill="black", font=font)
    file = BytesIO()
    canvas.save(file, kind, quality=90)
    return write_atomically(path, file.getvalue())


def _sides(box: Box, scale: int) -> tuple[float, float, float, float]:
    """Left, top, right, bottom, in the pixels that are drawn."""
    x, y, width, height = (scale * each for each in (box.x, box.y, box.width, box.height))
    return x, y, x + width, y + height


def _color(k: int) -> tuple[int, int, int]:
    """A bright colour, unlike that of the boxes before."""
    red, green, blue = colorsys.hsv_to_rgb(k * TURN % 1.0, 0.75, 1.0)
    return round(255 * red), round(255 * green), round(255 * blue)
