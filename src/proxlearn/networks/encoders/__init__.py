"""Modules that turn a tau into a code (i, size), one file each. Rests on what `networks` does."""

from typing import Any

from proxlearn.common.registry import Registry
from proxlearn.instances import Instances
from proxlearn.networks.encoders.base import Encoder

encoders = Registry("encoder", __name__, Encoder)


def encoder_from(description: dict[str, Any], instances: Instances, own: Any = None) -> Encoder:
    """The encoder that `describe()` wrote, for these instances; `own` is one of the user's."""
    ours = description["kind"] in encoders.names()
    return encoders.rebuild(description | ({"instances": instances} if ours else {}), own)
