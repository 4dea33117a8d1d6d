"""The arm: all ways in which three links can reach a target and rest, found and certified?

    python benchmarks/arm.py --seconds 60 --out results/arm/rows.jsonl

The joints of a planar arm are a point of `Circles(3)`; every joint would rather be straight, by a
little, so that the curve of ways to a target has a few isolated minima. They are those that batched
L-BFGS finds from 4,096 starts, polished. One is found if `solutions.polished().unique()` lists an
optimum there that is certified.
"""

import argparse
import math
import time
from pathlib import Path

import torch
from _shared import show
from torch import Tensor

import proxlearn as px
from proxlearn.calculus.certify import UNCONVERGED
from proxlearn.common.files import write_rows
from proxlearn.common.provenance import Row, row
from proxlearn.common.seeds import generator_for
from proxlearn.experiments._families import LINKS, arm
from proxlearn.experiments._judging import SAME, are_optima, true_optima
from proxlearn.experiments._shared import nearby

STARTS, TRUTH_STARTS = 256, 4_096
REACH = sum(LINKS)
COLUMNS = ("label", "minima", "found", "share", "complete", "false", "unconverged")


def arms(weight: float) -> px.Problem:
    """The family of all targets around the arm."""
    return px.Problem.from_function(arm(weight), px.Circles(3), px.Box(-REACH, REACH, 2), "arm")


def targets(count: int, seed: int) -> Tensor:
    """Uniform in the disk that the arm reaches, less its rim: (count 2)."""
    generator = generator_for(seed, "targets")
    radius = 0.95 * REACH * torch.rand(count, generator=generator).sqrt()
    angle = 2 * math.pi * torch.rand(count, generator=generator)
    return torch.stack((radius * angle.cos(), radius * angle.sin()), -1)


def judged(label: str, solutions: px.Solutions, truth: list[Tensor]) -> Row:
    """How many of the true minima of all targets are listed with a certificate."""
    problem, tau = solutions.problem, solutions.tau
    assert problem is not None
    assert isinstance(tau, Tensor)
    assert solutions.certificates is not None
    found, complete, false = [], 0, 0
    for k, known in enumerate(truth):
        listed = solutions[k].unique().points
        found.append(nearby(problem.space, known, listed, SAME))
        complete += found[-1] == len(known)
        false += int((~are_optima(problem, tau[k : k + 1], listed)).sum())
    minima = sum(map(len, truth))
    return {
        "label": label,
        "targets": len(truth),
        "minima": minima,
        "found": sum(found),
        "share": sum(found) / minima,
        "complete": complete,
        "false": false,
        "unconverged": (solutions.certificates == UNCONVERGED).float().mean().item(),
    }


def measure(weight: float, count: int, seconds: float, seed: int) -> list[Row]:
    """A row for L-BFGS, one for particle descent and one for an operator."""
    problem, tau = arms(weight), targets(count, seed)
    truth = [true_optima(problem, each, TRUTH_STARTS, STARTS, seed).optima for each in tau.split(1)]
    operator = px.learn(problem, seconds=seconds, seed=seed, device="cpu")
    how = {"starts": STARTS, "seed": seed, "device": "cpu"}
    methods = {
        "L-BFGS": lambda: px.solve(problem, tau, "lbfgs", **how),
        "descent": lambda: px.solve(problem, tau, "descent", **how),
        "operator": lambda: operator.solve(tau, STARTS, seed=seed),
    }
    rows = []
    for label, method in methods.items():
        began = time.perf_counter()
        solutions = method().polished()
        spent = time.perf_counter() - began
        about = {"benchmark": "arm", "command": "python benchmarks/arm.py", "weight": weight}
        about |= {"starts": STARTS, "truth_starts": TRUTH_STARTS, "training_seconds": seconds}
        about |= {"seconds": spent, "seed": seed, "threads": torch.get_num_threads()}
        rows.append(row(**judged(label, solutions, truth), **about))
    return rows


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--weight", type=float, default=0.01, help="of the posture")
    parser.add_argument("--targets", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0, help="training time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the rows to this file")
    asked = parser.parse_args(given)
    rows = measure(asked.weight, asked.targets, asked.seconds, asked.seed)
    show("Rest positions of the arm", COLUMNS, [[each[k] for k in COLUMNS] for each in rows])
    if asked.out:
        write_rows(asked.out, rows)


if __name__ == "__main__":
    main()
