"""The figures of sparse recovery: histograms, solutions on a plane, convergence."""

import numpy as np
from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.common.provenance import Row
from proxlearn.experiments._look import DASHED, DESCENT, GRADIENT, INK, PROXIMAL, bare, tidy
from proxlearn.experiments._shared import Folder, columns, grouped

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
    looks = {label: look for label, look in LOOKS.items() if label in shown}
    with folder.figure(name, 3.0 * HISTOGRAMS, 1.3 * len(looks) + 0.5) as figure:
        grid = figure.subplots(len(looks), HISTOGRAMS, sharex="col", squeeze=False)
        for k, line in enumerate(grid.T):
            values = [_inside(shown[label], k) for label in looks]
            edges = _edges(values)
            for axes, each, (_, color) in zip(line, values, looks.values()):
                tidy(axes, yticks=[])
                axes.hist(np.clip(each, edges[0], edges[-1]), edges, color=color)
                if len(each):
                    mean = min(each.mean(), edges[-1])
                    axes.axvline(mean, color=INK, linewidth=0.8, linestyle=DASHED)
            line[0].set_title(_title(next(iter(shown.values())), k), fontsize="small")
        for axes, (said, color) in zip(grid[:, 0], looks.values()):
            axes.set_ylabel(said, color=color)
        about = "objective (dashed: the mean; the last bin holds all above)"
        figure.supxlabel(about, fontsize="small")


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
    return ", ".join(f"{k} = {v:.3f}" for k, v in zip(names, solutions.tau[instance].tolist()))


def draw_planes(shown: dict[str, Solutions], folder: Folder) -> None:
    """Solutions on the last two coordinates: rows are methods, columns instances."""
    looks = {label: look for label, look in LOOKS.items() if label in shown}
    with folder.figure("solutions.png", 1.6 * PLANES, 1.7 * len(looks) + 0.3) as figure:
        grid = figure.subplots(len(looks), PLANES, squeeze=False)
        for line, (label, (said, color)) in zip(grid, looks.items()):
            found = shown[label].cpu()
            line[0].set_ylabel(said, color=color, fontsize="large")
            for k, axes in enumerate(line):
                x, y = found.points[k][found.inside[k]][:, -2:].T
                axes.scatter(x, y, s=5, color=color, alpha=0.35, linewidths=0)
                bare(axes, 2.05)
        for k, axes in enumerate(grid[0]):
            axes.set_title(_title(next(iter(shown.values())), k), fontsize="x-small")


def draw_convergence(rows: list[Row], last: dict[str, Tensor], folder: Folder) -> None:
    """Left, the mean objective of the solutions inside the space against steps, with a band of one
    standard deviation, no lower than any value is; right, where the values end."""
    values = {label: each.numpy() for label, each in last.items()}
    lowest = min((each.min() for each in values.values() if each.size), default=1e-3)
    curves, edges, most = grouped(rows, "label"), _edges([*values.values()]), rows[-1]["steps"]
    about = f"objective after {most} steps (the last bin holds all above)"
    with folder.figure("convergence.png", 10.5, 3.8) as figure:
        left, right = figure.subplots(1, 2)
        tidy(left, xlabel="steps, or applications of POL", ylabel="objective", yscale="log")
        tidy(right, xlabel=about, ylabel="solutions")
        for label, color in CURVES.items():
            steps, mean, std = columns(curves[label], "steps", "mean", "std")
            left.plot(steps, mean, color=color, linewidth=2, label=label)
            low = np.maximum(mean - std, lowest)
            left.fill_between(steps, low, mean + std, color=color, alpha=0.12, linewidth=0)
            clipped = np.clip(values[label], edges[0], edges[-1])
            right.hist(clipped, edges, color=color, histtype="step", linewidth=1.6)
        left.set_xscale("symlog", linthresh=10)
        left.set_xlim(0, most)
        left.legend(frameon=False, fontsize="small")
        said = f"p = 1/2, {GREEK} = {rows[0]['alpha']}: solutions inside the space"
        figure.suptitle(said, fontsize="medium")
