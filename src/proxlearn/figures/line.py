"""A 1-D instance: the objective as a curve, solutions and distinct optima on it."""

import torch

from proxlearn.figures.plane import RING, SOLUTION
from proxlearn.problems.objectives import values_of
from proxlearn.spaces import Box

SIZE = (5.0, 3.2)


def panel(figure, problem, tau, solutions, optima):
    axes = figure.subplots()
    ends = problem.space if isinstance(problem.space, Box) else Box(-1.0, 1.0, dim=1)
    x = torch.linspace(ends.low[0], ends.high[0], 801)[:, None]

    def height(points: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return values_of(problem, points[None], tau)[0]

    axes.plot(x[:, 0], height(x), color="0.6", linewidth=1)
    found = solutions.points[0][solutions.inside[0]]
    axes.scatter(found[:, 0], height(found), s=9, color=SOLUTION, alpha=0.7, linewidths=0)
    axes.plot(optima.points[:, 0], height(optima.points), "o", **RING)
    axes.set(xlabel="x", ylabel="f(x)")
