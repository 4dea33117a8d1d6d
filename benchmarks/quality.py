"""The time it takes to train an operator for conics to the published quality.

    python benchmarks/quality.py

Quality is WP^0.05 at t = 0.05 by the paper's protocol; published is 0.73, after 200,000 steps. A
training is a fresh process, and its time is that of the whole process: importing, compiling,
capturing, training, saving. The first one finds no kernels that an earlier one has compiled; the
second finds those of the first. Longer and longer trainings are tried until all seeds reach the
goal, each with a schedule of its own length. Evaluating is not counted. On a CPU the goal is
0.92 in two minutes, with L-BFGS as the reference.
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
KERNELS = ("none", "kept")  # those of an earlier process, which are there at the beginning


class Sizes(NamedTuple):
    """Every number the benchmark depends on."""

    goal: float
    seconds: Sequence[float]  # of training, shortest first
    settings: dict[str, Any]  # of training
    seeds: int
    published_points: int  # for each tau, in the published loop
    descent: dict[str, Any] | None  # the reference; None is L-BFGS, which a CPU can afford
    instances: int
    starts: int
    witnesses: int
    trials: int


FULL = Sizes(
    goal=0.73,
    seconds=(1.0, 1.5, 2.0, 2.5, 3.0, 4.0),
    settings={},
    seeds=1,
    published_points=POINTS,
    descent={"steps": 50_000, "rate": 1e-3},
    instances=256,
    starts=1024,
    witnesses=1024,
    trials=3,
)
ON_CPU = FULL._replace(goal=0.92, seconds=(110.0,), descent=None, instances=96, trials=1)
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
        method, how = ("lbfgs", {}) if sizes.descent is None else ("descent", sizes.descent)
        self.truth = px.solve(self.conic, self.tau, method, sizes.starts, 1, device, **how)
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
    folder: Path, seconds: float, seed: int, settings: dict[str, Any], device: str
) -> tuple[px.Operator, float]:
    """An operator trained in a process of its own, and how long that process took."""
    file = folder / "operator.safetensors"
    job = json.dumps([seconds, seed, settings, device, str(file)])
    caches = {"TRITON_CACHE_DIR": str(folder)}
    began = time.perf_counter()
    subprocess.run([sys.executable, __file__, "--train", job], check=True, env=os.environ | caches)
    return px.load(file, device), time.perf_counter() - began


def measure(
    run: Benchmark, protocol: Protocol, seconds: float, seed: int, kernels: str, folder: Path
) -> Row:
    """Train and evaluate once."""
    settings, device = protocol.sizes.settings | run.asked.settings, str(run.device)
    operator, total = timed_training(folder, seconds, seed, settings, device)
    precision = protocol.precision(operator)
    return run.add(
        variant="training",
        kernels=kernels,
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


def longer_and_longer(run: Benchmark, protocol: Protocol) -> None:
    """Trainings without kernels that are there already and with them, until all seeds of both reach
    the goal."""
    for budget in protocol.sizes.seconds:
        for seed in range(protocol.sizes.seeds):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
                for kernels in KERNELS:
                    measure(run, protocol, budget, seed, kernels, Path(name))
                    _wait_for_kernels(Path(name), run.device.type)
        if all(shortest(run.rows, kernels) for kernels in KERNELS):
            return


def shortest(rows: Sequence[Row], kernels: str) -> float | None:
    """The seconds of the shortest training all of whose seeds reach the goal; None: none does."""
    made = [row for row in rows if row.get("kernels") == kernels and row["variant"] == "training"]
    for budget in sorted({row["budget"] for row in made}):
        every = [row for row in made if row["budget"] == budget]
        if all(row["reached"] for row in every):
            return median(row["seconds"] for row in every)
    return None


def _wait_for_kernels(folder: Path, device: str) -> None:
    """Until the process that compiles them has done so."""
    for _ in range(120 if device == "cuda" else 0):
        if list(folder.glob("proxlearn-*")):
            return
        time.sleep(0.5)


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--settings", type=json.loads, default={}, help="of training, as JSON")
    parser.add_argument("--train", type=json.loads, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.train:
        return train(*asked.train)
    run = Benchmark("quality", asked)
    sizes = QUICK if asked.quick else FULL if run.device.type == "cuda" else ON_CPU
    if asked.settings:
        run.command += f" --settings '{json.dumps(asked.settings)}'"
    published = published_seconds(run, sizes)
    longer_and_longer(run, Protocol(sizes, str(run.device)))
    for kernels in KERNELS:
        if ours := shortest(run.rows, kernels):
            about = {"variant": "time to quality", "goal": sizes.goal, "kernels": kernels}
            run.add(**about, seconds=ours, times_faster=published / ours)
    keys = ("variant", "kernels", "budget", "seed", "steps", "wp", "seconds", "times_faster")
    header = ("", "kernels", "trained for", "seed", "steps", "WP", "seconds in all", "times faster")
    show("Time to the published quality", header, [[r.get(k) for k in keys] for r in run.rows])
    return run.save()


if __name__ == "__main__":
    main()
