"""An instance in three or more dimensions: two coordinates, and how the values are spread."""

from proxlearn.figures.plane import RING, SOLUTION, extent, isolated, show_points

SIZE = (7.0, 3.4)


def panel(figure, problem, tau, solutions, optima):
    left, right = figure.subplots(1, 2)
    inside = solutions.inside[0]
    show_points(left, solutions.points[0][inside, :2])
    left.plot(*optima.points[isolated(optima), :2].T, "o", **RING)
    low, high = extent(problem.space)
    left.set(xlim=(low[0], high[0]), xlabel="coordinate 1")
    left.set(ylim=(low[1], high[1]), ylabel="coordinate 2")
    if solutions.values is None:
        right.axis("off")
        return
    right.hist(solutions.values[0][inside].numpy(), bins=40, color=SOLUTION, alpha=0.7)
    right.set(xlabel="value", ylabel="solutions")
