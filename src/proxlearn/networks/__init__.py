"""Modules that map points, given what is prepared of tau: one file a network; in `encoders`, those
that turn a tau into a code, in `backbones`, an image into maps. Rests on `instances` and what that
rests on."""

from typing import Any

from proxlearn.common.checks import plain_number, said
from proxlearn.common.registry import Registry
from proxlearn.errors import InputError, UnknownNameError
from proxlearn.networks.base import Architecture, Network

__all__ = ["Architecture", "Network", "architecture_from", "architectures"]

KERNELS = ("coupling_kernel", "matching_kernel")
architectures = Registry("architecture", __name__, Architecture, ("arrival", *KERNELS))
PRESETS = {
    "default": {"kind": "coupling"},
    "paper": {"kind": "coupling", "activation": "relu", "gated": False, "start_at_identity": False},
}


def architecture_from(value: Any, own: Any = None) -> Architecture:
    """An architecture from its name or that of a preset, from a dictionary of its sizes (of the
    kind coupling unless it says another), or itself; `own` is one of the user's."""
    if isinstance(value, Architecture):
        return value
    if isinstance(value, dict):
        sizes = {name: plain_number(each) for name, each in value.items()}
        return architectures.rebuild({"kind": "coupling"} | sizes, own)
    names = {name: {"kind": name} for name in architectures.names()} | PRESETS
    if not isinstance(value, str):
        raise InputError(
            f"architecture must be one of {', '.join(names)}, a dictionary of sizes, or a value "
            f"such as Coupling(width=64), not {said(value)}."
        )
    if value not in names:
        raise UnknownNameError("architecture", value, names)
    return architectures.rebuild(names[value])
