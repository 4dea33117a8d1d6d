"""What a tau is: how it is checked, read and batched, and which are known from training; frozen
values without weights, one file each. Rests on `spaces` and what that rests on."""

from proxlearn.common.registry import Registry
from proxlearn.instances.base import Instances
from proxlearn.instances.vector import Vectors

__all__ = ["Instances", "Vectors", "kinds"]

kinds = Registry("kind of instances", __name__, Instances)
