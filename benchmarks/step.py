"""A training step on conics against the plain eager loop that follows the published procedure.

    python benchmarks/step.py

Points per second count every point that a step trains on: five applications in the published loop,
one in a step of this library.
"""

import itertools
import math
from typing import Any, NamedTuple

import torch
from _shared import Benchmark, options, show
from _timing import Call, interleaved, peak_memory
from published import APPLICATIONS, INSTANCES, POINTS, PublishedLoop

import proxlearn as px
from proxlearn.gpu.capture import captured
from proxlearn.gpu.precision import products_in
from proxlearn.problems.base import Problem
from proxlearn.training.learn import Session
from proxlearn.training.settings import Training, batch_shape, training_from

PUBLISHED = "published loop"
PRECISIONS = {"cuda": ("fp32", "tf32", "bf16"), "cpu": ("fp32", "bf16")}  # that differ there
NETWORKS: dict[str, dict[str, Any]] = {  # settings of a training, by name
    "default network": {},
    "paper's network": {"architecture": "paper"},
}
ON_CPU = {  # the published loop has 1,024 points an application, and five of these a step
    "1,020 points": {"instances": 30, "points": 34},
    "5,100 points": {"instances": 150, "points": 34},
}
ON_GPU = {"": {}}
TINY = {"tiny": {"instances": 6, "points": 4}}
WARM_UP = 5  # steps, so that whatever is compiled or captured is there


class Contestant(NamedTuple):
    """A training step ready to be timed."""

    step: Call
    points: int  # that it trains on
    peak_mib: float


def published(problem: Problem, points: int, device: torch.device) -> Contestant:
    """The published loop with so many points an instance."""
    with peak_memory(device) as peak:
        loop = PublishedLoop(problem, device, points=points)
        _warmed_up(loop.step)
    return Contestant(loop.step, APPLICATIONS * INSTANCES * points, peak.mib)


def ours(problem: Problem, settings: dict[str, Any], device: torch.device) -> Contestant:
    """One step of a training, as `Session.run` makes them."""
    training = training_from(settings)
    with peak_memory(device) as peak:
        session = Session(problem, training, device)
        step_once = captured(
            session._one_step, device, session.sampler.generator, session.sampler.noise
        )

        def step() -> None:
            with products_in(session.operator.precision):
                session.optimizer.set_rate(session.rate)
                step_once()

        _warmed_up(step)
    return Contestant(step, points_in_a_step(problem, training, device), peak.mib)


def _warmed_up(step: Call) -> None:
    for _ in range(WARM_UP):
        step()


def points_in_a_step(problem: Problem, training: Training, device: torch.device) -> int:
    """How many points a step trains on: the pool takes whole groups of taus, one for each age."""
    instances, points = batch_shape(problem, training, device)
    groups = training.depth + 1
    if training.sampling == "unfold":
        return groups * instances * points
    return math.ceil(instances / groups) * groups * points


def contestants(run: Benchmark) -> dict[str, Contestant]:
    """The published loop and every variant, at the sizes that suit the device."""
    conic, on_gpu = px.problem("conic"), run.device.type == "cuda"
    shapes, points = (ON_GPU, POINTS) if on_gpu else (ON_CPU, POINTS // 8)
    shapes, points = (TINY, 1) if run.quick else (shapes, points)
    every = {PUBLISHED: published(conic, points, run.device)}
    for (name, network), (size, shape) in itertools.product(NETWORKS.items(), shapes.items()):
        for precision in PRECISIONS[run.device.type]:
            settings = shape | network | {"precision": precision}
            label = ", ".join(filter(None, (name, precision, size)))
            every[label] = ours(conic, settings, run.device)
    return every


def main(arguments: list[str] | None = None) -> None:
    run = Benchmark("step", options(__doc__).parse_args(arguments))
    every = contestants(run)
    calls = {name: each.step for name, each in every.items()}
    rounds, seconds = (2, 0.0) if run.quick else (9, 0.5)
    timings = interleaved(calls, run.device, rounds, seconds)
    for name, timing in timings.items():
        faster = timings[PUBLISHED].over(timing)
        run.add(
            variant=name,
            points=every[name].points,
            **timing.fields(),
            points_per_second=every[name].points / timing.median,
            times_the_steps=faster,
            times_the_points=faster * every[name].points / every[PUBLISHED].points,
            peak_mib=every[name].peak_mib,
        )
    lines = [
        (each["variant"], each["points"], 1e3 * each["seconds"], each["points_per_second"])
        + (each["times_the_points"], each["peak_mib"])
        for each in run.rows
    ]
    header = ("variant", "points", "ms a step", "points/s", "times published", "peak MiB")
    show("A training step", header, lines)
    run.save()


if __name__ == "__main__":
    main()
