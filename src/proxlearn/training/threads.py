"""How many of a CPU's threads train fastest, found by measuring: on a busy machine, steps that wait
for all of their threads can be many times slower than those with one."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

import torch

TRIES = 5  # steps by which a number of threads is judged
AGAIN = 10.0  # seconds until all numbers are tried again, since other work comes and goes


@contextmanager
def threads_restored() -> Iterator[None]:
    """After it, torch has as many threads as before."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def with_best_threads(step: Callable[[], None]) -> Iterator[None]:
    """Each `next` is a step; those of the trials are steps, too."""
    most = torch.get_num_threads()
    candidates = sorted({1, max(1, most // 2), most})
    while True:
        taken = {}
        for threads in candidates:
            torch.set_num_threads(threads)
            every = []
            for _ in range(TRIES):
                began = time.monotonic()
                step()
                every.append(time.monotonic() - began)
                yield
            taken[threads] = median(every)
        torch.set_num_threads(min(taken, key=taken.__getitem__))
        until = time.monotonic() + AGAIN
        while time.monotonic() < until:
            step()
            yield
