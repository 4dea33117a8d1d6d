"""The figures of the experiment on boxes."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.batch import Batch, Points
from proxlearn.common.provenance import Row
from proxlearn.detections.detected import solved
from proxlearn.detections.starts import starting_boxes
from proxlearn.experiments._look import INK, Axes, Figure, tidy
from proxlearn.experiments._shared import SEED
from proxlearn.images.boxes import corners
from proxlearn.measure.detection import AREAS
from proxlearn.operators.operator import Operator
from proxlearn.problems.detection import Detection

STAGES = (0, 1, 2, 3, 4)  # applications in the picture
DRAWN_STARTS = 64  # in that picture
COLUMNS = 6  # of the page
COLORS = ("#2667b5", "#7b5ea7", "#3c9d5f", "#b8860b", "#d1495b", "#8c2d3a")
LOOK: dict[str, Any] = {"cmap": "plasma", "clim": (0, 1), "linewidths": 0.9, "alpha": 0.8}
SIZES = tuple(f"{100 * low:g}-{100 * min(high, 1):g}%" for low, high in pairwise(AREAS))


def draw_stages(figure: Figure, problem: Detection, operator: Operator, tau: Batch) -> None:
    """Rows are images; columns, boxes after so many applications, as in the paper."""
    points = starting_boxes(operator, DRAWN_STARTS, SEED)
    images = problem.observe(tau)
    every = figure.subplots(len(images), len(STAGES), squeeze=False)
    for column, steps in zip(every.T, STAGES):
        draw_all(column, problem, tau, solved(images, operator, points, steps).points)
        title = f"{steps} application{'s' * (steps != 1)}"
        column[0].set_title(title, fontsize="medium", color=INK)
    color_bar(figure, every)


def draw_page(
    figure: Figure, problem: Detection, operator: Operator, tau: Batch, starts: int
) -> None:
    """All starts' boxes, where they stopped, of images that were drawn at random."""
    points = starting_boxes(operator, starts, SEED)
    images = problem.observe(tau)
    every = figure.subplots(-(-len(images) // COLUMNS), COLUMNS, squeeze=False)
    for axes in every.ravel():
        axes.set_axis_off()
    draw_all(every.ravel(), problem, tau, solved(images, operator, points).points)
    color_bar(figure, every)


def draw_all(every: np.ndarray, problem: Detection, tau: Batch, boxes: Points) -> None:
    """The images of some instances, each with its boxes and, dashed, the true ones."""
    overlap, images = problem.quality(boxes, tau), problem.observe(tau)
    rows = zip(every, images.cpu(), boxes.cpu(), overlap.cpu(), problem.truth(tau))
    for axes, image, own, good, true in rows:
        axes.imshow(image.permute(1, 2, 0).numpy(), extent=(0, 1, 1, 0))
        order = good.argsort()  # the best on top
        outline(axes, own[order], array=good[order].numpy(), **LOOK)
        outline(axes, true.cpu(), colors="white", linewidths=0.9, linestyles=(0, (2, 2)))
        axes.set(xlim=(0, 1), ylim=(1, 0))
        axes.set_axis_off()


def outline(axes: Axes, boxes: Float[Tensor, "k 4"], **look: Any) -> None:
    """Boxes as lines."""
    from matplotlib.collections import LineCollection

    left, top, right, bottom = corners(boxes).unbind(-1)
    across = torch.stack((left, right, right, left, left), -1)
    down = torch.stack((top, top, bottom, bottom, top), -1)
    axes.add_collection(LineCollection(list(torch.stack((across, down), -1).numpy()), **look))


def color_bar(figure: Figure, every: np.ndarray) -> None:
    """What the colours of boxes say."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    colors = ScalarMappable(Normalize(0, 1), LOOK["cmap"])
    bar = figure.colorbar(colors, ax=every, shrink=0.4, aspect=30, pad=0.01)
    bar.set_label("IoU with the best true box", fontsize="small", color=INK)
    bar.ax.tick_params(colors=INK, labelsize="small")


def draw_recall(axes: Axes, rows: Sequence[Row]) -> None:
    """Recall of true boxes by their share of the image, a bar for each method, with the precision
    that goes with it."""
    tidy(axes, xlabel="area of the true box, of the image", ylabel="recall", ylim=(0, 1))
    width = 0.8 / len(rows)
    for k, row in enumerate(rows):
        places = np.arange(len(SIZES)) + (k - (len(rows) - 1) / 2) * width
        recall = [row[f"recall@{each}"] or 0.0 for each in SIZES]
        color = COLORS[k % len(COLORS)]
        label = f"{row['label']}: precision {row['precision'] or 0:.2f}"
        axes.bar(places, recall, width, color=color, label=label)
    axes.set_xticks(np.arange(len(SIZES)), SIZES)
    axes.figure.legend(fontsize="small", frameon=False, loc="outside lower center", ncols=2)
