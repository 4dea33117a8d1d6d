"""On a GPU, a whole training step as one captured graph: launched once instead of 200 times."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Generator

WARM_UP = 3  # steps run as they are before the capture, so that every buffer exists


def captured(
    step: Callable[[], None], device: torch.device, generator: Generator | None = None
) -> Callable[[], None]:
    """`step` itself on a CPU; on a GPU, a call that replays it as one CUDA graph.

    `step` takes and returns nothing: all its state lives in tensors that it changes in place.
    """
    return _Captured(step, generator) if device.type == "cuda" else step


class _Captured:
    def __init__(self, step: Callable[[], None], generator: Generator | None):
        self.step, self.generator = step, generator
        self.calls, self.graph = 0, torch.cuda.CUDAGraph()
        self.stream = torch.cuda.Stream()

    def __call__(self) -> None:
        self.calls += 1
        if self.calls <= WARM_UP:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                self.step()
            torch.cuda.current_stream().wait_stream(self.stream)
            return
        if self.calls == WARM_UP + 1:
            if self.generator is not None:
                self.graph.register_generator_state(self.generator)
            with torch.cuda.graph(self.graph, stream=self.stream):
                self.step()
        self.graph.replay()


@contextmanager
def fast_matmul(device: torch.device) -> Iterator[None]:
    """TF32 matrix products while training on a GPU."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if device.type == "cuda" else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
