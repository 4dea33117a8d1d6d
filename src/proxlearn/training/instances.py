"""Where the instances of a training step come from, beside the step that is captured on a GPU.

Instances that are drawn on the device are drawn inside the step, with a generator that the captured
graph knows. Those that are read from files are drawn ahead by a thread and copied into buffers that
the graph reads: the copy waits in line behind the step before it, and nobody waits for the GPU.
What is drawn for a step then depends on the seed and the step's number alone, so that a training
resumes with the same instances.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Generator

from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch
from proxlearn.common.seeds import generator_for
from proxlearn.errors import InputError
from proxlearn.problems.base import Problem, check_problem
from proxlearn.problems.objectives import check_differentiable

AHEAD = 4  # steps whose instances are drawn before it is their turn
Own = Callable[[Batch], Batch]  # a process's part of the instances of a step


class Drawn:
    """Instances that are drawn on the device, inside the step."""

    def __init__(self, problem: Problem, count: int, generator: Generator, own: Own):
        self.problem, self.count, self.generator, self.own = problem, count, generator, own

    def fill(self, step: int) -> None:
        """Nothing is to be done before a step."""

    def take(self) -> Batch:
        """New instances of the step, or what stands for them, seen to be on the device: what is not
        would be copied there once, and be the same in every replay of a captured step."""
        drawn = self.problem.sample(self.count, "train", self.generator)
        for each in batches.leaves(drawn):
            if each.device.type != self.generator.device.type:
                raise InputError(
                    f"sample() of {self.problem.name!r} gave tensors on {each.device} for a "
                    f"generator on {self.generator.device}: draw them on generator.device, or, "
                    'where they come from files, say sampled_on = "cpu".'
                )
        return self.own(drawn)


class Fed:
    """Instances that are read from files, ahead of the steps."""

    def __init__(self, problem: Problem, count: int, seed: int, device: torch.device, own: Own):
        self.problem, self.count, self.seed, self.own = problem, count, seed, own
        self.pinned = device.type == "cuda"
        self.thread = ThreadPoolExecutor(max_workers=1)
        self.waiting: deque[tuple[int, Future[Batch]]] = deque()
        first = batches.move(self._draw(0), device)
        self.buffers = batches.tree_map(torch.clone, first)  # ours to write into

    def fill(self, step: int) -> None:
        """The instances of this step into the buffers; only the reading itself is waited for."""
        while self.waiting and self.waiting[0][0] != step:
            self.waiting.popleft()[1].cancel()
        for ahead in range(step + len(self.waiting), step + AHEAD):
            self.waiting.append((ahead, self.thread.submit(self._draw, ahead)))
        drawn = self.waiting.popleft()[1].result()
        batches.tree_map(lambda own, new: own.copy_(new, non_blocking=True), self.buffers, drawn)

    def take(self) -> Batch:
        return self.buffers

    def _draw(self, step: int) -> Batch:
        generator = generator_for(self.seed, f"train/{step}")
        drawn = self.own(self.problem.sample(self.count, "train", generator))
        return batches.tree_map(torch.Tensor.pin_memory, drawn) if self.pinned else drawn


def check_sample(problem: Problem, device: torch.device, seed: int = 0) -> None:
    """An error where `sample` draws by something else than its generator, such as an iterator over
    files: a training could neither be captured nor resumed."""
    check_problem(problem)
    check_differentiable(problem, "A training")
    where = "cpu" if problem.sampled_on == "cpu" else device
    first, second = (
        problem.sample(2, "train", generator_for(seed, "check", where)) for _ in range(2)
    )
    same = batches.structure(first) == batches.structure(second) and all(
        a.shape == b.shape and torch.equal(a, b)
        for a, b in zip(batches.leaves(first), batches.leaves(second))
    )
    if not same:
        raise InputError(
            f"sample() of {problem.name!r} gave two different draws for the same generator: draw "
            "with the generator alone, such as indices by torch.randint(..., generator=generator)."
        )
