"""Modules that turn what is observed of tau into a code (instances, size), one file each. Rests on
what `networks` does."""

from proxlearn.common.registry import Registry
from proxlearn.networks.encoders.base import Encoder

encoders = Registry("encoder", __name__, Encoder)
