"""The figures of sparse recovery: histograms, solutions on a plane, convergence."""

from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.common.provenance import Row
from proxlearn.experiments._shared import DESCENT, GRADIENT, INK, PROXIMAL, Folder, bare, tidy
from proxlearn.figures.draw import new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HISTOGRAMS, PLANES = 4, 8  # instances shown
PROXIMAL_GRADIENT = "#e0912f"
GREEK = "\N{GREEK SMALL LETTER ALPHA}"
LOOKS = {  # of the lines of the table that figures show
    "PD, long": ("PD", DESCENT),
    "GOL": ("GOL", GRADIENT),
    "PGD, long": ("PGD", PROXIMAL_GRADIENT),
    "POL": ("POL", PROXIMAL),
    "POL, then PGD": ("POL, PGD", "#7b3fa0"),
}
CURVES = {"PD": DESCENT, "PGD": PROXIMAL_GRADIENT, "accelerated PGD": "#b0b0b0", "POL": PROXIMAL}


def draw_histograms(shown: dict[str, Solutions], folder: Folder, name: str) -> None:
    """Objective values on the first instances, a row for each method."""
    methods = [label for label in LOOKS if label in shown]
    figure = new_figure(3.0 * HISTOGRAMS, 1.3 * len(methods) + 0.5)
    grid = figure.subplots(len(methods), HISTOGRAMS, sharex="col", squeeze=False)
    for column in range(HISTOGRAMS):
        values = {label: _inside(shown[label], column) for label in methods}
        edges = _edges(list(values.values()))
        grid[0, column].set_title(_title(shown[methods[0]], column), fontsize="small")
        for axes, label in zip(grid[:, column], methods):
            tidy(axes, yticks=[])
            axes.hist(np.clip(values[label], edges[0], edges[-1]), edges, color=LOOKS[label][1])
            if len(values[label]):
                mean = min(values[label].mean(), edges[-1])
                axes.axvline(mean, color=INK, linewidth=0.8, linestyle=(0, (3, 3)))
    for axes, label in zip(grid[:, 0], methods):
        axes.set_ylabel(LOOKS[label][0], color=LOOKS[label][1])
    figure.supxlabel("objective (dashed: the mean; the last bin holds all above)", fontsize="small")
    save(figure, folder.path / name)


def _inside(solutions: Solutions, instance: int) -> np.ndarray:
    assert solutions.values is not None
    return solutions.values[instance][solutions.inside[instance]].cpu().numpy()


def _edges(values: list[np.ndarray]) -> np.ndarray:
    """Bins from the lowest value to where the best method's solutions end."""
    values = [each for each in values if each.size] or [np.zeros(1)]
    low = min(each.min() for each in values)
    high = min(np.quantile(each, 0.98) for each in values)
    return np.linspace(low, low + 1.6 * max(high - low, 1e-3), 41)


def _title(solutions: Solutions, instance: int) -> str:
    assert isinstance(solutions.tau, Tensor)
    names = ("τ",) if solutions.tau.shape[1] == 1 else (GREEK, "p")  # A and y may follow
    parts = zip(names, solutions.tau[instance].tolist())
    return ", ".join(f"{name} = {value:.3f}" for name, value in parts)


def draw_planes(shown: dict[str, Solutions], folder: Folder) -> None:
    """Solutions on the last two coordinates: rows are methods, columns instances."""
    methods = [label for label in LOOKS if label in shown]
    figure = new_figure(1.6 * PLANES, 1.7 * len(methods) + 0.3)
    grid = figure.subplots(len(methods), PLANES, squeeze=False)
    for line, label in zip(grid, methods):
        line[0].set_ylabel(LOOKS[label][0], color=LOOKS[label][1], fontsize="large")
        for column, axes in enumerate(line):
            _show_plane(axes, shown[label], column, LOOKS[label][1])
    for column, axes in enumerate(grid[0]):
        axes.set_title(_title(shown[methods[0]], column), fontsize="x-small")
    save(figure, folder.path / "solutions.png")


def _show_plane(axes: "Axes", solutions: Solutions, instance: int, color: str) -> None:
    points = solutions.points[instance][solutions.inside[instance]].cpu()
    axes.scatter(points[:, -2], points[:, -1], s=5, color=color, alpha=0.35, linewidths=0)
    bare(axes, (-2.05, -2.05), (2.05, 2.05))


def draw_convergence(rows: list[Row], last: dict[str, Tensor], folder: Folder) -> None:
    """Left, the mean objective of the solutions inside the space against steps, with a band of one
    standard deviation, no lower than any value is; right, where the values end."""
    figure = new_figure(10.5, 3.8)
    left, right = figure.subplots(1, 2)
    values = [each.numpy() for each in last.values()]
    lowest = min((each.min() for each in values if each.size), default=1e-3)
    tidy(left, xlabel="steps, or applications of POL", ylabel="objective", yscale="log")
    for label, color in CURVES.items():
        curve = [each for each in rows if each["label"] == label]
        steps, mean, std = (np.array([r[key] for r in curve]) for key in ("steps", "mean", "std"))
        left.plot(steps, mean, color=color, linewidth=2, label=label)
        low = np.maximum(mean - std, lowest)
        left.fill_between(steps, low, mean + std, color=color, alpha=0.12, linewidth=0)
    left.set_xscale("symlog", linthresh=10)
    left.set_xlim(0, max(each["steps"] for each in rows))
    left.legend(frameon=False, fontsize="small")
    edges = _edges(values)
    about = f"objective after {rows[-1]['steps']} steps (the last bin holds all above)"
    tidy(right, xlabel=about, ylabel="solutions")
    for label, each in zip(last, values):
        clipped = np.clip(each, edges[0], edges[-1])
        right.hist(clipped, edges, color=CURVES[label], histtype="step", linewidth=1.6)
    said = f"p = 1/2, {GREEK} = {rows[0]['alpha']}: solutions inside the space"
    figure.suptitle(said, fontsize="medium")
    save(figure, folder.path / "convergence.png")
