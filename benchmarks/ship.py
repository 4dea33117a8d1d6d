"""Train the operators that are shipped with the package, and measure each before it is kept.

    python benchmarks/ship.py [NAME ...] [--list] [--judge] [--arrival SECONDS] [--describe]

Each file says what its operator is worth on test instances. Conics: witnessed precision at 0.05
against L-BFGS, after 5 applications. All others: of the distinct optima that L-BFGS finds from as
many starts, how many the operator, alone and unpolished, has a point within 2% of the diameter of.
With --arrival the operators stay as they are, and only learn anew when to stop; with --judge they
only get a new card and new figures; with --describe only the words of their card: what they were
trained on, and their licence. With --list nothing is trained or measured: the rows are what the
files say of themselves.
"""

import json
from pathlib import Path
from typing import Any

import torch
from _shared import Benchmark, options, show

import proxlearn as px
from proxlearn.answers.metrics import NEAR
from proxlearn.common.seeds import generator_for
from proxlearn.experiments._shared import nearby
from proxlearn.measure.evaluate import over_trials
from proxlearn.operators.shipped import WEIGHTS
from proxlearn.problems.base import Problem, held_out
from proxlearn.problems.maxcut import Maxcut
from proxlearn.training.arrival import learn_arrival
from proxlearn.training.judge import judge

SEED = 21  # of the test instances
LICENCE = "MIT"  # of the files, as of the package
LONG = 1e5  # seconds: a training as long is judged on as many instances as any
TRAINING: dict[str, dict[str, Any]] = {
    "conic": {"seconds": 170.0, "lam": 0.02},
    "maxcut": {"seconds": 6.0, "lam": (0.05, 2.5), "applications": 100},
    "peaks": {
        "seconds": 25.0,
        "instances": 1024,
        "points": 8,
        "lam": (15.0, 100.0),
        "applications": 100,
    },
    "cosine": {"seconds": 6.0},
    "springs": {"seconds": 20.0},
    "symmetry": {"seconds": 40.0, "depth": 10},
    "rotation": {"seconds": 40.0, "depth": 10},
    "shrinkage": {"steps": 3000},  # this and the next two on a CPU
    "sparse": {"steps": 12_000, "lam": 5.0},
    "sparse-half": {"steps": 12_000, "lam": 5.0},
}


def figures(
    operator: px.Operator, problem: Problem, instances: int = 64, starts: int = 1024
) -> dict[str, float]:
    """What the operator is worth."""
    device = operator.device.type
    if problem.name in ("symmetry", "rotation"):
        tau = held_out(problem, 16, SEED, operator.device)
        values = px.solve(problem, tau, "operator", 64, 0, device, operator=operator).values
        assert values is not None
        return {f"below {t:g}": (values < t).float().mean().item() for t in (1e-3, 1e-2)}
    tau = held_out(problem, instances if problem.family else 1, SEED, operator.device)
    known = px.solve(problem, tau, "lbfgs", starts, 1, device)
    if problem.name == "conic":
        found = px.solve(problem, tau, "operator", starts, 0, device, operator=operator, steps=5)
        witnesses = problem.space.sample(2, starts, generator=generator_for(SEED, "witnesses"))
        seen = over_trials(found, known, witnesses, 0.05, (0.05,))
        return {"wp@0.05": seen["wp@0.05"], "wd": seen["wd"]}
    found = px.solve(problem, tau, "operator", starts, 0, device, operator=operator)
    known, found, hits, total = known.rounded().cpu(), found.rounded().cpu(), 0, 0
    for k in range(len(known)):
        true = known[k].unique().points
        hits += nearby(problem.space, true, found[k].points[0], NEAR)
        total += len(true)
    return {"found": hits / total}


def trained_problem(name: str) -> Problem:
    """The problem as the shipped operator is trained for it."""
    return Maxcut(8, most=32) if name == "maxcut" else px.problem(name)


def describe(operator: px.Operator, name: str) -> px.Operator:
    """The words of its card that no training knows."""
    operator.provenance |= {"data": trained_problem(name).drawn_from, "licence": LICENCE}
    return operator


def ship(run: Benchmark, name: str) -> px.Operator:
    """Train, measure, keep."""
    problem = trained_problem(name)
    training: dict[str, Any] = TRAINING[name] | (
        {"seconds": 1.0, "steps": None} if run.quick else {}
    )
    operator = px.learn(problem, device=run.device.type, **training)
    sizes = (2, 32) if run.quick else (64, 1024)
    operator.provenance["figures"] = figures(operator, px.problem(name), *sizes)
    describe(operator, name)
    folder = run.asked.out or (Path("runs/weights") if run.quick else WEIGHTS)
    operator.save(folder / f"{name}.safetensors")
    return operator


def renew(run: Benchmark, name: str) -> px.Operator:
    """The shipped operator, taught anew when a point has arrived if that is asked for, and judged
    anew."""
    problem, operator = px.problem(name), px.pretrained(name, run.device.type)
    if run.asked.describe:
        describe(operator, name).save((run.asked.out or WEIGHTS) / f"{name}.safetensors")
        return operator
    if seconds := run.asked.arrival:
        torch.manual_seed(0)
        shape = 256, 16  # instances and points of a round
        operator.arrival = learn_arrival(
            operator, problem, shape, 0, lambda _, done: done / seconds
        )
    operator.provenance["card"] = judge(operator, problem, seconds=LONG)
    operator.provenance["figures"] = figures(operator, problem)
    operator.save((run.asked.out or WEIGHTS) / f"{name}.safetensors")
    return operator


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(TRAINING)} (default: all)")
    parser.add_argument("--list", action="store_true", help="what the files say of themselves")
    parser.add_argument("--judge", action="store_true", help="only give them new cards and figures")
    parser.add_argument("--describe", action="store_true", help="only renew the words of the cards")
    parser.add_argument("--arrival", type=float, help="seconds to teach only when to stop")
    run = Benchmark("ship", parser.parse_args(arguments))
    for name in run.asked.names or (["conic", "peaks"] if run.quick else TRAINING):
        if run.asked.list:
            made = px.pretrained(name, "cpu")
        else:
            asked = run.asked.judge or run.asked.arrival or run.asked.describe
            made = (renew if asked else ship)(run, name)
        told = {f"trained_{key}": made.provenance[key] for key in ("steps", "seconds", "machine")}
        run.add(operator=name, **told, figures=json.dumps(made.provenance["figures"]))
    keys = ("operator", "trained_steps", "trained_seconds", "figures")
    show("Shipped", keys, [[each[key] for key in keys] for each in run.rows])
    run.save()


if __name__ == "__main__":
    main()
