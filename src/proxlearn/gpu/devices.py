"""Which device to work on."""

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
