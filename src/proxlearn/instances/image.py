"""tau is an image."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.checks import array
from proxlearn.errors import InputError
from proxlearn.images.read import read_image
from proxlearn.instances.base import Instances


@dataclass(frozen=True)
class Images(Instances):
    """Images of red, green and blue in [0, 1], stretched to squares (3, side, side)."""

    encoder = "image"
    side: int = 256

    @property
    def words(self):
        return f"an image (3, {self.side}, {self.side}) of red, green and blue"

    @property
    def channels(self) -> int:
        return 3

    @property
    def height(self) -> int:
        return self.side

    @property
    def width(self) -> int:
        return self.side

    def batch(self, tau: Any) -> Float[Tensor, "i 3 s s"]:
        """One image or several, of numbers in [0, 1] or bytes (uint8), or a list of images."""
        if isinstance(tau, Sequence) and tau and hasattr(tau[0], "shape"):
            return self.together([self.batch(each) for each in tau])
        tau = array("tau", tau, self.words)
        given = tuple(tau.shape)
        tau = tau.float() / 255 if tau.dtype == torch.uint8 else tau.float()
        tau = tau[None] if tau.ndim == 3 else tau
        if tau.shape[1:] != (3, self.side, self.side) or len(tau) == 0:
            raise InputError(
                f"tau has shape {given}; expected {self.words}, or several, (instances, "
                f"3, {self.side}, {self.side}). An image file can be of any size: "
                "proxlearn.images.read.read_image(path, side) stretches it."
            )
        if not ((tau >= 0) & (tau <= 1)).all():
            raise InputError(
                "The image has numbers that are not from 0 to 1: give bytes (uint8), or divide "
                "numbers up to 255 by that."
            )
        return tau

    def read(self, text: str):
        """From the command line: the path of an image file, or of a .npy."""
        if Path(text).suffix == ".npy":
            return super().read(text)
        return self.batch(read_image(text, self.side))
