"""One job on several processes, launched by torchrun; without it, one process and nothing else.

torchrun --nproc-per-node 2 -m proxlearn train conic --out runs/conic
torchrun --nproc-per-node 2 -m proxlearn solve conic --taus taus.npy --npz solutions.npz
"""

import gc
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn, TypeVar

import torch
import torch.distributed as dist
from jaxtyping import Shaped
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from proxlearn.errors import InputError, ProcessError

SET_BY_TORCHRUN = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
PATIENCE = timedelta(hours=1)  # with the slowest process, before it counts as lost
HOW_TO_RESUME = "A training goes on from its last checkpoint with --resume."
TIMES = itertools.count()  # of joining: none may read the addresses that an earlier one left

Thing = TypeVar("Thing")
Numbers = tuple[float, ...]


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
        if self.size > 1:
            with self._together():
                dist.barrier()

    def add_up(self, own: Tensor) -> Tensor:
        """The sum of every process's, in place of each."""
        if self.size > 1:
            with self._together():
                dist.all_reduce(own)
        return own

    def gather(self, own: Thing) -> list[Thing]:
        """At the first process, every process's, by rank; at the others, only their own."""
        every: list = [own] * self.size
        if self.size > 1:
            with self._together():
                dist.gather_object(own, every if self.first else None)
        return every if self.first else [own]

    def from_first(self, own: Thing) -> Thing:
        """What the first process has, whatever the others do."""
        said = [own]
        if self.size > 1:
            with self._together():
                dist.broadcast_object_list(said)
        return said[0]

    def ask(self, numbers: Callable[[], Numbers]) -> Callable[[], Numbers]:
        """Ask every process for its numbers; the function returned gives the largest of each, so
        that all agree on what comes next, and work can be done before it is called."""
        if self.size == 1:
            return numbers
        largest = torch.tensor(numbers(), dtype=torch.float64)
        with self._together():
            asked = dist.all_reduce(largest, dist.ReduceOp.MAX, async_op=True)

        def answer() -> Numbers:
            with self._together():
                asked.wait()  # pyright: ignore[reportOptionalMemberAccess]
            return tuple(largest.tolist())

        return answer

    @contextmanager
    def _together(self) -> Iterator[None]:
        """What all processes have to do, or none can."""
        try:
            yield
        except RuntimeError as error:
            raise ProcessError(
                f"Another of the {self.size} processes failed or was lost, so the job ends: see "
                f"what it said, and start the job again. {HOW_TO_RESUME} ({error})"
            ) from None


ALONE = Process()


@dataclass(frozen=True)
class Part:
    """What a process has of the instances of a step of training, which are `groups` groups of
    `group`: its share of every group."""

    process: Process
    group: int
    groups: int = 1

    def __post_init__(self):
        size = self.process.size
        if size > self.group:
            raise InputError(
                f"A step has {self.groups} x {self.group} instances, too few for {size} processes: "
                f"launch at most {self.group}, or give instances = {size * self.groups} or more."
            )

    @property
    def own(self) -> slice:
        """Where its share is in a group."""
        return self.process.share(self.group)

    @property
    def weight(self) -> float:
        """The share in numbers: 1 is everything."""
        return (self.own.stop - self.own.start) / self.group

    def of(self, whole: Shaped[Tensor, "i ..."]) -> Shaped[Tensor, "j ..."]:
        """Its part of some groups, one after the other in the first dimension."""
        if self.process.size == 1:
            return whole
        return whole.unflatten(0, (-1, self.group))[:, self.own].flatten(0, 1)

    def whole(self, own: Shaped[Tensor, "j ..."]) -> Shaped[Tensor, "i ..."]:
        """At the first process, all parts put together: what `of` takes apart."""
        if self.process.size == 1:
            return own
        groups = len(own) // (self.own.stop - self.own.start)
        parts = [part.unflatten(0, (groups, -1)) for part in self.process.gather(own.cpu())]
        return torch.cat(parts, 1).flatten(0, 1)

    def average(self, own: Tensor) -> Tensor:
        """The mean over all instances, from that over its own."""
        return own if self.process.size == 1 else self.process.add_up(own * self.weight)

    def merge(self, sums: Sequence[Tensor], means: dict[str, Tensor]) -> dict[str, Tensor]:
        """Add up `sums` over the processes in place, and average `means`, at one go."""
        if self.process.size == 1:
            return means
        every = [*sums, *(mean * self.weight for mean in means.values())]
        flat = self.process.add_up(torch.cat([each.flatten() for each in every]))
        pieces = flat.split([each.numel() for each in every])
        merged = [new.view_as(each) for new, each in zip(pieces, every)]
        for each, new in zip(sums, merged):
            each.copy_(new)
        return dict(zip(means, merged[len(sums) :]))


WHOLE = Part(ALONE, 1)


def this_process() -> Process:
    """Who this process is, by what torchrun says; without it, the only one."""
    if not _launched():
        return ALONE
    return Process(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))


@contextmanager
def processes(device: torch.device) -> Iterator[Process]:
    """Within, the processes of the job can talk to one another, on a GPU also through NCCL.
    All of them leave together. One that fails does not wait for the others: its error ends it, and
    torchrun then ends them."""
    process = this_process()
    if not _launched():
        yield process
        return
    if dist.is_initialized():
        raise InputError(
            "The processes of this job have joined already: leave init_process_group to proxlearn; "
            "after an error, end the job and launch it again."
        )
    if device.type == "cuda":
        gpu, count = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
        if gpu >= count:
            raise InputError(
                f"Process {gpu} of this machine has no GPU, as there are {count}: launch with "
                f"--nproc-per-node {count}, or give --device cpu."
            )
        torch.cuda.set_device(gpu)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    addresses, *_ = next(rendezvous("env://", timeout=PATIENCE))  # where all leave theirs
    store = PrefixStore(f"proxlearn {next(TIMES)}", addresses)
    dist.init_process_group(
        backend, timeout=PATIENCE, store=store, rank=process.rank, world_size=process.size
    )
    before = signal.signal(signal.SIGTERM, _told_to_end)
    yield process  # after an error it is told to end as within, or nobody would hear of it
    gc.collect()  # what still holds on to a connection, before the connections go
    process.wait()
    dist.destroy_process_group()
    signal.signal(signal.SIGTERM, before)


def _launched() -> bool:
    return os.environ.keys() >= SET_BY_TORCHRUN


def _told_to_end(*_: object) -> NoReturn:
    """End by way of every `finally`, so that nothing half done is left behind."""
    process = this_process()
    sys.exit(
        f"Process {process.rank} of {process.size} was told to end: another one failed or was "
        f"lost, or the job was stopped. {HOW_TO_RESUME}"
    )
