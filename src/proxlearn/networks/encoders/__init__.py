"""Modules that make a code (i, size) of a tau, one file each. Rests on what `networks` does."""

from proxlearn.common.registry import Registry
from proxlearn.networks.encoders.base import Encoder

encoders = Registry("encoder", __name__, Encoder)
