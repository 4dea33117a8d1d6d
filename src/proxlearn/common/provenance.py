"""Rows: every result is a flat line of JSON with its seed, versions and machine."""

import os
import platform
from typing import Any

import torch

from proxlearn.version import __version__

Row = dict[str, Any]  # flat: every value is a string, a number, a bool or None


def row(device: torch.device | str = "cpu", **fields: Any) -> Row:
    """A result with what it depends on: its own fields, then the versions and the machine."""
    return {**fields, **versions(), "machine": machine(device)}


def versions() -> dict[str, str]:
    """The versions a result depends on."""
    python = platform.python_version()
    return {"proxlearn": __version__, "torch": torch.__version__, "python": python}


def machine(device: torch.device | str = "cpu") -> str:
    """The machine in words."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} CPU, {os.cpu_count()} cores"
