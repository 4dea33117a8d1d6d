"""A 2-D instance: a quiet map of the objective, every solution, and the distinct optima."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.batch import Batch
from proxlearn.problems.base import Problem
from proxlearn.problems.objectives import values_of
from proxlearn.spaces import Box, Space

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from proxlearn.answers.optima import Optima

SIZE = (4.0, 4.2)
SOLUTION, OPTIMUM = "#d1495b", "#14213d"
RING = {"markersize": 9, "markerfacecolor": "none", "color": OPTIMUM}  # around an optimum
GRID = 161  # points along each side of the map
NUMBERED = 20  # up to so many optima carry their number in the table


def panel(figure, problem, tau, solutions, optima):
    axes = figure.subplots()
    show_objective(axes, problem, tau)
    show_points(axes, solutions.points[0][solutions.inside[0]])
    for k in isolated(optima):
        place = optima.points[k].tolist()
        axes.plot(*place, "o", **RING)
        if len(optima) <= NUMBERED:
            look = {"textcoords": "offset points", "fontsize": "x-small", "color": OPTIMUM}
            axes.annotate(str(k + 1), place, xytext=(6, 4), **look)


def show_objective(axes: "Axes", problem: Problem, tau: Batch, lines: bool = True) -> None:
    """Levels at equal shares of the area: narrow valleys and steep walls both stay readable."""
    (left, bottom), (right, top) = extent(problem.space)
    u, v = torch.linspace(left, right, GRID), torch.linspace(bottom, top, GRID)
    x = torch.stack(torch.meshgrid(u, v, indexing="xy"), -1).reshape(1, -1, 2)
    with torch.no_grad():
        value = values_of(problem, x, tau)[0].reshape(GRID, GRID).numpy()
    levels = np.unique(np.nanquantile(value, np.linspace(0, 1, 13)))
    if len(levels) > 2:  # a constant objective has no levels
        greys = [str(grey) for grey in np.linspace(1.0, 0.7, len(levels) - 1)]
        axes.contourf(u, v, value, levels, colors=greys)
        if lines:
            axes.contour(u, v, value, levels, colors="0.6", linewidths=0.4, linestyles="solid")
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    axes.tick_params(labelsize="x-small")


def show_points(axes: "Axes", points: Float[Tensor, "n 2"], **look) -> None:
    """A dot for every point, above any rings."""
    look = {"s": 9, "color": SOLUTION, "alpha": 0.7, "linewidths": 0, "zorder": 3} | look
    axes.scatter(points[:, 0], points[:, 1], **look)


def isolated(optima: "Optima") -> list[int]:
    """Which optima are points that several starts reached; a ring around others says nothing."""
    return [k for k in range(len(optima)) if optima.kind[k] == "point" and optima.hits[k] > 1]


def extent(space: Space) -> tuple[list[float], list[float]]:
    """The lower left and upper right corners of what is drawn."""
    if isinstance(space, Box):
        return list(space.low), list(space.high)
    around = 1.2 * space.sample(1000, generator=torch.Generator().manual_seed(0))
    return around.amin(0).tolist(), around.amax(0).tolist()
