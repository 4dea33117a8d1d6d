"""A training of so many seconds: how long does it take in all, on a machine that is busy?

    python benchmarks/budgets.py

Beside the training, processes that do nothing but count keep every core busy several times over.
The time is that of `px.learn`, which trains, judges the operator and teaches it when to stop.
"""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from _shared import Benchmark, options, show

import proxlearn as px


class Sizes(NamedTuple):
    busy: tuple[int, ...] = (0, 4)  # processes beside the training
    seconds: tuple[float, ...] = (10.0, 20.0, 40.0)


QUICK = Sizes((0, 1), (2.0,))


def count() -> None:
    while True:
        pass


@contextmanager
def beside(processes: int) -> Iterator[None]:
    """So many processes that keep a core busy each."""
    running = [multiprocessing.Process(target=count, daemon=True) for _ in range(processes)]
    for each in running:
        each.start()
    try:
        yield
    finally:
        for each in running:
            each.terminate()


def main(arguments: list[str] | None = None) -> None:
    run = Benchmark("budgets", options(__doc__).parse_args(arguments))
    sizes = QUICK if run.quick else Sizes()
    for busy in sizes.busy:
        for asked in sizes.seconds:
            with beside(busy):
                began = time.perf_counter()
                operator = px.learn(
                    px.problem("conic"), seconds=asked, device="cpu", progress=False
                )
                took = time.perf_counter() - began
            steps = operator.provenance["steps"]
            run.add(busy=busy, asked=asked, seconds=took, steps=steps)
    lines = [(r["busy"], r["asked"], f"{r['seconds']:.1f}", r["steps"]) for r in run.rows]
    show("Budgets", ("busy processes beside it", "seconds asked for", "taken", "steps"), lines)
    run.save()


if __name__ == "__main__":
    main()
