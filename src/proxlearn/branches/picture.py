"""The picture of branches: the optima as tau moves along its path, and the events."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from proxlearn.figures.draw import new_figure
from proxlearn.figures.plane import OPTIMUM, extent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from proxlearn.branches.answer import Branch, Branches

WIDTH, HEIGHT = 6.4, 2.3  # of a panel, in inches
COORDINATES = 2  # that have a panel of their own, before the values
MARKS = {"birth": "^", "death": "v", "merge": ">", "split": "<"}
LOOK = {"markersize": 7, "color": OPTIMUM, "linestyle": "none", "zorder": 4}


def figure(found: "Branches") -> "Figure":
    """A panel for x where there is one coordinate; of more, one for each of the first two, and one
    for the value. s is along all of them."""
    dim = found.path.problem.space.dim
    panels: list[int | None] = [0] if dim == 1 else [*range(min(dim, COORDINATES)), None]
    drawn = new_figure(WIDTH, HEIGHT * len(panels) + 0.9)
    every = drawn.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
    for axes, coordinate in zip(every, panels):
        _panel(axes, found, coordinate)
    every[-1].set(xlabel="s, from tau 0 to tau 1", xlim=(-0.02, 1.02))
    every[0].set_title(f"{found.path.problem.name}: {found.summary()}", fontsize="small", wrap=True)
    kinds = [kind for kind in MARKS if any(each.kind == kind for each in found.events)]
    for kind in kinds:
        every[0].plot([], [], MARKS[kind], label=kind, **LOOK)
    if kinds:
        how = {"loc": "outside lower center", "ncols": len(kinds), "frameon": False}
        drawn.legend(fontsize="small", **how)
    return drawn


def _panel(axes: "Axes", found: "Branches", coordinate: int | None) -> None:
    for k, branch in enumerate(found):
        s, y = _smooth(branch, coordinate)
        axes.plot(s, y, color=f"C{k % 10}", linewidth=1.6)
    for event in found.events:
        y = event.value if coordinate is None else event.point[coordinate]
        axes.plot([event.s], [y], MARKS[event.kind], **LOOK)
    name = "x" if found.path.problem.space.dim == 1 else f"x{(coordinate or 0) + 1}"
    axes.set_ylabel("value" if coordinate is None else name)
    if coordinate is not None:
        low, high = extent(found.path.problem.space)
        margin = 0.03 * (high[coordinate] - low[coordinate])
        axes.set_ylim(low[coordinate] - margin, high[coordinate] + margin)
    axes.grid(color="0.92", linewidth=0.6)
    axes.tick_params(labelsize="x-small")


def _smooth(branch: "Branch", coordinate: int | None) -> tuple[Tensor, Tensor]:
    """The line through the places of a branch: along their tangents where a coordinate is drawn."""
    if coordinate is None:
        return branch.s, branch.values
    share = torch.linspace(0, 1, 9, dtype=torch.double)[:-1]
    step = branch.s.diff()[:, None]
    y, slope = branch.points[:, coordinate], branch.slopes[:, coordinate]
    begin, end, h = y[:-1, None], y[1:, None], share
    inside = (
        (1 + 2 * h) * (1 - h) ** 2 * begin
        + h * h * (3 - 2 * h) * end
        + h * (1 - h) ** 2 * step * slope[:-1, None]
        - h * h * (1 - h) * step * slope[1:, None]
    )  # Hermite's cubic
    s = branch.s[:-1, None] + step * share
    return torch.cat((s.flatten(), branch.s[-1:])), torch.cat((inside.flatten(), y[-1:]))
