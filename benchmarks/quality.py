"""The time it takes to train an operator for conics to the published quality.

    python benchmarks/quality.py

Quality is WP^0.05 at t = 0.05 by the paper's protocol; published is 0.73, after 200,000 steps. A
training is a fresh process with empty compiler caches, and its time is that of the whole process:
importing, compiling, capturing, training, saving. Longer and longer trainings are tried until all
seeds of one reach the goal, each with a schedule of its own length. Evaluating is not counted.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from _shared import Benchmark, options, show
from _timing import interleaved
from published import POINTS, STEPS, PublishedLoop

import proxlearn as px
from proxlearn.common.provenance import Row
from proxlearn.common.seeds import generator_for
from proxlearn.measure.evaluate import over_trials
from proxlearn.problems.base import held_out

THRESHOLD, DELTA = 0.05, 0.05
COUNTS = (3, 5, 10)  # applications; the best of them is taken
CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")


class Sizes(NamedTuple):
    """Every number the benchmark depends on."""

    goal: float
    seconds: Sequence[float]  # of training, shortest first
    settings: dict[str, Any]  # of training
    seeds: int
    published_points: int  # for each tau, in the published loop
    descent: dict[str, Any]  # the reference
    instances: int
    starts: int
    witnesses: int
    trials: int


FULL = Sizes(
    goal=0.73,
    seconds=(10.0, 20.0, 40.0),
    settings={},
    seeds=1,
    published_points=POINTS,
    descent={"steps": 50_000, "rate": 1e-3},
    instances=256,
    starts=1024,
    witnesses=1024,
    trials=3,
)
QUICK = Sizes(
    goal=0.0,
    seconds=(0.2,),
    settings={"instances": 6, "points": 4, "architecture": {"width": 8, "shared": 8}},
    seeds=1,
    published_points=4,
    descent={"steps": 20, "rate": 0.1},
    instances=4,
    starts=16,
    witnesses=16,
    trials=2,
)


class Protocol:
    """The paper's measure of an operator, its reference solved once."""

    def __init__(self, sizes: Sizes, device: str):
        self.conic, self.sizes, self.device = px.problem("conic"), sizes, device
        self.tau = held_out(self.conic, sizes.instances)
        self.truth = px.solve(
            self.conic, self.tau, "descent", sizes.starts, 1, device, **sizes.descent
        )
        self.witnesses = self.conic.space.sample(
            sizes.trials, sizes.witnesses, generator=generator_for(0, "witnesses")
        )

    def precision(self, operator: px.Operator) -> dict[int, float]:
        """WP after each number of applications."""
        found = {}
        for steps in COUNTS:
            settings = {"operator": operator, "steps": steps}
            solutions = px.solve(
                self.conic, self.tau, "operator", self.sizes.starts, 0, self.device, **settings
            )
            seen = over_trials(solutions, self.truth, self.witnesses, THRESHOLD, (DELTA,))
            found[steps] = seen[f"wp@{DELTA}"]
        return found


def train(seconds: float, seed: int, settings: dict[str, Any], device: str, file: Path) -> None:
    """What a fresh process does."""
    conic = px.problem("conic")
    operator = px.learn(
        conic, seconds=seconds, seed=seed, applications=5, device=device, progress=False, **settings
    )
    operator.save(file)


def timed_training(
    seconds: float, seed: int, settings: dict[str, Any], device: str
) -> tuple[px.Operator, float]:
    """An operator trained in a process of its own, and how long that process took."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {name: str(Path(folder) / name) for name in CACHES}
        file = Path(folder) / "operator.safetensors"
        job = json.dumps([seconds, seed, settings, device, str(file)])
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, __file__, "--train", job], check=True, env=os.environ | caches
        )
        return px.load(file, device), time.perf_counter() - began


def measure(run: Benchmark, protocol: Protocol, seconds: float, seed: int) -> Row:
    """Train and evaluate once."""
    settings, device = protocol.sizes.settings | run.asked.settings, str(run.device)
    operator, total = timed_training(seconds, seed, settings, device)
    precision = protocol.precision(operator)
    return run.add(
        variant="training",
        budget=seconds,
        seed=seed,
        settings=json.dumps(settings),
        steps=operator.provenance["steps"],
        seconds=total,
        **{f"wp_after_{steps}": wp for steps, wp in precision.items()},
        wp=max(precision.values()),
        goal=protocol.sizes.goal,
        reached=max(precision.values()) >= protocol.sizes.goal,
    )


def published_seconds(run: Benchmark, sizes: Sizes) -> float:
    """The whole published training, by the measured time of its steps."""
    loop = PublishedLoop(px.problem("conic"), run.device, points=sizes.published_points)
    rounds, seconds = (2, 0.0) if run.quick else (5, 0.5)
    timing = interleaved({"step": loop.step}, run.device, rounds, seconds, warm_up=5)["step"]
    run.add(
        variant="published loop",
        steps=STEPS,
        step_seconds=timing.median,
        seconds=timing.median * STEPS,
        hours=timing.median * STEPS / 3600,
    )
    return timing.median * STEPS


def shortest(run: Benchmark, protocol: Protocol) -> float | None:
    """The seconds of the shortest training all of whose seeds reach the goal; None if none does."""
    for budget in protocol.sizes.seconds:
        taken = []
        for seed in range(protocol.sizes.seeds):
            row = measure(run, protocol, budget, seed)
            if not row["reached"]:
                break
            taken.append(row["seconds"])
        else:
            return median(taken)
    return None


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--settings", type=json.loads, default={}, help="of training, as JSON")
    parser.add_argument("--train", type=json.loads, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.train:
        return train(*asked.train)
    run, sizes = Benchmark("quality", asked), QUICK if asked.quick else FULL
    if asked.settings:
        run.command += f" --settings '{json.dumps(asked.settings)}'"
    published = published_seconds(run, sizes)
    ours = shortest(run, Protocol(sizes, str(run.device)))
    ratio = None if ours is None else published / ours
    run.add(variant="time to quality", goal=sizes.goal, seconds=ours, times_faster=ratio)
    keys = ("variant", "budget", "seed", "steps", "wp", "seconds", "times_faster")
    header = ("", "trained for", "seed", "steps", "WP", "seconds in all", "times faster")
    show("Time to the published quality", header, [[r.get(k) for k in keys] for r in run.rows])
    return run.save()


if __name__ == "__main__":
    main()
