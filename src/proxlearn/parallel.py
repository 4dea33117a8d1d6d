"""One job on several processes, launched by torchrun; without it, one process and nothing else.

torchrun --nproc-per-node 2 -m proxlearn solve conic --taus taus.npy --npz solutions.npz
"""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn

import torch
import torch.distributed as dist

from proxlearn.errors import InputError, ProcessError

SET_BY_TORCHRUN = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
PATIENCE = timedelta(hours=1)  # with the slowest process, before it counts as lost


@dataclass(frozen=True)
class Process:
    """This process among all those of the job."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether it is the one that writes files and shows progress."""
        return self.rank == 0

    def share(self, count: int) -> slice:
        """Its part of `count` things in a row: the parts follow one another by rank, and where
        there are few things the first process has one."""
        start, stop = (-(-count * rank // self.size) for rank in (self.rank, self.rank + 1))
        return slice(start, stop)

    def wait(self) -> None:
        """Go on when every process has come here; an error where one was lost."""
        if self.size == 1:
            return
        try:
            dist.barrier()
        except RuntimeError as error:
            raise ProcessError(
                f"Another of the {self.size} processes failed or was lost, so the job ends: see "
                f"what it said, and start the job again. ({error})"
            ) from None


def this_process() -> Process:
    """Who this process is, by what torchrun says; without it, the only one."""
    if not _launched():
        return Process()
    return Process(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))


@contextmanager
def processes(device: torch.device) -> Iterator[Process]:
    """Within, the processes of the job can talk to one another, on a GPU also through NCCL.

    All of them leave together. One that fails does not wait for the others: its error ends it, and
    torchrun then ends them.
    """
    process = this_process()
    if not _launched():
        yield process
        return
    if device.type == "cuda":
        torch.cuda.set_device(_own_gpu())
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=PATIENCE)
    before = signal.signal(signal.SIGTERM, _told_to_end)
    try:
        yield process
    finally:
        signal.signal(signal.SIGTERM, before)
    gc.collect()  # what still holds on to a connection, before the connections go
    process.wait()
    dist.destroy_process_group()


def _launched() -> bool:
    return os.environ.keys() >= SET_BY_TORCHRUN


def _own_gpu() -> int:
    """One GPU for each process of this machine."""
    gpu, count = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if gpu >= count:
        raise InputError(
            f"Process {gpu} of this machine has no GPU, as there are {count}: launch with "
            f"--nproc-per-node {count}, or give --device cpu."
        )
    return gpu


def _told_to_end(*_: object) -> NoReturn:
    """End by way of every `finally`, so that nothing half done is left behind."""
    process = this_process()
    sys.exit(
        f"Process {process.rank} of {process.size} was told to end: another one failed or was "
        "lost, or the job was stopped."
    )
