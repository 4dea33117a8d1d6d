"""Which device to work on."""

import torch

from proxlearn.errors import InputError


def pick_device(device: str | torch.device) -> torch.device:
    """`auto` is the GPU where there is one."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        picked = torch.device(device)
    except RuntimeError:
        raise InputError(f"There is no device {device!r}: use auto, cpu or cuda.") from None
    if picked.type == "cuda" and not torch.cuda.is_available():
        raise InputError("device='cuda' was asked for, but torch sees no GPU: use auto or cpu.")
    return picked
