"""Mirror planes of mechanical parts (paper, 5.4 and D.7): POL that looks, pooled POL, GOL, descent.

The parts are generated, or those of a folder of meshes (`--data`): one of ours, or the paper's MCB
with its catalogs. Operators are trained on the training parts and measured on the test parts, in
their own pose and in random ones. Slopes come from a grid around every part; the values that the
thresholds speak of are exact.

The truth is particle descent from 1,024 starts, as in the paper: from 256, which all methods have
here, it leaves out shallow planes that it finds from others.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from proxlearn.answers.metrics import counted
from proxlearn.answers.solutions import Solutions
from proxlearn.common.provenance import Row
from proxlearn.common.seeds import generator_for
from proxlearn.common.words import counted as so_many
from proxlearn.experiments._look import COLORS, INK, Axes, Figure
from proxlearn.experiments._parts import Parts, Timed, meshes_of, turned_with
from proxlearn.experiments._shared import SEED, Folder, grouped, markdown, trained_for
from proxlearn.experiments._witnessed import draw_precision
from proxlearn.gpu.devices import pick_device
from proxlearn.measure.evaluate import gaps, means
from proxlearn.operators.operator import Operator
from proxlearn.operators.shipped import pretrained
from proxlearn.problems.symmetry.symmetry import Symmetry

DATA = "a folder of meshes with catalogs (as MCB has them), or a packed .npz"
THRESHOLDS = (1e-4, 1e-3, 1e-2, 1e-1)
DELTA = 0.041  # 2% of the diameter of the space
DELTAS = tuple(np.linspace(0.001, 0.2, 40).tolist())
CEILING, CLASSICAL, UNTOUCHED = "descent, other starts", "pairs and PCA, refined", "the starts"
GENERATED = "looking, trained on generated parts"
OWN, RANDOM = "own pose", "random pose"
BY_CHANCE, WORST = 4, 2  # parts in the picture: some, and those found worst at t = 0.01
STAGES = (0, 1, 2, 5, 10, 20)  # applications in the picture


@dataclass(frozen=True)
class Sizes:
    looking: dict[str, Any]  # trainings, one for each seed
    pooled: dict[str, Any]
    gradient: dict[str, Any]
    truth: dict[str, Any]  # particle descent
    applications: tuple[int, ...] = (10, 20)
    pooled_applications: int = 20
    parts: int | None = None  # to test on; None: all
    starts: int = 256
    truth_starts: int = 1024
    witnesses: int = 1024
    trials: int = 3
    seeds: tuple[int, ...] = (0, 1, 2)


DGCNN = {
    "architecture": {"kind": "coupling", "blocks": 5},
    "instances": 24,
    "points": 256,
    "encodes": 8,
    "depth": 5,
    "applications": 20,
}
FULL = Sizes(
    looking={"seconds": 30.0, "depth": 10},
    pooled={"seconds": 30.0} | DGCNN,
    gradient={"seconds": 30.0, "rule": "gradient", "descents": 1} | DGCNN,
    truth={"steps": 1_500, "rate": 3e-3, "falling": True},
)
BRIEF = {"seconds": 20.0, "depth": 2, "applications": 10, "instances": 3, "points": 8}
NARROW = {"architecture": {"kind": "coupling", "width": 32, "shared": 32}}
QUICK = Sizes(
    looking=BRIEF,
    pooled=BRIEF | NARROW,
    gradient=BRIEF | NARROW | {"rule": "gradient", "descents": 1},
    truth={"steps": 150, "rate": 1e-2, "falling": True},
    pooled_applications=5,
    parts=4,
    starts=12,
    truth_starts=48,
    witnesses=256,
    trials=1,
    seeds=(0,),
)
LEFT_OUT = (
    "It trains for 20 seconds instead of 30 on a GPU, with few planes in a step, and measures 4 "
    "parts from 12 starts instead of all from 256, against 150 steps of descent instead of 1,500, "
    "so that its numbers are not those of the full run."
)


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    known = meshes_of(folder)
    problem = Symmetry(**known)
    looking = {
        seed: folder.train(f"looking-{seed}", problem, sizes.looking | {"seed": seed})
        for seed in sizes.seeds
    }
    aligned = problem.posed(turned=False)  # a pooled code is not the same in another pose
    others = {
        "pooled (DGCNN)": folder.train("pooled", aligned, sizes.pooled),
        "GOL (DGCNN)": folder.train("gol", aligned, sizes.gradient),
    }
    generator = generator_for(SEED, "test", pick_device(folder.device))
    parts = Parts.of(problem, known, sizes.parts, sizes.starts, generator)
    turn = parts.poses(generator)
    truth = parts.started(sizes.truth_starts).solved("descent", SEED + 1, **sizes.truth)
    ceiling = parts.solved("descent", SEED + 2, **sizes.truth)
    rows = []
    for pose in (OWN, RANDOM):
        if pose == RANDOM:  # all distances stay, so descent would find the same
            parts = parts.turned(turn)
            truth, ceiling = turned_with(turn, truth), turned_with(turn, ceiling)
        run = Measuring(parts, truth.solutions, sizes, folder, pose)
        rows += run.once(CEILING, ceiling) + run.once(CLASSICAL, parts.solved("pairs", SEED))
        for label, operator in others.items():
            rows += run.operator(label, operator, SEED, sizes.pooled_applications)
        if folder.data:
            rows += run.operator(GENERATED, shipped(parts), SEED, 20)
        for seed, operator in looking.items():
            rows += run.operator(UNTOUCHED, operator, seed, 0)
            for k in sizes.applications:
                rows += run.operator(f"looking, {k} applications", operator, seed, k)
            if operator.stops:
                rows += run.operator("looking, until arrived", operator, seed, None)
            folder.keep(rows)
    with folder.figure("precision.png", 13.0, 4.2) as figure:
        draw(figure.subplots(1, len(THRESHOLDS), sharey=True), rows)
    shown = worst_and_others(parts, truth, looking[SEED])
    with folder.figure("planes.png", 2.0 * len(STAGES), 2.0 * len(shown)) as figure:
        draw_planes(figure, looking[SEED], shown)
    return rows, table(rows)


def shipped(parts: Parts) -> Operator:
    return pretrained("symmetry", str(parts.tau["cloud"].device))


@dataclass(frozen=True)
class Measuring:
    """Rows of what methods found of parts in a pose."""

    parts: Parts
    truth: Solutions
    sizes: Sizes
    folder: Folder
    pose: str

    def operator(self, label: str, operator: Operator, seed: int, steps: int | None) -> list[Row]:
        found = self.parts.solved("operator", seed, operator=operator, steps=steps)
        return self.once(label, found, seed, **trained_for(operator.provenance))

    def once(self, label: str, found: Timed, seed: int = SEED, **trained: Any) -> list[Row]:
        """A row for each threshold."""
        every, sizes = found.solutions, self.sizes
        generator = generator_for(seed, "witnesses")
        watching = every.space.sample(sizes.trials, sizes.witnesses, generator=generator)
        rows = []
        for t in THRESHOLDS:
            gap, there = gaps(every, self.truth, watching, t), counted(self.truth, t)
            some = there.any(1)
            about = {"pose": self.pose, "label": label, "threshold": t, "parts": len(self.parts)}
            seen = means(gap, (*DELTAS, DELTA)) | {
                "rho": counted(every, t).float().mean().item(),
                "rho_gt": there.float().mean().item(),
                "with_truth": some.float().mean().item(),
                "wp_with_truth": (gap[some] < DELTA).float().mean().item() if some.any() else None,
            }
            more = {"seconds": found.seconds, **trained, "measure": "witnessed"}
            rows.append(self.folder.row(seed=seed, **about, **seen, **more))
        return rows


def table(rows: list[Row]) -> str:
    """WP at 2% of the diameter, means over seeds; in brackets that of parts with planes at t."""
    seeds = len({r["seed"] for r in rows})
    said = (
        f"Witnessed precision within {DELTA:g} (2% of the diameter) of particle descent, in "
        "brackets on the parts that have a plane at that threshold at all: two empty sets count "
        f"as alike. {so_many(rows[0]['parts'], 'test part')}; where an operator looks, means of "
        f"{so_many(seeds, 'training')}. Seconds are those of a part, of many together.\n"
    )
    for pose, some in grouped(rows, "pose").items():
        lines = []
        for label, own in grouped(some, "label").items():
            cells = [_cell(each) for each in grouped(own, "threshold").values()]
            lines.append((label, *cells, float(np.mean([r["seconds"] for r in own]))))
        said += f"\n## In {'their' if pose == OWN else 'a'} {pose}\n\n"
        said += markdown(("method", *(f"t = {t:g}" for t in THRESHOLDS), "seconds"), lines)
    return said


def _cell(rows: list[Row]) -> str:
    every = np.mean([r[f"wp@{DELTA:.4g}"] for r in rows])
    known = [r["wp_with_truth"] for r in rows if r["wp_with_truth"] is not None]
    return f"{every:.3f} ({np.mean(known):.3f})" if known else f"{every:.3f} (-)"


def draw(every: np.ndarray, rows: list[Row]) -> None:
    """WP against delta in the parts' own pose, a panel for each threshold, and what was published
    for MCB."""
    own = [r for r in rows if r["pose"] == OWN and r["seed"] == SEED]
    looks = {
        UNTOUCHED: ("0.8", 1.5),
        CLASSICAL: ("#b8860b", 1.5),
        "GOL (DGCNN)": (COLORS["GOL"], 2.0),
        "pooled (DGCNN)": ("#7b5ea7", 2.0),
        CEILING: (COLORS["PD"], 2.0),
        GENERATED: ("#e07b39", 1.5),
    }
    blues = ("#7fb0ea", COLORS["POL"], "#123b6d")
    there = grouped(own, "label")
    more = [label for label in there if label not in looks]
    looks |= {label: (color, 2.0) for label, color in zip(more, blues)}
    looks = {label: look for label, look in looks.items() if label in there}
    draw_precision(every, "symmetry", own, DELTAS, looks)


def worst_and_others(parts: Parts, truth: Timed, operator: Operator) -> Parts:
    """Some parts by chance, then those whose planes at t = 0.01 are found worst."""
    found = parts.solved("operator", SEED, operator=operator, steps=max(STAGES)).solutions
    watching = found.space.sample(1, 256, generator=generator_for(SEED, "witnesses"))
    worst = gaps(found, truth.solutions, watching, 1e-2).mean((1, 2)).argsort(descending=True)
    lots = torch.randperm(len(parts), generator=generator_for(SEED, "shown")).to(worst)
    return parts.some(torch.cat((lots[:BY_CHANCE], worst[:WORST]))[: len(parts)])


def draw_planes(figure: Figure, operator: Operator, parts: Parts) -> None:
    """Rows are parts; columns, planes after so many applications, as in the paper: a plane is a
    segment along its normal that begins on it, coloured by its residual."""
    every = [parts.solved("operator", SEED, operator=operator, steps=k).solutions for k in STAGES]
    for row in range(len(parts)):
        cloud = parts.tau["cloud"][row, :, :3].cpu()
        for column, (stage, found) in enumerate(zip(STAGES, every)):
            axes = figure.add_subplot(
                len(parts), len(STAGES), row * len(STAGES) + column + 1, projection="3d"
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
