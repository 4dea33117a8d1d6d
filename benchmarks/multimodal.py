"""The ten-line example on functions from the literature: how many of their global minima does an
operator find that was trained for a minute on a CPU, with default settings?

    python benchmarks/multimodal.py --seconds 60 --out results/multimodal/rows.jsonl

A global minimum is found if `solutions.unique()` has an optimum within 1% of the diameter of it
whose value is within 1% of the way from the median value of the space down to the minimum.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from _shared import show
from torch import Tensor

import proxlearn as px
from proxlearn.answers.clusters import TOLERANCE
from proxlearn.common.files import append_rows
from proxlearn.common.provenance import machine, versions
from proxlearn.experiments import _classics as classics
from proxlearn.experiments._families import CLASSICS
from proxlearn.experiments._judging import distinct

STARTS = 2048


@dataclass(frozen=True)
class Landscape:
    """A test function with the number of global minima that the literature gives it."""

    name: str
    function: Callable[[Tensor], Tensor]
    space: px.Box
    minima: int


LANDSCAPES = [
    Landscape("six-hump camel", *CLASSICS["six-hump-camel"], 2),
    Landscape("bird", *CLASSICS["bird"], 2),
    Landscape("keane", classics.keane, px.Box(0.0, 10.0, dim=2), 2),
    Landscape("branin", *CLASSICS["branin"], 3),
    Landscape("himmelblau", *CLASSICS["himmelblau"], 4),
    Landscape("holder table", *CLASSICS["holder-table"], 4),
    Landscape("modified rastrigin", classics.modified_rastrigin, px.Box(0.0, 1.0, dim=2), 12),
    Landscape("shubert", classics.shubert, px.Box(-10.0, 10.0, dim=2), 18),
    Landscape("deb", *CLASSICS["deb"], 25),
    Landscape("vincent", *CLASSICS["vincent"], 36),
]


def global_minima(landscape: Landscape) -> tuple[Tensor, float, float]:
    """(minimizers, their value, the median value), by a fine grid of starts polished in float64."""
    space = landscape.space
    axes = [torch.linspace(a, b, 301, dtype=torch.float64) for a, b in zip(space.low, space.high)]
    grid = torch.cartesian_prod(*axes)
    problem = px.Problem.from_function(landscape.function, space)
    values = landscape.function(grid)
    best = grid[values <= values.quantile(0.05)][None]
    found = px.solve(problem, starts=best.float(), method="lbfgs", device="cpu")
    inside = found.points[0][found.inside[0]]
    value = landscape.function(inside)
    spread = float(values.median() - value.min())
    chosen = inside[value <= value.min() + 1e-3 * spread]
    return distinct(space, chosen, TOLERANCE)[0], float(value.min()), float(values.median())


def count_found(landscape: Landscape, optima: px.Optima, minima: Tensor, low: float, mid: float):
    """How many of the minima have an optimum near enough and low enough."""
    assert optima.values is not None
    good = optima.points[optima.values <= low + 0.01 * (mid - low)]
    if not len(good):
        return 0
    near = torch.cdist(minima, good).amin(1) <= 0.01 * landscape.space.diameter
    return int(near.sum())


def measure(landscape: Landscape, seconds: float, seed: int, **settings) -> dict:
    minima, low, mid = global_minima(landscape)
    problem = px.Problem.from_function(landscape.function, landscape.space, name=landscape.name)
    operator = px.learn(problem, seconds=seconds, seed=seed, device="cpu", **settings)
    began = time.perf_counter()
    solutions = operator.solve(starts=STARTS)
    solved = time.perf_counter() - began
    assert solutions.applications is not None
    optima = solutions.unique()
    return {
        "benchmark": "multimodal",
        "command": "python benchmarks/multimodal.py",
        "function": landscape.name,
        "minima": landscape.minima,
        "known": len(minima),
        "found": count_found(landscape, optima, minima, low, mid),
        "optima": len(optima),
        "lam": operator.lam,
        "applications": round(solutions.applications.float().mean().item(), 1),
        "stops_by_itself": operator.arrival is not None,
        "steps": operator.provenance["steps"],
        "training_seconds": seconds,
        "solving_seconds": round(solved, 4),
        "starts": STARTS,
        "seed": seed,
        "threads": torch.get_num_threads(),
        "machine": machine(),
        **versions(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="training time of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one function by name")
    parser.add_argument("--out", type=Path, help="append the rows to this file")
    asked = parser.parse_args()
    shares, lines = [], []
    for landscape in LANDSCAPES:
        if asked.only in (None, landscape.name):
            row = measure(landscape, asked.seconds, asked.seed)
            shares.append(row["found"] / row["known"])
            keys = ("function", "known", "found", "lam", "applications", "steps")
            lines.append([row[key] for key in keys])
            if asked.out:
                append_rows(asked.out, [row])
    lines.append(["mean share found", "", f"{sum(shares) / len(shares):.1%}"])
    header = ("function", "minima", "found", "lam", "applications", "steps")
    show("Global minima found", header, lines)


if __name__ == "__main__":
    main()
