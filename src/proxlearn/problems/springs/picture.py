"""A chain of springs: every rest configuration as a folded chain between the two nails."""

import itertools
from typing import TYPE_CHECKING

import numpy as np

from proxlearn.problems.springs.springs import SPAN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (6.0, 6.0)
RIGHT, LEFT, IRON = "#2a6f97", "#d1495b", "#333333"
SHOWN = 12  # configurations, lowest energy first
FLOOR = 0.16  # each spring is drawn so much below the one before, so that folds can be seen
COILS = 6


def panel(figure, problem, tau, solutions, optima):
    axes = figure.subplots()
    shown = min(len(optima), SHOWN)
    for row in range(shown):
        _chain(axes, [0.0, *optima.points[row].tolist(), SPAN], -row)
        energy = "" if optima.values is None else f"energy {optima.values[row]:.3g},  "
        said = f"{row + 1}:  {energy}{optima.share[row]:.1%} of starts"
        axes.text(1.01, -row - 0.3, said, transform=axes.get_yaxis_transform(), fontsize="x-small")
    for nail in (0.0, SPAN):
        axes.axvline(nail, color="0.85", linewidth=4, zorder=0)
    low, high = min(problem.space.low), max(problem.space.high)
    axes.set(xlim=(low, high), ylim=(-max(shown, 1) + 0.2, 0.5), yticks=[])
    more = "" if shown == len(optima) else f"   ({shown} of {len(optima)} shown)"
    said = f"position on the rail; blue points right, red points left{more}"
    axes.set_xlabel(said, fontsize="small")
    axes.spines[["left", "right", "top"]].set_visible(False)


def _chain(axes: "Axes", joints: list[float], top: float) -> None:
    """The springs from the first nail to the second, each on a floor of its own."""
    for k, (a, b) in enumerate(itertools.pairwise(joints)):
        height = top - FLOOR * k
        axes.plot(*_zigzag(a, b, height), color=RIGHT if b > a else LEFT, linewidth=1.1)
        axes.plot([b, b], [height, height - FLOOR], color=IRON, linewidth=1)
        axes.plot([a, b], [height, height], ".", color=IRON, markersize=4)
    axes.plot(joints[0], top, "s", color=IRON, markersize=5)
    axes.plot(joints[-1], top - FLOOR * (len(joints) - 1), "s", color=IRON, markersize=5)


def _zigzag(a: float, b: float, height: float) -> tuple[np.ndarray, np.ndarray]:
    """A coil from a to b, drawn flat."""
    along = np.concatenate([[0.0], np.linspace(0.1, 0.9, 2 * COILS), [1.0]])
    up = np.zeros_like(along)
    up[2:-2] = 0.3 * FLOOR * np.where(np.arange(len(along) - 4) % 2, -1, 1)
    return a + (b - a) * along, height + up
