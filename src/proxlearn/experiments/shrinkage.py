"""Convergence to the true proximal operator (paper, D.2): the l1 norm in 2 to 32 dimensions."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxlearn.common.files import append_rows, read_rows
from proxlearn.common.provenance import Row
from proxlearn.common.seeds import generator_for
from proxlearn.experiments._look import DASHED, INK, Axes, tidy
from proxlearn.experiments._shared import SEED, Folder, columns, grouped, markdown
from proxlearn.operators.operator import Operator
from proxlearn.problems.shrinkage import Shrinkage
from proxlearn.training.session import Report

SAMPLES = 1024
GOAL = 1e-4  # the error that every dimension has to come below


@dataclass(frozen=True)
class Sizes:
    training: dict[str, Any]
    dims: tuple[int, ...] = (2, 4, 8, 16, 32)


SETTINGS = {"depth": 1, "applications": 1}
FULL = Sizes(SETTINGS | {"steps": 2_000})
QUICK = Sizes(SETTINGS | {"seconds": 30.0})
LEFT_OUT = (
    "It trains for 30 seconds in each dimension instead of 2,000 steps on a GPU, and so "
    "stays far from the goal in 16 and 32 dimensions."
)


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    """Train in each dimension while watching the error: rows and a table."""
    rows: list[Row] = []
    for dim in sizes.dims:
        problem, curve = Shrinkage(dim), folder.path / f"dim{dim}" / "error.jsonl"
        if not folder.resume:
            curve.unlink(missing_ok=True)
        settings = sizes.training | {"architecture": network(dim)}
        folder.train(f"dim{dim}", problem, settings, error_watch(problem, curve, folder))
        rows += _thinned(read_rows(curve))
    with folder.figure("error.png", 6.4, 4.0) as figure:
        draw_errors(figure.subplots(), rows)
    return rows, table(rows)


def network(dim: int) -> dict[str, Any]:
    """The paper's network begun as the identity, with room for a few units a coordinate."""
    width = min(max(8 * dim, 64), 256)
    return {"activation": "relu", "gated": False, "width": width, "shared": 2 * width}


def error_watch(problem: Shrinkage, curve: Path, folder: Folder) -> Callable[..., None]:
    """A watch that writes down how far the operator is from the closed form, at every report."""
    x = problem.space.sample(1, SAMPLES, generator=generator_for(SEED, "samples"))
    about = {"problem": problem.name, "dim": problem.space.dim, "samples": SAMPLES}

    def watch(report: Report, operator: Operator) -> None:
        found = operator.solve(starts=x, steps=1).points.cpu()
        error = (found - problem.proximal(x)).square().mean().item()  # MSE/d
        when = {"step": report.step, "trained_seconds": report.seconds}
        append_rows(curve, [folder.row(**about, **when, error=error)])

    return watch


def table(rows: list[Row]) -> str:
    """The final error of each dimension, and how soon it came below the goal. The paper shows its
    own as a figure, without numbers."""
    lines = []
    for dim, curve in grouped(rows, "dim").items():
        last = curve[-1]
        soonest = next((each["step"] for each in curve if each["error"] < GOAL), None)
        lines.append((dim, last["step"], last["trained_seconds"], last["error"], soonest))
    header = ("d", "training steps", "seconds", "MSE/d", f"steps until MSE/d < {GOAL:g}")
    return markdown(header, lines)


def draw_errors(axes: Axes, rows: list[Row]) -> None:
    """The error against training steps, one line for each dimension."""
    from matplotlib import colormaps

    tidy(axes, xlabel="training steps", ylabel="MSE / d", yscale="log")
    curves = grouped(rows, "dim")
    shades = colormaps["viridis"].resampled(len(curves) + 1)
    for k, (dim, curve) in enumerate(curves.items()):
        points = columns(curve, "step", "error")
        axes.plot(*points, color=shades(k), linewidth=1.8, label=f"d = {dim}")
    axes.axhline(GOAL, color=INK, linewidth=0.8, linestyle=DASHED)
    axes.legend(frameon=False, fontsize="small")


def _thinned(curve: list[Row]) -> list[Row]:
    """About fifty rows a decade of steps, and the last."""
    kept: list[Row] = []
    for each in curve:
        if not kept or each["step"] >= 1.05 * kept[-1]["step"] or each is curve[-1]:
            kept.append(each)
    return kept
