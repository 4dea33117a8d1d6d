"""tau is an image: RGB, square."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.instances.base import Instances


@dataclass(frozen=True)
class Images(Instances):
    """Images (3, side, side), RGB from 0 to 1; whole numbers from 0 to 255 become such."""

    encoder = "image"
    side: int = 256

    @property
    def words(self):
        return f"an image (3, {self.side}, {self.side})"

    def batch(self, tau: Any) -> Float[Tensor, "i 3 s s"]:
        tau = torch.as_tensor(tau)
        tau = tau.float() / 255 if tau.dtype == torch.uint8 else tau.float()
        tau = tau[None] if tau.ndim == 3 else tau
        if tau.ndim != 4 or tuple(tau.shape[1:]) != (3, self.side, self.side) or not len(tau):
            raise InputError(
                f"tau has shape {tuple(tau.shape)}; expected {self.words}, or several, "
                f"(instances, 3, {self.side}, {self.side})."
            )
        return tau
