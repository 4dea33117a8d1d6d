"""Which device to work on."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from proxlearn.common.checks import said
from proxlearn.errors import InputError

KNOWN = ("cpu", "cuda")


def pick_device(device: str | torch.device) -> torch.device:
    """`auto` is the GPU where there is one."""
    if isinstance(device, str) and device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        picked = torch.device(device) if isinstance(device, str | torch.device) else None
    except RuntimeError:
        picked = None
    if picked is None or picked.type not in KNOWN:
        raise InputError(f"There is no device {said(device)}: use auto, cpu or cuda.")
    if picked.type == "cuda" and not torch.cuda.is_available():
        raise InputError("device='cuda' was asked for, but torch sees no GPU: use auto or cpu.")
    if picked.type == "cuda" and (picked.index or 0) >= (there := torch.cuda.device_count()):
        raise InputError(f"There is no GPU {picked.index}: torch sees {there}, counted from 0.")
    return picked


@contextmanager
def one_thread_beside(device: torch.device) -> Iterator[None]:
    """Where a GPU does the work, what is left for the CPU is small: its threads would wait for each
    other longer than they help. Where there is none, nothing changes."""
    if device.type == "cpu":
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
