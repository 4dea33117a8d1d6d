"""The effect of the proximal term (paper, D.3): a grid of 121 wells and four values of lam."""

from dataclasses import dataclass
from typing import Any

import torch

from proxlearn import metrics
from proxlearn.experiments._shared import INK, PROXIMAL, Folder, bare, markdown
from proxlearn.operator import Operator, pick_device
from proxlearn.plots import new_figure, save
from proxlearn.problems.cosine import Cosine
from proxlearn.runs import Row, row
from proxlearn.solutions import Solutions
from proxlearn.solvers import solve

PUBLISHED = {  # the paper's words; it gives a picture and no numbers
    0.0: "most are missing",
    1.0: "most are missing",
    10.0: "the outer ring is missing",
    400.0: "all are found",
}
APPLICATIONS = 10
TOLERANCE = 0.05  # a minimum is found if a solution is this near; wells are 1 apart
SEED = 0


@dataclass(frozen=True)
class Sizes:
    """Every number the experiment depends on."""

    training: dict[str, Any]
    starts: int = 4096
    lams: tuple[float, ...] = tuple(PUBLISHED)


# Sinusoids for the many narrow wells; random weights to begin with, as in the paper, since an
# operator that begins as the identity holds on to its points even without a proximal term.
NETWORK = {"gated": False, "sinusoids": 64, "start_at_identity": False}
FULL = Sizes(training={"steps": 2_500, "architecture": NETWORK, "seed": SEED})
QUICK = Sizes(training={"seconds": 35.0, "architecture": NETWORK, "seed": SEED})
LEFT_OUT = (
    "It trains for 35 seconds for each lam instead of 2,500 steps, so that a few minima may still "
    "be missing at lam = 400."
)


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    """Train with each lam and count the minima found: rows and a table."""
    cosine, rows, found = Cosine(), [], {}
    for lam in sizes.lams:
        operator = folder.train(f"lam{lam:g}", cosine, sizes.training | {"lam": lam})
        found[lam] = solve(
            cosine,
            None,
            "operator",
            sizes.starts,
            SEED,
            folder.device,
            operator=operator,
            steps=APPLICATIONS,
        )
        rows.append(count_row(cosine, lam, operator, found[lam], folder.device))
    draw_grids(cosine, rows, found, folder)
    return rows, table(rows)


def count_row(
    cosine: Cosine, lam: float, operator: Operator, solutions: Solutions, device: str
) -> Row:
    """How many of the minima have a solution near them."""
    known = cosine.truth(solutions.points.new_zeros(1, 0))
    hits, total = metrics.recall(solutions, known, TOLERANCE)
    return row(
        pick_device(device),
        problem=cosine.name,
        lam=lam,
        applications=APPLICATIONS,
        starts=solutions.points.shape[1],
        tolerance=TOLERANCE,
        found=hits,
        known=total,
        inside=solutions.inside.float().mean().item(),
        trained_steps=operator.provenance["steps"],
        trained_seconds=operator.provenance["seconds"],
        seed=SEED,
    )


def table(rows: list[Row]) -> str:
    """Minima found, ours against what the paper says of its own."""
    lines = [
        (f"{r['lam']:g}", f"{r['found']} of {r['known']}", PUBLISHED.get(r["lam"])) for r in rows
    ]
    said = (
        f"A minimum is found if one of {rows[0]['starts']} solutions, after {APPLICATIONS} "
        f"applications, is within {TOLERANCE} of it (wells are 1 apart).\n\n"
    )
    return said + markdown(("lam", "minima found", "published"), lines)


def draw_grids(
    cosine: Cosine, rows: list[Row], found: dict[float, Solutions], folder: Folder
) -> None:
    """One panel for each lam: the minima are grey rings, solutions blue dots."""
    figure = new_figure(3.2 * len(rows), 3.6)
    every = figure.subplots(1, len(rows), squeeze=False)[0]
    rings = cosine.truth(torch.zeros(1, 0))[0]
    for axes, each in zip(every, rows):
        solutions = found[each["lam"]]
        points = solutions.points[solutions.inside].cpu()
        axes.plot(*rings.T, "o", markersize=7, markerfacecolor="none", color="0.8", zorder=0)
        axes.scatter(*points.T, s=6, color=PROXIMAL, alpha=0.7, linewidths=0)
        bare(axes, (-5.5, -5.5), (5.5, 5.5))
        axes.set_title(f"λ = {each['lam']:g}", fontsize="medium")
        axes.set_xlabel(f"{each['found']} of {each['known']} minima", color=INK)
    save(figure, folder.path / "minima.png")
