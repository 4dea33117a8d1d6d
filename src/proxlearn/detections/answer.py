"""The boxes of a picture in its own pixels, ready to read, to save and to draw."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.table import Table

from proxlearn.common.files import write_atomically
from proxlearn.common.printed import printed
from proxlearn.common.words import counted


@dataclass(frozen=True)
class Box:
    """A box in pixels, from its left upper corner, as COCO has it; `share` is that of the starts
    that ended there, and `score` says from 0 to 1 how sure it is."""

    x: float
    y: float
    width: float
    height: float
    share: float
    score: float

    @property
    def bbox(self) -> list[float]:
        """x, y, width, height, to a hundredth of a pixel."""
        return [round(each, 2) for each in (self.x, self.y, self.width, self.height)]

    def to_json(self) -> dict[str, Any]:
        return {"box": self.bbox, "share": round(self.share, 4), "score": round(self.score, 4)}


@dataclass(frozen=True)
class Detections:
    """The boxes of one picture, the best first."""

    boxes: list[Box]
    below: list[Box]
    """those with a score below the threshold"""
    threshold: float
    """the score from which boxes are listed"""
    chosen: str
    """how the threshold was chosen, in words"""
    width: int
    height: int
    name: str | None
    """of the picture's file, where it has one"""
    doubts: list[str]
    """what speaks against relying on this, a sentence each"""

    def __len__(self) -> int:
        return len(self.boxes)

    def __repr__(self) -> str:
        return printed(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        yield self.summary()
        if self.boxes:
            yield self.table()
        yield from self.doubts

    def summary(self) -> str:
        """What was found, in a sentence."""
        found, less = len(self.boxes), len(self.below)
        boxes = counted(found, "box", "boxes")
        others = f"; {less} other{'s' * (less != 1)} scored less" if less else ""
        score = f"with a score of at least {self.threshold:.3g}, {self.chosen}"
        return f"Found {boxes} {score}{others}."

    def table(self) -> Table:
        """A line for each box."""
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        for heading in ("", "x", "y", "width", "height", "score", "starts"):
            table.add_column(heading, justify="right")
        for k, each in enumerate(self.boxes):
            numbers = (f"{number:.1f}" for number in each.bbox)
            table.add_row(str(k + 1), *numbers, f"{each.score:.3f}", f"{each.share:.1%}")
        return table

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON has it; `box` is x, y, width, height in pixels."""
        known = {name: getattr(self, name) for name in ("name", "width", "height", "threshold")}
        lists = {k: [each.to_json() for each in getattr(self, k)] for k in ("boxes", "below")}
        return known | lists | {"doubts": self.doubts}

    def save(self, path: str | Path) -> Path:
        """Write it as a JSON file."""
        return write_atomically(path, json.dumps(self.to_json(), indent=1))
