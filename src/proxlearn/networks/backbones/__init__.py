"""Modules that make feature maps of an image, one file each, their weights read from files where
there are trained ones. Rests on what `networks` does."""

from proxlearn.common.registry import Registry
from proxlearn.networks.backbones.base import Backbone, Features, Maps

__all__ = ["Backbone", "Features", "Maps", "backbones"]

backbones = Registry("backbone", __name__, Backbone)
