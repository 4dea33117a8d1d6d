"""A family in the plane, trained for a minute on a CPU: how many of its minima are found then?

    python benchmarks/minute.py

The family is that of the README's ten lines: Himmelblau's function with its two constants as tau,
with four minima of value 0 each. A minimum is found if a solution ends within 1% of the space's
diameter of it; the minima themselves are found by L-BFGS from 1,024 starts.
"""

from typing import Any

import torch
from _shared import Benchmark, options, show

import proxlearn as px
from proxlearn.experiments.growing import himmelblau
from proxlearn.problems.base import Problem, held_out
from proxlearn.solvers.solve import solve

VARIANTS: dict[str, dict[str, Any]] = {  # settings of a training, by name
    "defaults": {},
    "width 128, fp32": {"architecture": {"width": 128, "shared": 256}, "precision": "fp32"},
    "width 128, bf16": {"architecture": {"width": 128, "shared": 256}, "precision": "bf16"},
    "width 64, fp32": {"architecture": {"width": 64, "shared": 128}, "precision": "fp32"},
    "width 64, bf16": {"architecture": {"width": 64, "shared": 128}, "precision": "bf16"},
}
NEAR = 0.01  # of the diameter


def minima(problem: Problem, taus: torch.Tensor) -> list[torch.Tensor]:
    """The minimizers of every tau, as (k, 2)."""
    solutions = solve(problem, taus, "lbfgs", device="cpu")
    every = [solutions[k].unique() for k in range(len(taus))]
    return [each.points[each.values < 1e-6] for each in every if each.values is not None]


def found(
    operator: px.Operator, taus: torch.Tensor, truth: list[torch.Tensor], steps: int
) -> float:
    """The share of all minima that a solution is near."""
    points = operator.solve(taus, starts=1024, steps=steps).points
    near = NEAR * operator.space.diameter
    hits = [(torch.cdist(k, p).amin(1) < near).float() for k, p in zip(truth, points)]
    return torch.cat(hits).mean().item()


def main(arguments: list[str] | None = None) -> None:
    run = Benchmark("minute", options(__doc__, on_cpu=True).parse_args(arguments))
    problem, seconds, count = himmelblau(), *((0.2, 2) if run.quick else (60.0, 64))
    taus = held_out(problem, count)
    truth = minima(problem, taus)
    for name, settings in VARIANTS.items():
        operator = px.learn(problem, seconds=seconds, device="cpu", **settings)
        shares = {steps: found(operator, taus, truth, steps) for steps in (5, 20)}
        run.add(
            variant=name,
            seconds=seconds,
            training_steps=operator.provenance["steps"],
            minima=sum(map(len, truth)),
            found_after_5=shares[5],
            found_after_20=shares[20],
        )
    header = ("settings", "steps", "minima", "found, 5 applications", "found, 20 applications")
    keys = ("variant", "training_steps", "minima", "found_after_5", "found_after_20")
    show(f"{seconds:g} s on a CPU", header, [tuple(row[key] for key in keys) for row in run.rows])
    run.save()


if __name__ == "__main__":
    main()
