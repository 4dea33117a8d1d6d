"""Maximum cuts of graphs (paper, 5.3 and D.6): POL, GOL and particle descent, and larger graphs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from proxlearn.answers.solutions import Solutions
from proxlearn.common.provenance import Row
from proxlearn.experiments._cutting import any_sides, race
from proxlearn.experiments._look import DESCENT, GRADIENT, PROXIMAL, Axes, tidy
from proxlearn.experiments._shared import Folder, grouped, markdown, published
from proxlearn.experiments._witnessed import CEILING, Protocol, Ways, draw_precision, witnessed_rows
from proxlearn.figures import draw as plots
from proxlearn.gpu.devices import pick_device
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import held_out
from proxlearn.problems.maxcut.cuts import EXACT, cut_values, enumerated, one_exchange
from proxlearn.problems.maxcut.maxcut import VERTICES, Maxcut

THRESHOLDS = (0.995, 0.99, 0.9, 0.0)  # times the best value that descent found
DELTAS = tuple(np.linspace(0.1, 2.0, 50).tolist())
APPLICATIONS = 100
SEED = 10  # of test graphs that no choice of lam or scale was made on
LAM = 2.5  # the paper's, with which 100 applications are too few to arrive
POL, GOL = {"lam": (0.05, LAM)}, {"rule": "gradient"}
COLORS = {"POL": PROXIMAL, "POL, the paper's lam": "#79a7dd", "POL, plain network": "#8d6cab"}
COLORS |= {"POL for any size": "#e09f3e", "GOL": GRADIENT, CEILING: DESCENT}


@dataclass(frozen=True)
class Sizes(Protocol):
    training: dict[str, Any]  # of POL and GOL on graphs of 8 vertices
    any_size: dict[str, Any]  # of the operator for any size, in place of those
    cut_descent: dict[str, Any]  # whose cuts are counted: as far in fewer steps
    cut_graphs: int = 1024  # whose maximum cuts are counted, half of them with weights 0 and 1
    large: tuple[int, ...] = (16, 32, 64, 100, 200)
    large_graphs: int = 16
    large_starts: int = 256


FULL = Sizes(
    training={"seconds": 3.0, "precision": "fp32", "applications": APPLICATIONS},
    any_size={"seconds": 6.0},
    descent={"steps": 50_000, "rate": 1e-4},
    cut_descent={"steps": 5_000, "rate": 1e-3},
    instances=1024,
)
QUICK = Sizes(
    training={"seconds": 40.0, "rate": 3e-3, "instances": 60, "points": 8, "applications": 100},
    any_size={"instances": 24, "points": 4},
    descent={"steps": 2_000, "rate": 5e-3},
    cut_descent={"steps": 1_000, "rate": 1e-2},
    instances=12,
    starts=128,
    witnesses=256,
    trials=3,
    cut_graphs=24,
    large=(16, 48),
    large_graphs=4,
    large_starts=16,
)
LEFT_OUT = (
    "It trains each operator for 40 seconds on a CPU instead of 3 or 6 on a GPU, and evaluates "
    "on 12 graphs instead of 1,024 with a shorter particle descent and fewer starts, and on larger "
    "graphs of up to 48 vertices instead of 200, so that its numbers are not those of the full run."
)


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    problem, training = Maxcut(), sizes.training
    pol = folder.train("pol", problem, training | POL)
    plain = folder.train("plain", problem, training | POL | {"architecture": "default"})
    any_size = folder.train("any", Maxcut(VERTICES, most=32), training | sizes.any_size | POL)
    gol = folder.train("gol", problem, training | GOL)
    operators = {"POL": pol, "POL, the paper's lam": pol, "POL, plain network": plain}
    operators |= {"POL for any size": any_size, "GOL": gol}
    ways: Ways = {k: {"operator": each, "steps": APPLICATIONS} for k, each in operators.items()}
    ways["POL, the paper's lam"] = {"operator": pol, "lam": LAM, "steps": APPLICATIONS}
    how = {"thresholds": THRESHOLDS, "relative": True, "deltas": DELTAS, "seed": SEED}
    witnessed = witnessed_rows(problem, ways, sizes, folder, **how)
    cuts = cut_rows(problem, ways, sizes, folder)
    large = large_rows(any_size, sizes, folder)
    layers = [(k, (color, 1.5 + 0.7 * at)) for at, (k, color) in enumerate(COLORS.items())]
    with folder.figure("precision.png", 13.5, 4.1) as figure:
        every = figure.subplots(1, len(THRESHOLDS), sharey=True)
        draw_precision(every, "maxcut", witnessed, DELTAS, dict(reversed(layers)))
    draw_cuts(problem, ways["POL"], sizes, folder)
    with folder.figure("large.png", 6.4, 4.0) as figure:
        draw_large(figure.subplots(), large)
    return witnessed + cuts + large, table(witnessed, cuts, large)


def cut_rows(problem: Maxcut, ways: Ways, sizes: Sizes, folder: Folder) -> list[Row]:
    """Of all maximum cuts of small graphs, how many every method finds."""
    weights = held_out(problem, sizes.cut_graphs, SEED + 1, pick_device(folder.device))
    methods = {label: ("operator", how) for label, how in ways.items()}
    methods["PD"] = ("descent", sizes.cut_descent)
    found = {
        label: folder.solve(problem, weights, method, sizes.starts, **how).rounded()
        for label, (method, how) in methods.items()
    }
    discrete, sides = found["PD"].problem, any_sides(weights, sizes.starts, 0)
    assert discrete is not None
    local = Solutions.of(discrete.space, one_exchange(sides, weights), sides)
    found["one-exchange"] = local.valued(discrete, weights)
    truth = enumerated(weights)
    about = {"measure": "maximum cuts", "starts": sizes.starts, "seed": SEED + 1}
    return [
        folder.row(**about, label=label, **each)
        for label, cuts in found.items()
        for each in _counted(cuts.cpu(), truth, weights)
    ]


def _counted(cuts: Solutions, truth: list[torch.Tensor], weights: torch.Tensor) -> list[Row]:
    """For each kind of graph, means: of the maximum cuts, the share that was found; of the distinct
    cuts found, how many there are and the share that is maximal."""
    every = []
    for k, best in enumerate(truth):
        optima = cuts[k].unique(smallest_share=0.0)
        most = cut_values(best[None], weights[k : k + 1]).max().item()
        assert optima.values is not None
        hits = int((optima.values <= -most + EXACT * abs(most)).sum())
        every.append((hits / len(best), len(best), len(optima), hits / max(1, len(optima))))
    names = ("found_share", "maximum_cuts", "distinct_cuts", "maximal_share")
    kinds = {"weights 0 and 1": every[::2], "uniform weights": every[1::2]}
    return [
        {"graphs": kind, "instances": len(some), **dict(zip(names, np.mean(some, 0).tolist()))}
        for kind, some in kinds.items()
    ]


def large_rows(operator: Operator, sizes: Sizes, folder: Folder) -> list[Row]:
    """Graphs of other sizes than those trained on, against heuristics in the same time."""
    rows, seed = [], SEED + 2
    for vertices in sizes.large:
        weights = held_out(Maxcut(vertices), sizes.large_graphs, seed)
        raced = race(operator, weights, sizes.large_starts, APPLICATIONS, folder.device)
        rows += [folder.row(seed, measure="large", **each) for each in raced]
    return rows


def table(witnessed: list[Row], cuts: list[Row], large: list[Row]) -> str:
    """Ours against published, the cuts that were found, and the larger graphs."""
    lines = []
    for each in witnessed:
        theirs = published("maxcut", each["label"], each["threshold"])
        ours = [each["wd"], each["wp@0.1"], each["wp@0.3714"], each["rho"], each["rho_gt"]]
        wp = theirs.get("WP") or [None] * 8
        lines.append((each["label"], each["threshold"], *ours, theirs.get("WD"), wp[0], wp[7]))
    header = ("method", "t", "WD", "WP 0.1", "WP 0.371", "rho", "rho_gt")
    theirs = ("WD, published", "WP 0.1, published", "WP 0.371, published")
    fields = ("label", "graphs", "found_share", "distinct_cuts", "maximal_share")
    raced = []
    for r in large:
        share, wins = f"{r['of_best']:.2%}", f"{r['wins']} of {r['instances']}"
        raced.append((r["label"], r["vertices"], share, wins, r["seconds"]))
    found = ("method", "graphs", "found of all", "distinct cuts", "maximal of them")
    parts = (
        markdown((*header, *theirs), lines),
        f"All maximum cuts by enumeration, from {cuts[0]['starts']:,} starts; means over "
        f"{cuts[0]['instances']} graphs of each kind.\n",
        markdown(found, [[r[name] for name in fields] for r in cuts]),
        "Larger graphs: the best cut against the best of all methods, in the operator's time; "
        "one operator, trained on graphs of 8 to 32 vertices.\n",
        markdown(("method", "vertices", "of the best", "best of all on", "seconds"), raced),
    )
    return "\n".join(parts)


def draw_cuts(problem: Maxcut, how: dict[str, Any], sizes: Sizes, folder: Folder) -> None:
    """Of the first test graphs, the four with the most distinct cuts."""
    weights = held_out(problem, 32)[::2]
    found = folder.solve(problem, weights, "operator", sizes.starts, **how)
    cuts = found.rounded()
    counts = torch.tensor([len(cuts[k].unique(smallest_share=0.0)) for k in range(len(cuts))])
    chosen = counts.argsort(descending=True, stable=True)[:4]
    titles = [f"a graph with {counts[k]} distinct cuts" for k in chosen.tolist()]
    shown = found.cpu()[chosen]
    plots.gallery(problem, weights[chosen], shown, folder.path / "cuts.png", titles)


def draw_large(axes: Axes, rows: list[Row]) -> None:
    """How far each method stays below the best cut that any of them found."""
    tidy(axes, xlabel="vertices", ylabel="below the best cut by any method, %")
    axes.set_yscale("symlog", linthresh=0.01)
    for label, some in grouped(rows, "label").items():
        points = [(r["vertices"], 100 - 100 * r["of_best"]) for r in some]
        axes.plot(*zip(*points), marker="o", markersize=4, linewidth=1.6, label=label)
    axes.legend(frameon=False, fontsize="small")
