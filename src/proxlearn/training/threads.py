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
PROBE = 20, 1 << 18  # operations of a short task that shows whether threads wait for each other
NO_SLOWER = 1.5  # than one thread that several may be at it


@contextmanager
def threads_restored() -> Iterator[None]:
    """After it, torch has as many threads as before."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def settle_threads(most: int) -> None:
    """Use so many threads, or one where several would wait for each other now."""
    torch.set_num_threads(most if most > 1 and _get_along(most) else 1)


def with_best_threads(step: Callable[[], None], most: int) -> Iterator[None]:
    """Each `next` is a step, with as many threads, up to `most`, as are fastest; those of the
    trials are steps, too. A number of threads that is far slower than another is left after one."""
    candidates = sorted({1, max(1, most // 2), most})
    while True:
        taken, tried = {}, time.monotonic()
        for threads in candidates:
            if threads > 1 and not _get_along(threads):
                continue
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


def _get_along(threads: int) -> bool:
    """Whether so many threads do a short task about as fast as one. On a busy machine each of its
    operations waits for a thread that others keep from running, and a whole step takes seconds."""
    return _probed(threads) < NO_SLOWER * _probed(1)


def _probed(threads: int) -> float:
    """Seconds of the short task."""
    operations, size = PROBE
    numbers = torch.ones(size)
    torch.set_num_threads(threads)
    numbers.sin_()  # wakes them up
    began = time.monotonic()
    for _ in range(operations):
        numbers.sin_()
    return time.monotonic() - began
