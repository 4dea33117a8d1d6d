"""Pictures of solutions. How a problem is drawn lives in `picture.py` in the problem's folder; a
problem without one is drawn by its dimension: `line` (1-D), `plane` (2-D) or `other`.

Such a file has `SIZE`, the width and height of one instance in inches, and
`panel(figure, problem, tau, solutions, optima)`, which draws one instance, a batch of its own, into
a (sub)figure: what its `Solutions` stand for (of a relaxation, the points that it rounds to) and
their distinct `Optima`. A panel only draws; both are worked out here, once.
"""

import importlib
import importlib.util
import io
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from torch import Tensor

from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch
from proxlearn.common.checks import path_of
from proxlearn.common.files import write_atomically
from proxlearn.errors import InputError, ProxlearnError
from proxlearn.problems.base import Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from proxlearn.answers.optima import Optima
    from proxlearn.answers.solutions import Solutions

FORMATS = ("png", "svg", "pdf")
NOTEBOOK_DPI = 80
WIDTH = 16.0  # of a gallery, in inches
Titles = Sequence[str] | None
Cell = tuple[str, Batch, Any]  # a title, one instance (None where it is not known), its solutions


class MissingPlotsError(ProxlearnError, ImportError):
    """matplotlib is not installed."""


def draw(problem: Problem, tau: Any, solutions: "Solutions", path: str | Path) -> Path:
    """Draw the solutions of one instance; the file's ending is the format (png, svg or pdf)."""
    if len(solutions) != 1:
        raise InputError(f"draw() is of one instance, not of {len(solutions)}: use gallery().")
    return gallery(problem, tau, solutions, path)


def gallery(
    problem: Problem, tau: Any, solutions: "Solutions", path: str | Path, titles: Titles = None
) -> Path:
    """Draw the solutions of several instances side by side, with `titles` in place of tau."""
    return save(figure(problem, tau, solutions, titles), path)


def figure(
    problem: Problem,
    tau: Any,
    solutions: "Solutions",
    titles: Titles = None,
    optima: "Optima | None" = None,
) -> "Figure":
    """The same, not written to a file. `optima`: of one instance, where they are known already."""
    if optima is not None and len(solutions) != 1:
        raise InputError(f"optima= are of one instance, but there are {len(solutions)}.")
    cells, columns = _cells(problem, tau, solutions), _columns(problem)
    if titles:
        cells = [(title, *cell[1:]) for title, cell in zip(titles, cells, strict=True)]
    rows = [cells[k : k + columns] for k in range(0, len(cells), columns)]
    return _grid(problem, rows, optima)


def compare(problem: Problem, tau: Any, found: "Mapping[str, Solutions]", path: str | Path) -> Path:
    """Draw what several methods found: a row for each, a column for each of the first instances."""
    rows = [
        [(f"{label}\n{title}", *cell) for title, *cell in _cells(problem, tau, each)]
        for label, each in found.items()
    ]
    return save(_grid(problem, [row[: _columns(problem)] for row in rows]), path)


def _cells(problem: Problem, tau: Any, solutions: "Solutions") -> list[Cell]:
    if not problem.is_whole(tau):  # what an operator sees is no objective to draw
        return [(title_of(problem, None), None, each.cpu()) for each in solutions]
    batch = tau if tau is not None and tau is solutions.tau else problem.batch(tau)
    count = batches.size(batch)
    if count != len(solutions):
        raise InputError(f"There are {count} taus but solutions of {len(solutions)} instances.")
    batch = batches.move(batch, "cpu")
    ones = [batches.select(batch, slice(k, k + 1)) for k in range(count)]
    return [(title_of(problem, one), one, solutions[k].cpu()) for k, one in enumerate(ones)]


def _grid(problem: Problem, rows: list[list[Cell]], optima: "Optima | None" = None) -> "Figure":
    style, columns = style_of(problem), len(rows[0])
    figure = new_figure(columns * style.SIZE[0], len(rows) * style.SIZE[1])
    grid = figure.subfigures(len(rows), columns, squeeze=False)
    for places, row in zip(grid, rows):
        for place, (title, tau, found) in zip(places, row):  # the last row may be shorter
            place.suptitle(title, fontsize="small" if columns > 1 else "medium")
            if tau is not None and (found.problem is None or found.tau is None):
                found = found.valued(problem.sized(tau), tau)
            meant = found.rounded()
            # Of what is rounded into another space, each counts however few reached it.
            least = {} if meant.space == found.space else {"smallest_share": 0.0}
            listed = meant.unique(**least) if optima is None else optima
            style.panel(place, problem, tau, meant, listed)
    return figure


def style_of(problem: Problem) -> ModuleType:
    """The module that draws a problem: its own, or the one for its dimension."""
    package = type(problem).__module__.rpartition(".")[0]
    if package.startswith("proxlearn.problems.") and importlib.util.find_spec(f"{package}.picture"):
        return importlib.import_module(f"{package}.picture")
    kind = {1: "line", 2: "plane"}.get(problem.space.dim, "other")
    return importlib.import_module(f"proxlearn.figures.{kind}")


def _columns(problem: Problem) -> int:
    """How many instances go side by side."""
    return max(1, int(WIDTH / style_of(problem).SIZE[0]))


def literal(text: str) -> str:
    """Words of a picture without formulas: what stands between $ would be one."""
    return text.replace("$", r"\$")


def title_of(problem: Problem, tau: Batch | None) -> str:
    """The problem's name, and tau where it is a short vector."""
    name = literal(problem.name)
    if isinstance(tau, Tensor) and tau.ndim == 2 and 0 < tau.shape[1] <= 8:
        return f"{name}   τ = ({', '.join(f'{v:.3g}' for v in tau[0].tolist())})"
    return name


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, sizes in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPlotsError(
            "Pictures need matplotlib, which is not installed: pip install 'proxlearn[plots]'"
        ) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    # What a notebook asks for: without pyplot, it would show the figure's size alone.
    setattr(figure, "_repr_png_", partial(_written, figure, "png", NOTEBOOK_DPI))  # noqa: B010
    return figure


def save(figure: "Figure", path: str | Path, dpi: int = 120) -> Path:
    """Write a figure; a reader never sees half of it."""
    return write_atomically(path, _written(figure, check_format(path), dpi))


def _written(figure: "Figure", kind: str, dpi: int) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=dpi)
    return buffer.getvalue()


def check_format(path: str | Path) -> str:
    """The picture format a file's ending asks for; an error if there is nothing to draw it with."""
    new_figure(1, 1)
    kind = path_of(path, "file to draw").suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise InputError(f"Cannot draw to {path}: its ending must be one of {', '.join(FORMATS)}.")
    return kind
