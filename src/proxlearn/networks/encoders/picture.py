"""tau is a picture: a small convolutional network that keeps where things are."""

from typing import Any

import torch
from torch import nn

from proxlearn.errors import InputError
from proxlearn.networks.encoders import Encoder


class Picture(Encoder):
    """A (channels, height, width) picture to a code of `size` numbers, by strided convolutions.

    The last feature map is flattened, not averaged: the code has to say where, not only what.
    """

    kind = "picture"

    def __init__(self, channels: int, height: int, width: int, size: int = 64, features: int = 16):
        super().__init__()
        self.shape = (channels, height, width)
        self.size, self.features = size, features
        self.layers = nn.Sequential(
            nn.Conv2d(channels, features, 3, stride=2, padding=1),
            nn.SiLU(),
            nn.Conv2d(features, 2 * features, 3, stride=2, padding=1),
            nn.SiLU(),
            nn.Flatten(),
            nn.Linear(2 * features * -(-height // 4) * -(-width // 4), size),
        )

    def settings(self) -> dict[str, Any]:
        channels, height, width = self.shape
        return {
            "channels": channels,
            "height": height,
            "width": width,
            "size": self.size,
            "features": self.features,
        }

    def batch(self, tau):
        tau = torch.as_tensor(tau, dtype=torch.float32)
        tau = tau[None] if tau.ndim == 3 else tau
        if tau.ndim != 4 or tuple(tau.shape[1:]) != self.shape or len(tau) == 0:
            raise InputError(
                f"tau has shape {tuple(tau.shape)}; expected a picture {self.shape} (channels, "
                f"height, width), or several, (instances, {', '.join(map(str, self.shape))})."
            )
        if not tau.isfinite().all():
            raise InputError(
                "The picture holds NaN or infinite numbers; every pixel must be finite."
            )
        return tau

    def forward(self, observed):
        return self.layers(observed)
