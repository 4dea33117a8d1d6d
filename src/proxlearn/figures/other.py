"""An instance in three or more dimensions: two coordinates, and how the values are spread."""

from typing import TYPE_CHECKING

from proxlearn.common.batch import Batch
from proxlearn.figures.plane import OPTIMUM, SOLUTION, extent, isolated, show_points
from proxlearn.problems.base import Problem

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

    from proxlearn.answers.optima import Optima
    from proxlearn.answers.solutions import Solutions

SIZE = (7.0, 3.4)


def panel(
    figure: "FigureBase", problem: Problem, tau: Batch, solutions: "Solutions", optima: "Optima"
) -> None:
    left, right = figure.subplots(1, 2)
    inside = solutions.inside[0]
    points = solutions.points[0][inside]
    show_points(left, points[:, :2])
    rings = optima.points[isolated(optima), :2]
    left.plot(*rings.T, "o", markersize=9, markerfacecolor="none", color=OPTIMUM)
    low, high = extent(problem.space)
    left.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    left.set(xlabel="coordinate 1", ylabel="coordinate 2")
    if solutions.values is None:
        right.axis("off")
        return
    right.hist(solutions.values[0][inside].numpy(), bins=40, color=SOLUTION, alpha=0.7)
    right.set(xlabel="value", ylabel="solutions")
