"""An animated GIF of a 2-D instance: points flow from the starts to the optima, step by step."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.files import write_atomically
from proxlearn.errors import InputError
from proxlearn.figures.draw import new_figure, title_of
from proxlearn.figures.plane import RING, SIZE, isolated, show_objective, show_points
from proxlearn.problems.base import Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from proxlearn.answers.optima import Optima
    from proxlearn.answers.solutions import Solutions

DPI = 110
COLOURS = 64  # greys of the map, and shades of the points
FRAMES = 100  # about so many at most, however many steps there are
BETWEEN = 6  # frames from one step to the next, where there are few steps
FRAME, REST, END = 50, 300, 2500  # milliseconds: of a frame, of a step, of the last one


def animate(
    problem: Problem,
    tau: Any,
    steps: "Mapping[int, Solutions]",
    path: str | Path,
    optima: "Optima | None" = None,
    what: str = "step",
) -> Path:
    """Write a GIF of how the points of one instance go, over a map of its objective.

    * `steps`: where the points are after so many steps, the fewest first;
    * `optima`: around these there are rings in the end;
    * `what`: a step is called."""
    check_animated(problem, path)
    if len(steps) < 2 or any(len(each) != 1 for each in steps.values()):
        raise InputError("An animation is of one instance: give its solutions after 0, 1, 2 steps.")
    tau, places = problem.batch(tau), {k: each.points[0].cpu() for k, each in steps.items()}
    figure = new_figure(*SIZE)
    figure.suptitle(title_of(problem, tau), fontsize="small")
    axes = figure.subplots()
    show_objective(axes, problem, tau)
    axes.set_autoscale_on(False)
    (first, old), *later = places.items()
    show_points(axes, old)
    dots, pictures, milliseconds = axes.collections[-1], [], []

    def keep(points: Float[Tensor, "n 2"], length: int) -> None:
        dots.set_offsets(points)
        pictures.append(_picture(figure))
        milliseconds.append(length)

    between = max(1, min(BETWEEN, FRAMES // len(later)))
    axes.set_xlabel(f"after {first} {what}s")
    keep(old, 2 * REST)
    figure.set_layout_engine("none")  # nothing moves from here on but the points
    for count, new in later:
        axes.set_xlabel(f"after {count} {what}{'s' * (count != 1)}")
        for part in torch.linspace(0, 1, between + 1)[1:].tolist():
            keep(old + (new - old) * _eased(part), FRAME)
        milliseconds[-1], old = REST if between > 1 else FRAME, new
    if optima is not None:
        axes.plot(*optima.points[isolated(optima)].cpu().T, "o", **RING)
    keep(old, END)
    return write_atomically(path, _gif(pictures, milliseconds))


def check_animated(problem: Problem, path: str | Path) -> None:
    """An error, before any work is done, where there can be no animation."""
    new_figure(1, 1)
    if Path(path).suffix.lower() != ".gif":
        raise InputError(f"Cannot animate to {path}: its ending must be .gif.")
    if problem.space.dim != 2:
        raise InputError(
            f"An animation is of a problem in 2 dimensions; {problem.name!r} has "
            f"{problem.space.dim}: draw a picture of its solutions instead."
        )


def _eased(part: float) -> float:
    """Slow at both ends."""
    return part * part * (3 - 2 * part)


def _picture(figure: "Figure") -> Any:
    """The figure as it is now, as an image of Pillow."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    figure.set_dpi(DPI)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _gif(pictures: list[Any], milliseconds: list[int]) -> bytes:
    """All with the colours of the first one, which shows most of the points: nothing flickers."""
    palette, buffer = pictures[0].quantize(COLOURS), io.BytesIO()
    first, *others = (each.quantize(palette=palette, dither=0) for each in pictures)
    more = {"save_all": True, "append_images": others, "loop": 0, "duration": milliseconds}
    first.save(buffer, "GIF", **more)
    return buffer.getvalue()
