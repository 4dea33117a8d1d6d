"""The paper's protocol as several experiments share it: its sizes, rows and figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proxlearn.common.provenance import Row
from proxlearn.experiments._look import COLORS, DASHED, tidy
from proxlearn.experiments._shared import Folder, grouped, published
from proxlearn.measure.evaluate import evaluate
from proxlearn.problems.base import Problem

CEILING = "PD, other starts"
Ways = dict[str, dict[str, Any]]  # settings of the method "operator", by label


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How much is measured, and against what."""

    descent: dict[str, Any]  # the reference
    instances: int = 256
    starts: int = 1024
    witnesses: int = 1024
    trials: int = 10

    @property
    def counts(self) -> dict[str, int]:
        """The numbers that rows tell."""
        return {k: getattr(self, k) for k in ("instances", "starts", "witnesses", "trials")}


def witnessed_rows(
    problem: Problem, ways: Ways, sizes: Protocol, folder: Folder, **how: Any
) -> list[Row]:
    """The paper's protocol, with descent against descent as the best that can be reached."""
    candidates = [(label, "operator", settings) for label, settings in ways.items()]
    candidates.append((CEILING, "descent", sizes.descent))
    how |= {"reference": ("descent", sizes.descent), "device": folder.device}
    rows = evaluate(problem, candidates, **sizes.counts, **how)
    return [{"measure": "witnessed"} | each for each in rows]


def draw_precision(
    every: np.ndarray,
    experiment: str,
    rows: list[Row],
    deltas: Sequence[float],
    looks: dict[str, tuple[str, float]],
    published_wd: bool = False,
) -> None:
    """WP against delta, a panel for each threshold; WD are the dashed lines, published ones are
    lighter. `looks`: the labels drawn, from the lowest to the topmost, with color and line width.
    """
    for axes, (t, some) in zip(every, grouped(rows, "threshold").items()):
        tidy(axes, xlabel="δ", ylim=(0, 1.02), xlim=(0, deltas[-1]), title=f"t = {t:g}")
        for name in ("POL", "GOL"):
            theirs, look = published(experiment, name, t), {"color": COLORS[name], "alpha": 0.35}
            axes.plot(theirs["delta"], theirs["WP"], label=f"{name}, published", **look)
            if published_wd:
                axes.axvline(theirs["WD"], linestyle=DASHED, linewidth=1, **look)
        own = {each["label"]: each for each in some}
        for label, (color, width) in looks.items():
            precision = [own[label][f"wp@{delta:.4g}"] for delta in deltas]
            axes.plot(deltas, precision, color=color, linewidth=width, label=label)
            axes.axvline(own[label]["wd"], color=color, linestyle=DASHED, linewidth=1.2)
    every[0].set_ylabel("witnessed precision")
    lines, labels = every[0].get_legend_handles_labels()
    where = {"loc": "outside lower center", "ncols": min(len(labels), 6), "frameon": False}
    every[0].figure.legend(lines, labels, fontsize="small", **where)
