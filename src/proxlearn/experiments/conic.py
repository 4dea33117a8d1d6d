"""Sampling from conic sections (paper, 5.1 and D.4): POL, GOL and particle descent."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from proxlearn.answers.solutions import Solutions
from proxlearn.common.devices import pick_device
from proxlearn.common.provenance import Row, row
from proxlearn.experiments._shared import (
    DESCENT,
    GRADIENT,
    INK,
    PROXIMAL,
    Folder,
    bare,
    markdown,
    published,
    tidy,
)
from proxlearn.figures.draw import new_figure, save
from proxlearn.measure.evaluate import evaluate
from proxlearn.operators.operator import Operator
from proxlearn.problems import problem
from proxlearn.problems.base import Problem, held_out
from proxlearn.solvers.solve import solve, trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POL, GOL = {"rule": "proximal"}, {"rule": "gradient"}
APPLICATIONS, GOL_APPLICATIONS = (3, 5, 10, 20), 100
THRESHOLDS = (0.05, 0.1, 0.2)
DELTAS = tuple(np.linspace(0.05, 0.4, 50).tolist())
SHOWN = 16  # conics in the picture of solutions
COLORS = {"PD": DESCENT, "GOL": GRADIENT, "POL": PROXIMAL}
FLOOR = 1e-6  # of the convergence curves' log scale
TICKS = (0, 2, 4, 6, 8, 10, 20, 50, 100)


@dataclass(frozen=True)
class Sizes:
    """Every number the experiment depends on."""

    training: dict[str, Any]  # of POL and GOL alike: the same budget
    descent: dict[str, Any]  # the reference
    lam: float | None = None  # of POL; None is the problem's own
    instances: int = 256
    starts: int = 1024
    witnesses: int = 1024
    trials: int = 10
    curve: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)
    """applications at which the convergence curves are read; descent makes 100 steps for each"""


FULL = Sizes(training={"seconds": 120.0}, descent={"steps": 50_000, "rate": 1e-3})
QUICK = Sizes(
    training={
        "seconds": 50.0,
        "rate": 3e-3,
        "instances": 120,
        "points": 4,
        "depth": 3,
        "architecture": {"width": 64, "shared": 64},
    },
    descent={"steps": 2_000, "rate": 1e-2},
    lam=5.0,
    instances=32,
    starts=512,
    witnesses=512,
    trials=3,
    curve=(0, 1, 2, 3, 5, 10, 20, 30),
)
LEFT_OUT = (
    "It trains a small network for 50 seconds, with a larger lam, instead of 120 on a GPU, and "
    "evaluates on 32 conics instead of 256 with a shorter particle descent and fewer starts, so "
    "that its numbers are not those of the full run."
)


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    """Train, evaluate, draw: rows and a table."""
    conic = problem("conic")
    operators = {
        "POL": folder.train("pol", conic, sizes.training | POL | {"lam": sizes.lam}),
        "GOL": folder.train("gol", conic, sizes.training | GOL),
    }
    rows = witnessed_rows(conic, operators, sizes, folder.device)
    curves = convergence_rows(conic, operators, sizes, folder.device)
    draw_solutions(conic, operators, sizes, folder)
    draw_precision(rows, folder)
    draw_convergence(curves, folder)
    return rows + curves, table(rows)


def witnessed_rows(
    conic: Problem, operators: dict[str, Operator], sizes: Sizes, device: str
) -> list[Row]:
    """The paper's protocol, with descent against descent as the best that can be reached."""
    pol = [
        (f"POL, {k} applications", "operator", {"operator": operators["POL"], "steps": k})
        for k in APPLICATIONS
    ]
    k = GOL_APPLICATIONS
    gol = (f"GOL, {k} applications", "operator", {"operator": operators["GOL"], "steps": k})
    rows = evaluate(
        conic,
        [*pol, gol, ("PD, other starts", "descent", sizes.descent)],
        reference=("descent", sizes.descent),
        instances=sizes.instances,
        starts=sizes.starts,
        witnesses=sizes.witnesses,
        trials=sizes.trials,
        thresholds=THRESHOLDS,
        deltas=DELTAS,
        device=device,
    )
    return [{"measure": "witnessed"} | each for each in rows]


def convergence_rows(
    conic: Problem, operators: dict[str, Operator], sizes: Sizes, device: str
) -> list[Row]:
    """Objective values along the way, on the first three test conics."""
    tau, rows, hundreds = held_out(conic, 3), [], [100 * k for k in sizes.curve]
    how = {"starts": sizes.starts, "device": device}
    found = {
        name: trace(conic, tau, "operator", sizes.curve, operator=operator, **how)
        for name, operator in operators.items()
    }
    found["PD"] = trace(conic, tau, "descent", hundreds, **how, **sizes.descent)
    for place, k in enumerate(sizes.curve):
        for name, every in found.items():
            values = every[place].values
            assert values is not None
            for i, each in enumerate(values):
                fields = {
                    "measure": "convergence",
                    "label": name,
                    "instance": i,
                    "applications": k,
                    "mean": each.mean().item(),
                    "std": each.std().item(),
                    "seed": 0,
                }
                rows.append(row(pick_device(device), **fields))
    return rows


def table(rows: list[Row]) -> str:
    """Ours against published."""
    lines = []
    for each in rows:
        t, theirs = each["threshold"], {}
        if each["label"] in ("POL, 5 applications", "GOL, 100 applications"):
            theirs = published("conic", each["label"][:3], t)
        lines.append(
            (each["label"], t, each["wd"], each["wp@0.05"], each["wp@0.1"], each["rho"])
            + (each["rho_gt"], theirs.get("WD"), (theirs.get("WP") or [None])[0])
        )
    header = ("method", "t", "WD", "WP 0.05", "WP 0.1", "rho", "rho_gt")
    return markdown((*header, "WD, published", "WP 0.05, published"), lines)


def draw_solutions(
    conic: Problem, operators: dict[str, Operator], sizes: Sizes, folder: Folder
) -> None:
    """Columns are conics, rows are PD, GOL and POL; the exact curve is a grey line."""
    tau = held_out(conic, SHOWN)
    found = {
        "PD": solve(conic, tau, "descent", sizes.starts, device=folder.device, **sizes.descent),
        "GOL": _solve(conic, tau, sizes, folder.device, operators["GOL"], GOL_APPLICATIONS),
        "POL": _solve(conic, tau, sizes, folder.device, operators["POL"], 5),
    }
    columns = SHOWN // 2
    figure = new_figure(1.5 * columns, 9.4)
    for half, band in enumerate(figure.subfigures(2, 1, hspace=0.04, squeeze=False)[:, 0]):
        grid = band.subplots(len(found), columns)
        for line, (name, solutions) in zip(grid, found.items()):
            line[0].set_ylabel(name, color=COLORS[name], fontsize="large")
            for column, axes in enumerate(line):
                i = half * columns + column
                _show_conic(axes, tau[i], solutions[i], COLORS[name])
    save(figure, folder.path / "solutions.png")


def _show_conic(axes: "Axes", tau: torch.Tensor, solutions: Solutions, color: str) -> None:
    side = torch.linspace(-5, 5, 201)
    v, u = torch.meshgrid(side, side, indexing="ij")
    a, b, c, d, e, f = tau
    quadratic = a * u * u + b * u * v + c * v * v + d * u + e * v + f
    axes.contour(side, side, quadratic, [0.0], colors="0.7", linewidths=0.8)
    points = solutions.points[solutions.inside].cpu()
    axes.scatter(points[:, 0], points[:, 1], s=2.5, color=color, alpha=0.6, linewidths=0)
    bare(axes, (-5, -5), (5, 5))


def _solve(
    conic: Problem, tau: torch.Tensor, sizes: Sizes, device: str, operator: Operator, steps: int
) -> Solutions:
    return solve(
        conic, tau, "operator", sizes.starts, device=device, operator=operator, steps=steps
    )


def draw_precision(rows: list[Row], folder: Folder) -> None:
    """WP against delta for each threshold; WD are the dashed lines, published ones are lighter."""
    figure = new_figure(11.5, 4.1)
    every = figure.subplots(1, len(THRESHOLDS), sharey=True)
    for axes, t in zip(every, THRESHOLDS):
        tidy(axes, xlabel="δ", ylim=(0, 1.02), xlim=(0, DELTAS[-1]))
        for name in ("POL", "GOL"):
            theirs = published("conic", name, t)
            look = {"color": COLORS[name], "alpha": 0.35}
            axes.plot(theirs["delta"], theirs["WP"], label=f"{name}, published", **look)
            axes.axvline(theirs["WD"], linestyle=(0, (3, 3)), linewidth=1, **look)
        shown = _curves(rows, t)
        for each in shown:
            color = COLORS[each["label"].split(",")[0]]
            precision = [each[f"wp@{delta:.4g}"] for delta in DELTAS]
            axes.plot(DELTAS, precision, color=color, linewidth=2, label=each["label"])
            axes.axvline(each["wd"], color=color, linestyle=(0, (3, 3)), linewidth=1.2)
        rho = ",  ".join(f"{each['label'].split(',')[0]} {each['rho']:.1%}" for each in shown)
        axes.set_title(f"t = {t}\n", fontsize="medium")
        said = f"$\\rho$:  {rho},  truth {shown[0]['rho_gt']:.1%}"
        axes.text(0.5, 1.03, said, transform=axes.transAxes, ha="center", fontsize="x-small")
    every[0].set_ylabel("witnessed precision")
    lines, labels = every[0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=5, frameon=False)
    save(figure, folder.path / "precision.png")


def _curves(rows: list[Row], threshold: float) -> list[Row]:
    """What is drawn: descent, GOL, and POL after 5 applications."""
    shown = ("PD", "GOL", "POL, 5 ")
    return [r for r in rows if r["threshold"] == threshold and r["label"].startswith(shown)]


def draw_convergence(rows: list[Row], folder: Folder) -> None:
    """The mean objective against applications, with a band of one standard deviation above it (the
    one below mostly reaches 0, which a log scale cannot show)."""
    figure = new_figure(11.5, 3.6)
    every = figure.subplots(1, 3, sharey=True)
    for i, axes in enumerate(every):
        tidy(axes, title=f"conic {i + 1}", xlabel="applications (PD: hundreds of steps)")
        axes.title.set_fontsize("medium")
        for name, color in COLORS.items():
            points = [r for r in rows if r["label"] == name and r["instance"] == i]
            k = [each["applications"] for each in points]
            mean = np.array([each["mean"] for each in points])
            std = np.array([each["std"] for each in points])
            axes.plot(k, mean, color=color, linewidth=2, label=name)
            axes.fill_between(k, mean, mean + std, color=color, alpha=0.15, linewidth=0)
        axes.set_yscale("log")
        axes.set_ylim(bottom=FLOOR)
        axes.set_xscale("symlog", linthresh=10)  # most happens within the first ten
        axes.set_xticks(TICKS, map(str, TICKS))
        axes.set_xlim(0, max(each["applications"] for each in rows))
    every[0].set_ylabel("objective", color=INK)
    every[0].legend(frameon=False, fontsize="small")
    save(figure, folder.path / "convergence.png")
