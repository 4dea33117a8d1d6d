"""The look of the experiments' figures."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    Axes = Figure = Any  # matplotlib is an extra, not needed to import an experiment

COLORS = {"PD": "#d1495b", "GOL": "#3c9d5f", "POL": "#2667b5"}  # as in the paper
DESCENT, GRADIENT, PROXIMAL = COLORS.values()
INK = "0.25"
DASHED = (0, (3, 3))


def tidy(axes: Axes, **labels: Any) -> None:
    """Quiet axes: no box, a faint grid, small numbers."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("0.6")
    axes.grid(color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize="small", length=3)
    axes.set(**labels)
    axes.title.set_fontsize("medium")


def bare(axes: Axes, half: float) -> None:
    """A square window on the plane, from -half to half: a thin frame and nothing else."""
    axes.set(xlim=(-half, half), ylim=(-half, half), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set(color="0.75", linewidth=0.7)
