"""Times and memory, measured so that they can be compared: in one run, interleaved, repeated."""

import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from proxlearn.common.provenance import Row

Call = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """The seconds that one call took, in every round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    def fields(self) -> Row:
        """The median and the quartiles, for a row."""
        low, high = np.quantile(self.seconds, (0.25, 0.75)).tolist()
        rounds = len(self.seconds)
        return {"seconds": self.median, "seconds_low": low, "seconds_high": high, "rounds": rounds}

    def over(self, other: "Timing") -> float:
        """How many times as long as another: the ratio of every round, then the median."""
        return float(np.median(np.array(self.seconds) / np.array(other.seconds)))


def interleaved(
    calls: Mapping[str, Call],
    device: torch.device,
    rounds: int = 7,
    seconds: float = 0.5,
    warm_up: int = 1,
) -> dict[str, Timing]:
    """Time A B C A B C ...: in every round, each is called for about `seconds`, at least once."""
    repeats = {}
    for name, call in calls.items():
        _timed(call, warm_up, device)
        repeats[name] = max(1, round(seconds / _timed(call, 1, device)))
    taken = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            taken[name].append(_timed(call, repeats[name], device))
    return {name: Timing(tuple(each)) for name, each in taken.items()}


def _timed(call: Call, repeats: int, device: torch.device) -> float:
    """Seconds a call, the device's work included."""
    _wait(device)
    began = time.perf_counter()
    for _ in range(repeats):
        call()
    _wait(device)
    return (time.perf_counter() - began) / max(1, repeats)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Peak:
    """How much memory was held at once, in MiB."""

    mib: float = 0.0


@contextmanager
def peak_memory(device: torch.device) -> Iterator[Peak]:
    """On a GPU, what was allocated within; on a CPU, the most the whole process ever held."""
    peak, gpu = Peak(), device.type == "cuda"
    _wait(device)
    before = torch.cuda.memory_allocated(device) if gpu else 0
    if gpu:
        torch.cuda.reset_peak_memory_stats(device)
    yield peak
    if gpu:
        peak.mib = (torch.cuda.max_memory_allocated(device) - before) / 2**20
    else:
        peak.mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
