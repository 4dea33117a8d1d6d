"""tau is a picture."""

from dataclasses import dataclass

import torch

from proxlearn.errors import InputError
from proxlearn.instances.base import Instances


@dataclass(frozen=True)
class Pictures(Instances):
    """Pictures (channels, height, width)."""

    encoder = "picture"
    channels: int
    height: int
    width: int

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.channels, self.height, self.width

    @property
    def words(self):
        return f"a picture {self.shape}"

    def batch(self, tau):
        tau = torch.as_tensor(tau, dtype=torch.float32)
        tau = tau[None] if tau.ndim == 3 else tau
        if tau.ndim != 4 or tuple(tau.shape[1:]) != self.shape or len(tau) == 0:
            raise InputError(
                f"tau has shape {tuple(tau.shape)}; expected a picture {self.shape} (channels, "
                f"height, width), or several, (instances, {', '.join(map(str, self.shape))})."
            )
        if tau.isfinite().all():
            return tau
        raise InputError("The picture holds NaN or infinite numbers; every pixel must be finite.")
