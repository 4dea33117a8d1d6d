"""Sampling from conic sections (paper, 5.1 and D.4): POL, GOL and particle descent."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from proxlearn.answers.solutions import Solutions
from proxlearn.common.provenance import Row
from proxlearn.experiments._look import COLORS, INK, Axes, Figure, bare, tidy
from proxlearn.experiments._shared import Folder, columns, grouped, markdown, published, spread
from proxlearn.experiments._witnessed import CEILING, Protocol, Ways, draw_precision, witnessed_rows
from proxlearn.operators.operator import Operator
from proxlearn.problems import problem
from proxlearn.problems.base import Problem, held_out
from proxlearn.solvers.solve import curve

APPLICATIONS = (3, 5, 10, 20)
PUBLISHED = {"POL, 5 applications": "POL", "GOL, 100 applications": "GOL"}
DRAWN = PUBLISHED | {CEILING: "PD"}
THRESHOLDS = (0.05, 0.1, 0.2)
DELTAS = tuple(np.linspace(0.05, 0.4, 50).tolist())
SHOWN = 16  # conics in the picture of solutions
TICKS = (0, 2, 4, 6, 8, 10, 20, 50, 100)


@dataclass(frozen=True)
class Sizes(Protocol):
    training: dict[str, Any]  # of POL and GOL alike: the same budget
    lam: float | None = None  # of POL; None is the problem's own
    curve: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)
    """applications at which the convergence curves are read; descent makes 100 steps for each"""


FULL = Sizes(training={"seconds": 170.0}, descent={"steps": 50_000, "rate": 1e-3}, lam=0.02)
QUICK = Sizes(
    training={"seconds": 50.0, "rate": 3e-3, "instances": 120, "points": 4}
    | {"depth": 3, "architecture": {"width": 64, "shared": 64}},
    descent={"steps": 2_000, "rate": 1e-2},
    lam=5.0,
    instances=32,
    starts=512,
    witnesses=512,
    trials=3,
    curve=(0, 1, 2, 3, 5, 10, 20, 30),
)
LEFT_OUT = (
    "It trains a small network for 50 seconds, with a larger lam, instead of 170 on a GPU, and "
    "evaluates on 32 conics instead of 256 with a shorter particle descent and fewer starts, so "
    "that its numbers are not those of the full run."
)


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    conic = problem("conic")
    pol = folder.train("pol", conic, sizes.training | {"rule": "proximal", "lam": sizes.lam})
    gol = folder.train("gol", conic, sizes.training | {"rule": "gradient"})
    ways: Ways = {f"POL, {k} applications": {"operator": pol, "steps": k} for k in APPLICATIONS}
    ways["GOL, 100 applications"] = {"operator": gol, "steps": 100}
    rows = witnessed_rows(conic, ways, sizes, folder, thresholds=THRESHOLDS, deltas=DELTAS)
    curves = convergence_rows(conic, {"POL": pol, "GOL": gol}, sizes, folder)
    with folder.figure("solutions.png", 0.75 * SHOWN, 9.4) as figure:
        draw_solutions(figure, ways, sizes, folder)
    with folder.figure("precision.png", 11.5, 4.1) as figure:
        draw_quality(figure.subplots(1, len(THRESHOLDS), sharey=True), rows)
    with folder.figure("convergence.png", 11.5, 3.6) as figure:
        draw_convergence(figure.subplots(1, 3, sharey=True), curves)
    return rows + curves, table(rows)


def convergence_rows(
    conic: Problem, operators: dict[str, Operator], sizes: Sizes, folder: Folder
) -> list[Row]:
    """Objective values along the way, on the first three test conics."""
    tau, hundreds = held_out(conic, 3), [100 * k for k in sizes.curve]
    how = {"starts": sizes.starts, "device": folder.device}
    found = {
        name: curve(conic, tau, "operator", sizes.curve, operator=operator, **how)
        for name, operator in operators.items()
    }
    found["PD"] = curve(conic, tau, "descent", hundreds, **how, **sizes.descent)
    rows = []
    for place, k in enumerate(sizes.curve):
        for name, every in found.items():
            values = every[place].values
            assert values is not None
            for i, each in enumerate(values):
                about = {"label": name, "instance": i, "applications": k}
                rows.append(folder.row(measure="convergence", **about, **spread(each)))
    return rows


def table(rows: list[Row]) -> str:
    """Ours against published."""
    header = ("method", "t", "WD", "WP 0.05", "WP 0.1", "rho", "rho_gt")
    fields = ("label", "threshold", "wd", "wp@0.05", "wp@0.1", "rho", "rho_gt")
    lines = []
    for each in rows:
        theirs = published("conic", PUBLISHED.get(each["label"], ""), each["threshold"])
        wp = theirs.get("WP") or [None]
        lines.append((*(each[name] for name in fields), theirs.get("WD"), wp[0]))
    return markdown((*header, "WD, published", "WP 0.05, published"), lines)


def draw_solutions(figure: Figure, ways: Ways, sizes: Sizes, folder: Folder) -> None:
    """Columns are conics, rows are PD, GOL and POL; the exact curve is a grey line."""
    conic, starts = problem("conic"), sizes.starts
    tau = held_out(conic, SHOWN)
    found = {"PD": folder.solve(conic, tau, "descent", starts, **sizes.descent)}
    for label in reversed(PUBLISHED):
        found[PUBLISHED[label]] = folder.solve(conic, tau, "operator", starts, **ways[label])
    for half, band in enumerate(figure.subfigures(2, 1, hspace=0.04, squeeze=False)[:, 0]):
        grid = band.subplots(len(found), SHOWN // 2)
        for line, (name, solutions) in zip(grid, found.items()):
            line[0].set_ylabel(name, color=COLORS[name], fontsize="large")
            for column, axes in enumerate(line):
                i = half * len(line) + column
                _show_conic(axes, tau[i], solutions[i], COLORS[name])


def _show_conic(axes: Axes, tau: torch.Tensor, solutions: Solutions, color: str) -> None:
    side = torch.linspace(-5, 5, 201)
    v, u = torch.meshgrid(side, side, indexing="ij")
    a, b, c, d, e, f = tau
    quadratic = a * u * u + b * u * v + c * v * v + d * u + e * v + f
    axes.contour(side, side, quadratic, [0.0], colors="0.7", linewidths=0.8)
    points = solutions.points[solutions.inside].cpu()
    axes.scatter(points[:, 0], points[:, 1], s=2.5, color=color, alpha=0.6, linewidths=0)
    bare(axes, 5)


def draw_quality(every: np.ndarray, rows: list[Row]) -> None:
    """Witnessed precision, and above it the share of solutions that counts."""
    looks = {label: (COLORS[name], 2.0) for label, name in DRAWN.items()}
    draw_precision(every, "conic", rows, DELTAS, looks, published_wd=True)
    for axes, some in zip(every, grouped(rows, "threshold").values()):
        own = {DRAWN[r["label"]]: r["rho"] for r in some if r["label"] in DRAWN}
        rho = ",  ".join(f"{name} {share:.1%}" for name, share in own.items())
        axes.set_title(f"{axes.get_title()}\n", fontsize="medium")
        said = f"$\\rho$:  {rho},  truth {some[0]['rho_gt']:.1%}"
        axes.text(0.5, 1.03, said, transform=axes.transAxes, ha="center", fontsize="x-small")


def draw_convergence(every: np.ndarray, rows: list[Row]) -> None:
    """The mean objective against applications, with a band of one standard deviation above it (the
    one below mostly reaches 0, which a log scale cannot show)."""
    curves = grouped(rows, "label", "instance")
    for i, axes in enumerate(every):
        tidy(axes, title=f"conic {i + 1}", xlabel="applications (PD: hundreds of steps)")
        for name, color in COLORS.items():
            k, mean, std = columns(curves[name, i], "applications", "mean", "std")
            axes.plot(k, mean, color=color, linewidth=2, label=name)
            axes.fill_between(k, mean, mean + std, color=color, alpha=0.15, linewidth=0)
        axes.set_yscale("log")
        axes.set_ylim(bottom=1e-6)
        axes.set_xscale("symlog", linthresh=10)  # most happens within the first ten
        axes.set_xticks(TICKS, map(str, TICKS))
        axes.set_xlim(0, max(each["applications"] for each in rows))
    every[0].set_ylabel("objective", color=INK)
    every[0].legend(frameon=False, fontsize="small")
