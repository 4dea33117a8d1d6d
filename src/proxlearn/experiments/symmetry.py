"""Mirror planes of mechanical parts (paper, 5.4 and D.7): POL that looks, pooled POL, GOL, descent.

The parts are generated, or those of a folder of meshes (`--data`): one of ours, or the paper's MCB
with its catalogs. Operators are trained on the training parts and measured on the test parts, in
their own pose and in random ones. Slopes come from a grid around every part; the values that the
thresholds speak of are exact.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.common.batch import select
from proxlearn.common.provenance import Row
from proxlearn.common.seeds import generator_for
from proxlearn.experiments._look import COLORS, INK, Axes, Figure, tidy
from proxlearn.experiments._shared import SEED, Folder, grouped, markdown, trained_for
from proxlearn.gpu.devices import pick_device
from proxlearn.measure.evaluate import over_trials
from proxlearn.meshes.folder import Meshes
from proxlearn.operators.operator import Operator
from proxlearn.problems.symmetry.symmetry import Symmetry
from proxlearn.solvers.solve import solve

DATA = "a folder of meshes with catalogs (as MCB has them), or a packed .npz"
THRESHOLDS = (1e-4, 1e-3, 1e-2, 1e-1)
DELTA = 0.041  # 2% of the diameter of the space
DELTAS = tuple(np.linspace(0.001, 0.2, 100).tolist())
CEILING, UNTOUCHED = "descent, other starts", "the starts"
Known = dict[str, Any]  # the parts, as `Symmetry` takes them
POSES = {"own pose": False, "random pose": True}
VALUES_AT_ONCE = 8  # instances
SHOWN, STAGES = 6, (0, 1, 2, 5, 10, 20)  # parts in the picture, and after how many applications


@dataclass(frozen=True)
class Sizes:
    looking: dict[str, Any]  # trainings
    pooled: dict[str, Any]
    gradient: dict[str, Any]
    truth: dict[str, Any]  # particle descent
    applications: tuple[int, ...] = (10, 20, 40)
    pooled_applications: int = 20
    parts: int | None = None  # to test on; None: all
    starts: int = 256
    witnesses: int = 1024
    trials: int = 3
    seeds: tuple[int, ...] = (0, 1, 2)


DEEP = {"depth": 10, "applications": 20}
DGCNN = {"architecture": {"kind": "coupling", "blocks": 5}, "instances": 22, "points": 256}
FULL = Sizes(
    looking={"seconds": 60.0} | DEEP,
    pooled={"seconds": 60.0} | DEEP | DGCNN,
    gradient={"seconds": 60.0, "rule": "gradient", "descents": 1} | DEEP,
    truth={"steps": 1_500, "rate": 3e-3, "falling": True},
)
BRIEF = {"seconds": 20.0, "depth": 2, "applications": 10, "instances": 3, "points": 8}
QUICK = Sizes(
    looking=BRIEF,
    pooled=BRIEF | {"architecture": {"kind": "coupling", "width": 32, "shared": 32}},
    gradient=BRIEF | {"rule": "gradient", "descents": 1},
    truth={"steps": 150, "rate": 1e-2, "falling": True},
    applications=(10, 20),
    pooled_applications=5,
    parts=4,
    starts=12,
    witnesses=256,
    trials=1,
    seeds=(0,),
)
LEFT_OUT = (
    "It trains for 20 seconds instead of 60 on a GPU, with few planes in a step, and measures 4 "
    "parts from 12 starts instead of all from 256, against 150 steps of descent instead of 1,500, "
    "so that its numbers are not those of the full run."
)


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    known = _meshes(folder)
    aligned = Symmetry(**known, turned=False)
    operators = {
        "looking": folder.train("looking", Symmetry(**known), sizes.looking),
        "pooled (DGCNN)": folder.train("pooled", aligned, sizes.pooled),
        "looking, GOL": folder.train("gol", Symmetry(**known), sizes.gradient),
    }
    rows = []
    for pose, turned in POSES.items():
        for seed in sizes.seeds:
            rows += measured(Parts(known, turned, sizes, folder, seed), operators, pose)
    with folder.figure("precision.png", 13.0, 4.0) as figure:
        draw_precision(figure.subplots(1, len(THRESHOLDS), sharey=True), rows)
    shown = Parts(known, False, sizes, folder, SEED)
    with folder.figure("planes.png", 2.0 * len(STAGES), 2.0 * shown.drawn) as figure:
        draw_planes(figure, operators["looking"], shown)
    return rows, table(rows)


def _meshes(folder: Folder) -> Known:
    """The training and the test parts of the data folder; none, where they are to be generated."""
    if folder.data is None:
        return {}
    names = {"meshes": "train", "test": "test"}
    return {name: [mesh for _, mesh in Meshes(folder.data, split)] for name, split in names.items()}


class Parts:
    """Test parts in one pose, with exact values."""

    def __init__(self, known: Known, turned: bool, sizes: Sizes, folder: Folder, seed: int):
        self.sizes, self.folder, self.seed = sizes, folder, seed
        self.device = pick_device(folder.device)
        self.problem = Symmetry(**known, turned=turned)
        self.exact = Symmetry(**known, turned=turned, exact=True)
        self.problem.on(self.device)
        count = len(self.problem.meshes) - self.problem.trained
        which = torch.arange(min(count, sizes.parts or count), device=self.device)
        generator = generator_for(seed, "test", self.device)
        self.tau = self.problem.instances_of(self.problem.trained + which, generator)

    @property
    def drawn(self) -> int:
        """How many of the parts are in the picture."""
        return min(SHOWN, len(self.tau["which"]))

    def solved(self, method: str, seed: int, **settings: Any) -> Solutions:
        found = solve(
            self.problem, self.tau, method, self.sizes.starts, seed, str(self.device), **settings
        )
        return self.valued(found)

    def valued(self, found: Solutions) -> Solutions:
        values = [
            self.exact.objective(x, select(self.tau, slice(k, k + len(x))))
            for k, x in zip(
                range(0, len(found.points), VALUES_AT_ONCE), found.points.split(VALUES_AT_ONCE)
            )
        ]
        return replace(found, values=torch.cat(values))


def measured(parts: Parts, operators: dict[str, Operator], pose: str) -> list[Row]:
    """A row for each method and threshold."""
    sizes, seed = parts.sizes, parts.seed
    truth = parts.solved("descent", seed + 1, **sizes.truth)
    found: dict[str, tuple[Solutions, Row]] = {
        CEILING: (parts.solved("descent", seed + 2, **sizes.truth), {}),
        UNTOUCHED: (parts.solved("operator", seed, operator=operators["looking"], steps=0), {}),
        "pairs and PCA, refined": (parts.solved("pairs", seed), {}),
    }
    for label, operator in operators.items():
        trained = trained_for(operator.provenance)
        every = sizes.applications if label == "looking" else (sizes.pooled_applications,)
        for k in every:
            solved = parts.solved("operator", seed, operator=operator, steps=k)
            found[f"{label}, {k} applications"] = solved, trained
    generator = generator_for(seed, "witnesses")
    watching = parts.problem.space.sample(sizes.trials, sizes.witnesses, generator=generator)
    rows = []
    for label, (each, trained) in found.items():
        for t in THRESHOLDS:
            seen = over_trials(each, truth, watching, t, (*DELTAS, DELTA))
            about = {"pose": pose, "label": label, "threshold": t, "parts": len(truth.points)}
            seen |= with_truth(each, truth, watching, t)
            own = parts.folder.row(seed=seed, measure="witnessed", **about, **seen, **trained)
            rows.append(own)
    return rows


def with_truth(found: Solutions, truth: Solutions, watching: Tensor, t: float) -> Row:
    """The precision of parts that have planes at this threshold at all, and their share."""
    assert truth.values is not None
    some = ((truth.values <= t) & truth.inside).any(1)
    if not some.any():
        return {"with_truth": 0.0, "wp_with_truth": None}
    rows = some.nonzero()[:, 0].tolist()
    seen = over_trials(found[rows], truth[rows], watching, t, (DELTA,))
    return {"with_truth": some.float().mean().item(), "wp_with_truth": seen[f"wp@{DELTA:.4g}"]}


def table(rows: list[Row]) -> str:
    """WP at 2% of the diameter, means over seeds; in brackets that of parts with planes at t."""
    said = (
        f"Witnessed precision within {DELTA:g} (2% of the diameter) of particle descent, in "
        "brackets on the parts that have a plane at that threshold at all: two empty sets count "
        f"as alike. Means of {len({r['seed'] for r in rows})} seeds over "
        f"{rows[0]['parts']} test parts.\n"
    )
    for pose, some in grouped(rows, "pose").items():
        lines = []
        for label, own in grouped(some, "label").items():
            cells = [_cell(each) for each in grouped(own, "threshold").values()]
            lines.append((label, *cells))
        said += f"\n## In {'their' if pose == 'own pose' else 'a'} {pose}\n\n"
        said += markdown(("method", *(f"t = {t:g}" for t in THRESHOLDS)), lines)
    return said


def _cell(rows: list[Row]) -> str:
    every = np.mean([r[f"wp@{DELTA:.4g}"] for r in rows])
    known = [r["wp_with_truth"] for r in rows if r["wp_with_truth"] is not None]
    return f"{every:.3f} ({np.mean(known):.3f})" if known else f"{every:.3f} (-)"


def draw_precision(every: np.ndarray, rows: list[Row]) -> None:
    """WP against delta in the parts' own pose, a panel for each threshold."""
    own = [r for r in rows if r["pose"] == "own pose" and r["seed"] == rows[0]["seed"]]
    for axes, (t, some) in zip(every, grouped(own, "threshold").items()):
        tidy(axes, xlabel="δ", ylim=(0, 1.02), xlim=(0, DELTAS[-1]), title=f"t = {t:g}")
        for r in some:
            look = {"color": _color(r["label"]), "linewidth": 2.0}
            precision = [r[f"wp@{delta:.4g}"] for delta in DELTAS]
            axes.plot(DELTAS, precision, label=r["label"], **look)
    every[0].set_ylabel("witnessed precision")
    lines, labels = every[0].get_legend_handles_labels()
    where = {"loc": "outside lower center", "ncols": 4, "frameon": False, "fontsize": "small"}
    every[0].figure.legend(lines, labels, **where)


def _color(label: str) -> str:
    if label.startswith("looking, GOL"):
        return COLORS["GOL"]
    if label.startswith("looking"):
        return {"10": "#9ec3ee", "20": COLORS["POL"], "40": "#123b6d"}.get(label.split()[1], INK)
    return {CEILING: COLORS["PD"], UNTOUCHED: "0.8"}.get(
        label, "#b8860b" if "pairs" in label else "0.5"
    )


def draw_planes(figure: Figure, operator: Operator, parts: Parts) -> None:
    """Rows are parts; columns, planes after so many applications, as in the paper: a plane is a
    segment along its normal that begins on it, coloured by its residual."""
    count = parts.drawn
    every = [parts.solved("operator", parts.seed, operator=operator, steps=k) for k in STAGES]
    for row in range(count):
        cloud = parts.tau["cloud"][row, :, :3].cpu()
        for column, (stage, found) in enumerate(zip(STAGES, every)):
            axes = figure.add_subplot(
                count, len(STAGES), row * len(STAGES) + column + 1, projection="3d"
            )
            assert found.values is not None
            draw_segments(axes, cloud, found.points[row].cpu(), found.values[row].cpu())
            if row == 0:
                axes.set_title(f"{stage} applications", fontsize="medium", color=INK)


def draw_segments(axes: Axes, cloud: Tensor, planes: Tensor, values: Tensor) -> None:
    """A part as dots, and its planes."""
    from matplotlib.colors import LogNorm

    look: dict[str, Any] = {"cmap": "plasma", "norm": LogNorm(1e-4, 1e-1)}
    axes.scatter(*cloud.T, s=0.5, color="0.8", linewidths=0)
    normal, foot = planes[:, :3], planes[:, :3] * planes[:, 3:]
    lines = torch.stack((foot, foot + 0.25 * normal), 1)
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    order = values.argsort(descending=True)
    drawn = Line3DCollection(lines[order].numpy(), linewidths=0.8, **look)
    drawn.set_array(values[order].clamp(min=1e-4).numpy())
    axes.add_collection(drawn)
    axes.set(xlim=(-0.5, 0.5), ylim=(-0.5, 0.5), zlim=(-0.5, 0.5))
    axes.set_box_aspect((1, 1, 1), zoom=1.6)  # pyright: ignore[reportCallIssue]
    axes.set_axis_off()
