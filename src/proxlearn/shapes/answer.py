"""The symmetries of a shape in its own units and pose, ready to read, to save and to draw."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.table import Table

from proxlearn.common.files import write_atomically
from proxlearn.common.printed import printed

Three = tuple[float, float, float]


@dataclass(frozen=True)
class Mirror:
    """A plane `normal . p = offset`, with the mean distance to the shape of its reflected points:
    `residual` in the shape's units, `share` in parts of its size; and `worst`, the distance of the
    farthest of them. The first coordinate of the normal that is not small is positive."""

    normal: Three
    offset: float
    residual: float
    share: float
    worst: float


@dataclass(frozen=True)
class Family:
    """All planes through an axis; `residual`, `share` and `worst` are the largest of those tried.
    With `every_axis`, all planes through the point, as of a sphere; the axis is then any."""

    axis: Three
    point: Three
    residual: float
    share: float
    worst: float
    every_axis: bool = False


@dataclass(frozen=True)
class Turn:
    """An axis through `point` along `direction`, about which turns by 1/`order` take the shape to
    itself, with the mean distance to it of its turned points, and that of the farthest. Of order 0
    are turns by any angle; these are then the largest of those that were tried."""

    direction: Three
    point: Three
    order: int
    residual: float
    share: float
    worst: float

    @property
    def name(self) -> str:
        return f"axis of order {self.order}" if self.order else "axis, any angle"


@dataclass(frozen=True)
class Symmetries:
    """The mirror planes of a shape, single ones and families of infinitely many, and its axes of
    rotation."""

    planes: list[Mirror]
    families: list[Family]
    axes: list[Turn]
    size: float
    """the longest side of the shape's bounding box"""
    tolerance: float
    """the largest residual that counts as a symmetry, in parts of the size"""
    noise: float
    """the residual of a perfect symmetry, in parts of the size: 0 of a mesh, but not of a cloud,
    where it is allowed besides the tolerance"""
    best: Mirror | None
    """the best plane that is none of these, where one was found"""
    doubts: list[str]
    """what speaks against relying on this, a sentence each"""

    @property
    def every(self) -> "list[Family | Mirror | Turn]":
        """All symmetries, in the order of the table."""
        return [*self.families, *self.planes, *self.axes]

    def __len__(self) -> int:
        return len(self.every)

    def __repr__(self) -> str:
        return printed(self)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        yield self.summary()
        if len(self):
            yield self.table()
        yield from self.doubts

    def summary(self) -> str:
        """What was found, in a sentence."""
        if any(each.every_axis for each in self.families):
            return "Every plane through one point is a mirror: the shape is a sphere, or spheres."
        single, families = len(self.planes), len(self.families)
        words = [f"{single} mirror plane{'s' * (single != 1)}"] if single else []
        if families:
            words.append("a continuous family of planes, all those through an axis")
        words += self._axes_in_words()
        if single or families:
            return f"Found {_listed(words)}."
        if self.axes or self.best is None:
            return f"Found {_listed([*words, 'no mirror plane'])}."
        return (
            f"Found no mirror plane. The best one has a residual of {self.best.residual:.3g}, "
            f"{self.best.share:.2%} of the size."
        )

    def _axes_in_words(self) -> list[str]:
        """By order, the largest first; that of a family goes without saying."""
        counts = Counter(axis.order for axis in self.axes)
        any_angle = counts.pop(0, 0) and not self.families
        words = ["an axis of turns by any angle"] if any_angle else []
        for order in sorted(counts, reverse=True):
            many = counts[order]
            words.append(
                f"an axis of order {order}" if many == 1 else f"{many} axes of order {order}"
            )
        return words

    def table(self) -> Table:
        """A line for each plane, family and axis."""
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        headings = ("kind", "normal, or axis", "offset, or a point", "residual", "of size", "worst")
        for heading in ("", *headings):
            left = heading == "kind"
            table.add_column(heading, justify="left" if left else "right", overflow="fold")
        for k, line in enumerate(self.lines()):
            table.add_row(str(k + 1), *line)
        return table

    def lines(self) -> list[list[str]]:
        """The cells of the table."""
        return [[*self._cells(each), *_distances(each)] for each in self.every]

    def _cells(self, each: Family | Mirror | Turn) -> tuple[str, str, str]:
        """What it is, its direction, and where it is."""
        if isinstance(each, Mirror):
            return "plane", _direction(each.normal), self._place(each.offset)
        if isinstance(each, Turn):
            return each.name, _direction(each.direction), self._place(*each.point)
        kind = "all through a point" if each.every_axis else "all through an axis"
        way = "any" if each.every_axis else _direction(each.axis)
        return kind, way, self._place(*each.point)

    def _place(self, *coordinates: float) -> str:
        """With as many digits as say where it is, to 1e-5 of the size, however far from 0."""
        unit = 1e-5 * self.size
        rounded = [round(each / unit) * unit + 0.0 for each in coordinates]
        digits = [5 + max(0, math.ceil(math.log10(max(abs(x) / self.size, 1)))) for x in rounded]
        return " ".join(f"{x:.{count}g}" for x, count in zip(rounded, digits))

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON has it."""
        return json.loads(json.dumps(asdict(self)))

    def save(self, path: str | Path) -> Path:
        """Write it as a JSON file."""
        return write_atomically(path, json.dumps(self.to_json(), indent=1))


def _direction(vector: Three) -> str:
    return " ".join(f"{round(each, 5) + 0.0:.5g}" for each in vector)


def _listed(words: list[str]) -> str:
    """One, two, or several as a sentence has them."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _distances(of: Mirror | Family | Turn) -> tuple[str, str, str]:
    return f"{of.residual:.2g}", f"{of.share:.4%}", f"{of.worst:.2g}"
