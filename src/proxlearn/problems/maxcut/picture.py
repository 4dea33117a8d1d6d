"""The distinct cuts of a graph, best first: two colours for the two sides, edges that are cut are
dashed. The first vertex keeps its colour, so that a cut and its complement look alike."""

import math
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (8.0, 4.6)
CUTS_SHOWN = 18  # best first
SIDES = {1: "#2a6f97", -1: "#d1495b"}
CUT, KEPT = "0.35", "0.8"
EDGES = 400  # of a graph with more, only the vertices are drawn
THINNEST = 0.8  # line, so that dashes can be told from none


def panel(figure, problem, tau, solutions, optima):
    shown = min(len(optima), CUTS_SHOWN)
    rows = max(1, round(math.sqrt(shown * SIZE[1] / SIZE[0])))
    columns = max(1, math.ceil(shown / rows))
    for k, axes in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
        axes.axis("off")
        if k < shown:
            draw_cut(axes, tau[0], optima.points[k])
            said = f"{-optima.values[k].item():.4g}, {optima.share[k]:.1%}"
            axes.set_title(said, fontsize="x-small", pad=2)
    more = "" if shown == len(optima) else f", {shown} of {len(optima)}"
    figure.supxlabel(f"weight that is cut, and share of starts{more}", fontsize="small")


def draw_cut(axes: "Axes", weights: Float[Tensor, "v v"], sides: Float[Tensor, " v"]) -> None:
    """One graph, its vertices on a circle from the top, cut in two."""
    count = len(sides)
    angle = math.pi / 2 - 2 * math.pi * torch.arange(count) / count
    place = torch.stack((angle.cos(), angle.sin()), -1)
    if weights.count_nonzero() <= 2 * EDGES:
        _draw_edges(axes, weights, sides, place)
    colors = [SIDES[int(side)] for side in sides]
    axes.scatter(*place.T, s=max(4, 260 / count), color=colors, zorder=3, linewidths=0)
    axes.set(aspect="equal", xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
    axes.axis("off")


def _draw_edges(axes: "Axes", weights: Tensor, sides: Tensor, place: Tensor) -> None:
    """As wide as they are heavy, those between the two sides dashed."""
    from matplotlib.collections import LineCollection

    a, b = weights.triu(1).nonzero().T
    strength = weights[a, b].abs() / weights.abs().max().clamp(min=1e-30)
    width, cut = (14 / max(len(sides), 8) * strength).clamp(min=THINNEST), sides[a] != sides[b]
    ends = torch.stack((place[a], place[b]), 1)
    for some, color, dashes in ((~cut, KEPT, "solid"), (cut, CUT, (0, (2.5, 1.5)))):
        look = {"colors": color, "linestyles": [dashes], "linewidths": width[some].tolist()}
        axes.add_collection(LineCollection(ends[some].numpy(), **look))  # pyright: ignore
