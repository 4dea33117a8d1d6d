"""Maximum cuts of graphs (paper, 5.3 and D.6): POL, GOL and particle descent, and larger graphs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from proxlearn.answers.solutions import Solutions
from proxlearn.common.devices import pick_device
from proxlearn.common.provenance import Row, row
from proxlearn.common.seeds import generator_for
from proxlearn.experiments._cutting import race
from proxlearn.experiments._shared import (
    DESCENT,
    GRADIENT,
    PROXIMAL,
    Folder,
    markdown,
    published,
    tidy,
)
from proxlearn.figures import draw as plots
from proxlearn.figures.draw import new_figure, save
from proxlearn.measure.evaluate import evaluate
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import held_out
from proxlearn.problems.maxcut.cuts import EXACT, cut_values, enumerated, one_exchange
from proxlearn.problems.maxcut.maxcut import VERTICES, Maxcut
from proxlearn.solvers.solve import solve
from proxlearn.spaces import Signs

THRESHOLDS = (0.995, 0.99, 0.9, 0.0)  # times the best value that descent found
DELTAS = tuple(np.linspace(0.1, 2.0, 50).tolist())
APPLICATIONS = 100
SEED = 10  # of test graphs that no choice of lam or scale was made on
LARGEST = 32  # vertices in training of the operator for any size
LAM = 2.5  # the paper's, with which 100 applications are too few to arrive
POL, GOL = {"lam": (0.05, LAM)}, {"rule": "gradient"}
PLAIN = {"architecture": "default"}
COLORS = {
    "POL": PROXIMAL,
    "POL, the paper's lam": "#79a7dd",
    "POL, plain network": "#8d6cab",
    "POL for any size": "#e09f3e",
    "GOL": GRADIENT,
    "PD, other starts": DESCENT,
}
Candidates = dict[str, dict[str, Any]]  # settings of the method "operator", by label


@dataclass(frozen=True)
class Sizes:
    """Every number the experiment depends on."""

    training: dict[str, Any]  # of POL and GOL on graphs of 8 vertices
    any_size: dict[str, Any]  # of the operator for any size
    descent: dict[str, Any]  # the reference
    cut_descent: dict[str, Any]  # whose cuts are counted: as far in fewer steps
    instances: int = 1024
    starts: int = 1024
    witnesses: int = 1024
    trials: int = 10
    cut_graphs: int = 1024  # whose maximum cuts are counted, half of them with weights 0 and 1
    large: tuple[int, ...] = (16, 32, 64, 100, 200)
    large_graphs: int = 16
    large_starts: int = 256


FULL = Sizes(
    training={"seconds": 30.0, "precision": "fp32", "applications": APPLICATIONS},
    any_size={"seconds": 60.0, "precision": "fp32", "applications": APPLICATIONS},
    descent={"steps": 50_000, "rate": 1e-4},
    cut_descent={"steps": 5_000, "rate": 1e-3},
)
QUICK = Sizes(
    training={"seconds": 40.0, "rate": 3e-3, "instances": 60, "points": 8, "applications": 100},
    any_size={"seconds": 40.0, "rate": 3e-3, "instances": 24, "points": 4, "applications": 100},
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
    "It trains each operator for 40 seconds on a CPU instead of 30 or 60 on a GPU, and evaluates "
    "on 12 graphs instead of 1,024 with a shorter particle descent and fewer starts, and on larger "
    "graphs of up to 48 vertices instead of 200, so that its numbers are not those of the full run."
)


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    """Train, evaluate, draw: rows and a table."""
    problem, training = Maxcut(), sizes.training
    pol = folder.train("pol", problem, training | POL)
    plain = folder.train("plain", problem, training | POL | PLAIN)
    any_size = folder.train("any", Maxcut(VERTICES, LARGEST), sizes.any_size | POL)
    gol = folder.train("gol", problem, training | GOL)
    candidates: Candidates = {
        "POL": {"operator": pol},
        "POL, the paper's lam": {"operator": pol, "lam": LAM},
        "POL, plain network": {"operator": plain},
        "POL for any size": {"operator": any_size},
        "GOL": {"operator": gol},
    }
    candidates = {name: how | {"steps": APPLICATIONS} for name, how in candidates.items()}
    witnessed = witnessed_rows(problem, candidates, sizes, folder.device)
    cuts = cut_rows(problem, candidates, sizes, folder.device)
    large = large_rows(any_size, sizes, folder.device)
    draw_precision(witnessed, folder)
    draw_cuts(problem, candidates["POL"], sizes, folder)
    draw_large(large, folder)
    return witnessed + cuts + large, table(witnessed, cuts, large)


def witnessed_rows(problem: Maxcut, candidates: Candidates, sizes: Sizes, device: str) -> list[Row]:
    """The paper's protocol, with descent against descent as the best that can be reached."""
    learned = [(name, "operator", how) for name, how in candidates.items()]
    rows = evaluate(
        problem,
        [*learned, ("PD, other starts", "descent", sizes.descent)],
        reference=("descent", sizes.descent),
        instances=sizes.instances,
        starts=sizes.starts,
        witnesses=sizes.witnesses,
        trials=sizes.trials,
        thresholds=THRESHOLDS,
        relative=True,
        deltas=DELTAS,
        seed=SEED,
        device=device,
    )
    return [{"measure": "witnessed"} | each for each in rows]


def cut_rows(problem: Maxcut, candidates: Candidates, sizes: Sizes, device: str) -> list[Row]:
    """Of all maximum cuts of small graphs, how many every method finds."""
    picked = pick_device(device)
    weights = held_out(problem, sizes.cut_graphs, seed=SEED + 1, device=picked)
    truth = enumerated(weights)
    rows = []
    for name, how in candidates.items():
        found = solve(problem, weights, "operator", sizes.starts, device=device, **how)
        rows += _counted(name, found.rounded(), truth, weights, picked)
    found = solve(problem, weights, "descent", sizes.starts, device=device, **sizes.cut_descent)
    rows += _counted("PD", found.rounded(), truth, weights, picked)
    generator = generator_for(0, "sides")
    sides = Signs(VERTICES).sample(len(weights), sizes.starts, generator=generator).to(weights)
    discrete = problem.rounded(found.points, weights)[0]
    local = one_exchange(sides, weights)
    exchanged = Solutions.of(discrete.space, local, sides).valued(discrete, weights)
    return rows + _counted("one-exchange", exchanged, truth, weights, picked)


def _counted(
    label: str,
    cuts: Solutions,
    truth: list[torch.Tensor],
    weights: torch.Tensor,
    device: torch.device,
) -> list[Row]:
    """For each kind of graph, means: of the maximum cuts, the share that was found; of the distinct
    cuts found, how many there are and the share that is maximal."""
    every, cuts = [], cuts.cpu()
    for k, best in enumerate(truth):
        optima = cuts[k].unique(smallest_share=0.0)
        most = cut_values(best[None], weights[k : k + 1]).max().item()
        assert optima.values is not None
        hits = int((optima.values <= -most + EXACT * abs(most)).sum())
        every.append((hits / len(best), len(best), len(optima), hits / max(1, len(optima))))
    rows = []
    for kind, some in (("weights 0 and 1", every[::2]), ("uniform weights", every[1::2])):
        found, known, distinct, maximal = (float(each) for each in np.mean(some, 0))
        fields = {
            "measure": "maximum cuts",
            "label": label,
            "graphs": kind,
            "instances": len(some),
            "starts": cuts.points.shape[1],
            "seed": SEED + 1,
            "found_share": found,
            "maximum_cuts": known,
            "distinct_cuts": distinct,
            "maximal_share": maximal,
        }
        rows.append(row(device, **fields))
    return rows


def large_rows(operator: Operator, sizes: Sizes, device: str) -> list[Row]:
    """Graphs of other sizes than those trained on, against heuristics in the same time."""
    rows = []
    for vertices in sizes.large:
        weights = held_out(Maxcut(vertices), sizes.large_graphs, seed=SEED + 2)
        raced = race(operator, weights, sizes.large_starts, APPLICATIONS, device)
        rows += [row(pick_device(device), measure="large", seed=SEED + 2, **each) for each in raced]
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
    counted = [
        (r["label"], r["graphs"], r["found_share"], r["distinct_cuts"], r["maximal_share"])
        for r in cuts
    ]
    raced = []
    for r in large:
        share, wins = f"{r['of_best']:.2%}", f"{r['wins']} of {r['instances']}"
        raced.append((r["label"], r["vertices"], share, wins, r["seconds"]))
    return "\n".join(
        (
            markdown((*header, *theirs), lines),
            f"All maximum cuts by enumeration, from {cuts[0]['starts']:,} starts; means over "
            f"{cuts[0]['instances']} graphs of each kind.\n",
            markdown(
                ("method", "graphs", "found of all", "distinct cuts", "maximal of them"), counted
            ),
            "Larger graphs: the best cut against the best of all methods, in the operator's time; "
            "one operator, trained on graphs of 8 to 32 vertices.\n",
            markdown(("method", "vertices", "of the best", "best of all on", "seconds"), raced),
        )
    )


def draw_precision(rows: list[Row], folder: Folder) -> None:
    """WP against delta for each threshold; WD are the dashed lines, published ones are lighter."""
    figure = new_figure(13.5, 4.1)
    every = figure.subplots(1, len(THRESHOLDS), sharey=True)
    for axes, t in zip(every, THRESHOLDS):
        tidy(axes, xlabel="δ", ylim=(0, 1.02), xlim=(0, DELTAS[-1]), title=f"t = {t:g}")
        axes.title.set_fontsize("medium")
        for name in ("POL", "GOL"):
            theirs = published("maxcut", name, t)
            look = {"color": COLORS[name], "alpha": 0.35}
            axes.plot(theirs["delta"], theirs["WP"], label=f"{name}, published", **look)
        shown = [r for r in rows if r["threshold"] == t]
        for k, each in reversed([*enumerate(shown)]):  # the first on top, and thinner
            color = COLORS[each["label"]]
            precision = [each[f"wp@{delta:.4g}"] for delta in DELTAS]
            axes.plot(DELTAS, precision, color=color, linewidth=1.5 + 0.7 * k, label=each["label"])
            axes.axvline(each["wd"], color=color, linestyle=(0, (3, 3)), linewidth=1.2)
    every[0].set_ylabel("witnessed precision")
    lines, labels = every[0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=8, frameon=False)
    save(figure, folder.path / "precision.png")


def draw_cuts(problem: Maxcut, how: dict[str, Any], sizes: Sizes, folder: Folder) -> None:
    """Of the first test graphs, the four with the most distinct cuts."""
    weights = held_out(problem, 32)[::2]
    found = solve(problem, weights, "operator", sizes.starts, device=folder.device, **how)
    cuts = found.rounded()
    counts = torch.tensor([len(cuts[k].unique(smallest_share=0.0)) for k in range(len(cuts))])
    chosen = counts.argsort(descending=True, stable=True)[:4]
    titles = [f"a graph with {counts[k]} distinct cuts" for k in chosen.tolist()]
    shown = found.cpu()[chosen]
    plots.gallery(problem, weights[chosen], shown, folder.path / "cuts.png", titles)


def draw_large(rows: list[Row], folder: Folder) -> None:
    """How far each method stays below the best cut that any of them found."""
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    tidy(axes, xlabel="vertices", ylabel="below the best cut by any method, %")
    axes.set_yscale("symlog", linthresh=0.01)
    for label in dict.fromkeys(each["label"] for each in rows):
        points = [(r["vertices"], 100 - 100 * r["of_best"]) for r in rows if r["label"] == label]
        axes.plot(*zip(*points), marker="o", markersize=4, linewidth=1.6, label=label)
    axes.legend(frameon=False, fontsize="small")
    save(figure, folder.path / "large.png")
