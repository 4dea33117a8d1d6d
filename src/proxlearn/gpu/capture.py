"""On a GPU, a whole step as one captured graph, launched once instead of 100 times, of kernels that
are compiled from several operations each. What cannot be captured or compiled runs as it is, with a
warning that says why."""

import copy
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from threading import RLock
from typing import Any

import torch
from torch import Generator, Tensor

from proxlearn.common.batch import Batch, leaves, structure, tree_map
from proxlearn.errors import SpeedWarning

WARM_UP = 3  # steps run as they are before the capture, so that every buffer exists
UNDISTURBED = RLock()  # while a step is watched or captured, no kernels are loaded


def captured(
    step: Callable[[], None], device: torch.device, *generators: Generator
) -> Callable[[], None]:
    """`step` itself on a CPU; on a GPU, a call that replays it as one CUDA graph, if it can be
    captured: if it never waits for the GPU to read a value back.
    All its state lives in tensors that it changes in place."""
    return _Captured(step, generators) if device.type == "cuda" else step


class _Captured:
    def __init__(self, step: Callable[[], None], generators: Sequence[Generator]):
        self.step, self.generators = step, generators
        self.calls, self.graph = 0, torch.cuda.CUDAGraph()
        self.stream = torch.cuda.Stream()  # its own, and with it its own workspace for products
        self.run = self._warm_up

    def __call__(self) -> None:
        self.run()

    def _warm_up(self) -> None:
        """A step as it is; after the last of them, replay from then on."""
        self.calls += 1
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            waits = _waits_for_gpu(self.step) if self.calls == WARM_UP else self.step()
        torch.cuda.current_stream().wait_stream(self.stream)
        if waits:
            self.run = self.step
            warnings.warn(
                f"Every step is launched piece by piece, which is slow: it cannot be captured as "
                f"a graph, because it {waits}.",
                SpeedWarning,
                stacklevel=2,
            )
        elif self.calls == WARM_UP:
            self.run = self._capture

    def _capture(self) -> None:
        for each in self.generators:
            self.graph.register_generator_state(each)
        with _capturing(self.graph, self.stream):
            self.step()
        self.run = self.graph.replay
        self.graph.replay()


class Beside:
    """A context: on a GPU, what is done in it runs beside what follows, until `wait`. Tensors that
    it reads have to be kept until then."""

    def __init__(self, device: torch.device):
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.within = nullcontext()

    def __enter__(self) -> None:
        if self.stream:
            self.stream.wait_stream(torch.cuda.current_stream())
            self.within = torch.cuda.stream(self.stream)
        self.within.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.within.__exit__(*error)

    def wait(self) -> None:
        if self.stream:
            torch.cuda.current_stream().wait_stream(self.stream)


class Replayed:
    """A pure function of trees of tensors and constants that, on a GPU, is replayed as one graph
    when it is called again and again with the same shapes. The weights it reads must stay where
    they are."""

    most_graphs = 8

    def __init__(self, function: Callable[..., Tensor]):
        self.function = function
        self.calls: dict[Hashable, int] = {}
        self.graphs: dict[Hashable, Callable[..., Tensor]] = {}

    def __call__(self, *inputs: Batch, **constants: Any) -> Tensor:
        given = leaves(inputs)
        if not given[0].is_cuda:
            return self.function(*inputs, **constants)
        shapes = ((each.shape, each.dtype) for each in given)
        key = (structure(inputs), *shapes, *constants.items())
        if key in self.graphs:
            return self.graphs[key](given)
        self.calls[key] = self.calls.get(key, 0) + 1
        if self.calls[key] == WARM_UP and len(self.graphs) < self.most_graphs:
            self.graphs[key] = self._captured(inputs, constants)
        return self.function(*inputs, **constants)

    def _captured(self, inputs: Sequence[Batch], constants: dict) -> Callable[..., Tensor]:
        own = tree_map(torch.clone, inputs)
        graph = torch.cuda.CUDAGraph()
        with _capturing(graph, torch.cuda.Stream()):
            result = self.function(*own, **constants)

        def replay(given: list[Tensor]) -> Tensor:
            for each, new in zip(leaves(own), given):
                each.copy_(new)
            graph.replay()
            return result.clone()

        return replay

    def __deepcopy__(self, memo: dict) -> "Replayed":
        return Replayed(copy.deepcopy(self.function, memo))


@contextmanager
def _capturing(graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream) -> Iterator[None]:
    """Within, what is launched goes into the graph. Other threads may pin memory meanwhile, as
    those that read files do."""
    with UNDISTURBED, torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        yield


def _waits_for_gpu(step: Callable[[], None]) -> str:
    """Do the step; what in it waited for the GPU, or nothing."""
    with UNDISTURBED, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    for each in caught:
        if "synchronizing" in str(each.message):
            return f"waits for the GPU at {each.filename}:{each.lineno} (as .item() and .cpu() do)"
    return ""


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A pure function of tensors, compiled when it is first called."""
    chosen = [torch.compile(function, dynamic=False)]

    def call(*arguments: Any) -> Any:
        try:
            return chosen[0](*arguments)
        except Exception as error:
            if chosen[0] is function:
                raise
            chosen[0] = function
            why = str(error).strip().splitlines()
            warnings.warn(
                "The objective runs operation by operation, which is slower: it cannot be "
                f"compiled ({type(error).__name__}: {why[0] if why else ''}).",
                SpeedWarning,
                stacklevel=2,
            )
            return function(*arguments)

    return call
