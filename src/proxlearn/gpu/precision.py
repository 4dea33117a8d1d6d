"""In which precision the operator's matrix products are computed: `fp32`, `tf32` (a GPU's
own format for products of 32-bit numbers, with 10 bits of mantissa; `fp32` on a CPU, which may
solve in `bf16` up to the last application) or `bf16` (products of 16-bit numbers; weights, points
and all outside the network stay 32-bit)."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache

import torch

from proxlearn.errors import UnknownNameError

PRECISIONS = ("fp32", "tf32", "bf16")


@contextmanager
def products_in(precision: str) -> Iterator[None]:
    """32-bit matrix products as `precision` has them, forward and backward."""
    if precision not in PRECISIONS:
        raise UnknownNameError("precision", precision, PRECISIONS)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest" if precision == "fp32" else "high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def halved(precision: str, device: torch.device) -> torch.autocast:
    """A context in which layers compute in 16 bits, if that is the precision."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


def halved_on_gpu(device: torch.device) -> AbstractContextManager[object]:
    """A context in which layers compute in 16 bits on a GPU, unless 32-bit products are to be exact
    (`products_in`): for feature maps of images, which need no more."""
    exact = torch.get_float32_matmul_precision() == "highest"
    on = device.type == "cuda" and not exact
    return halved("bf16", device) if on else nullcontext()


@lru_cache
def cpu_has_bf16() -> bool:
    """Whether the processor has instructions for products of 16-bit numbers."""
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
