"""What it costs a training on a CPU to see at every step that the objective does what it should.

    python benchmarks/checks.py

Steps with all checks and steps without any alternate in one training, by the processor's time. With
every checkpoint the objective is looked at once more, and the checkpoint is written and flushed to
the disk; that is measured beside it, for the usual 30 s between two.
"""

import time
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import torch
from _shared import Benchmark, options, show
from _timing import Call
from jaxtyping import Float
from torch import Tensor

import proxlearn as px
from proxlearn.common.batch import Batch, Points
from proxlearn.problems.base import Problem
from proxlearn.training import checkpoint, loss, session
from proxlearn.training.session import Session
from proxlearn.training.settings import training_from

PROBLEMS = ("conic", "maxcut", "springs")
WARM_UP, BLOCKS = 20, 10  # steps; parts of the run, by which one sees how sure the ratio is
EVERY = import_module("proxlearn.training.learn").CHECKPOINT_SECONDS


def without_checks(step: Call) -> Call:
    """The same step, whose values of the objective and whose loss are not looked at."""

    def values_of(problem: Problem, x: Points, tau: Batch) -> Tensor:
        return problem.objective(x, tau)

    def keep_books(
        norm: Tensor,
        shorter: Tensor,
        values: Tensor,
        usual_norm: Tensor,
        smooth: Tensor,
        *_: Tensor,
    ) -> None:
        usual_norm.lerp_(shorter, 0.02)
        smooth.lerp_(values, 0.02)

    bare_values = patch.object(loss, "values_of", values_of)
    bare_books = patch.object(session, "keep_books", keep_books)

    def bare() -> float:
        with bare_values, bare_books:
            return timed(step)

    return bare


def timed(call: Call) -> float:
    """The processor's seconds of a call."""
    began = time.process_time()
    call()
    return time.process_time() - began


def alternating(step: Call, count: int) -> Float[np.ndarray, "n 2"]:
    """The seconds of so many steps with checks, and of as many without, in turns."""
    bare = without_checks(step)
    for _ in range(WARM_UP):
        step()
    pairs = []
    for k in range(count):  # either comes first as often
        second = bare() if k % 2 else None
        first = timed(step)
        pairs.append((first, bare() if second is None else second))
    return np.array(pairs)


def at_checkpoints(training: Session) -> float:
    """Seconds of looking at the objective and writing a checkpoint, the median of a few times."""
    taken = []
    with TemporaryDirectory() as folder:
        for _ in range(5):
            began = time.perf_counter()
            training.check_objective()
            checkpoint.save(training, Path(folder))
            taken.append(time.perf_counter() - began)
    return float(np.median(taken))


def main(arguments: list[str] | None = None) -> None:
    run = Benchmark("checks", options(__doc__, on_cpu=True).parse_args(arguments))
    torch.set_num_threads(1)
    for name in PROBLEMS[: 2 if run.quick else None]:
        training = Session(px.problem(name), training_from({"steps": 10**6}), run.device)
        taken = alternating(training._one_step, BLOCKS if run.quick else 500)
        with_checks, without = np.median(taken, 0).tolist()
        blocks = [np.divide(*np.median(each, 0)) for each in np.array_split(taken, BLOCKS)]
        low, high = np.quantile(blocks, (0.25, 0.75)).tolist()
        ratio, beside = with_checks / without, at_checkpoints(training)
        run.add(
            training=name,
            seconds=with_checks,
            seconds_unchecked=without,
            over=ratio,
            over_low=low,
            over_high=high,
            steps=len(taken),
            checkpoint_seconds=beside,
            checkpoint_share=beside / EVERY,
        )
    columns = ("training", "seconds", "over", "over_low", "over_high", "checkpoint_share")
    lines = [[each[column] for column in columns] for each in run.rows]
    titles = ("training", "seconds a step", "times unchecked", "low", "high", "share, checkpoints")
    show("Checks in training", titles, lines)
    run.save()


if __name__ == "__main__":
    main()
