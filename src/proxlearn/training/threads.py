"""How many of a CPU's threads train fastest, found by measuring: on a busy machine, steps that wait
for all of their threads can be many times slower than those with one."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

import torch

TRIES = 5  # steps by which a number of threads is judged
AGAIN = 10.0  # seconds until all numbers are tried again, since other work comes and goes
SELDOM = 20  # times as long as the trial took, at least


@contextmanager
def threads_restored() -> Iterator[None]:
    """After it, torch has as many threads as before."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def with_best_threads(step: Callable[[], None]) -> Iterator[None]:
    """Each `next` is a step; those of the trials are steps, too. A number of threads that is far
    slower than another is left after one."""
    most = torch.get_num_threads()
    candidates = sorted({1, max(1, most // 2), most}, reverse=True)
    while True:
        taken, tried = {}, time.monotonic()
        for threads in candidates:
            torch.set_num_threads(threads)
            every = []
            while len(every) < TRIES:
                began = time.monotonic()
                step()
                every.append(time.monotonic() - began)
                yield
                if taken and every[0] > 2 * min(taken.values()):
                    break
            taken[threads] = median(every)
        torch.set_num_threads(min(taken, key=taken.__getitem__))
        until = time.monotonic() + max(AGAIN, SELDOM * (time.monotonic() - tried))
        while time.monotonic() < until:
            step()
            yield
