"""tau is a colour image."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.instances.base import Instances


@dataclass(frozen=True)
class Images(Instances):
    """Images (3, side, side) of red, green and blue from 0 to 1."""

    encoder = "image"
    side: int = 256

    @property
    def words(self):
        return f"an image (3, {self.side}, {self.side})"

    def batch(self, tau: Any) -> Float[Tensor, "i 3 s s"]:
        tau = torch.as_tensor(tau, dtype=torch.float32)
        tau = tau[None] if tau.ndim == 3 else tau
        if tau.ndim == 4 and tuple(tau.shape[1:]) == (3, self.side, self.side) and len(tau):
            return tau
        raise InputError(
            f"tau has shape {tuple(tau.shape)}; expected {self.words}, or several, (instances, 3, "
            f"{self.side}, {self.side})."
        )
