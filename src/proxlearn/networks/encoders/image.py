"""The code of an image, as in the paper (D.8): the coarsest map of a backbone, its channels made
fewer, sinusoids of where every pixel is added, layers on every pixel, and the mean of all pixels.
That is then normalized, which the paper does not do: without, training gets stuck at larger rates.
"""

import math
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from proxlearn.gpu.precision import halved_on_gpu
from proxlearn.instances.image import Images
from proxlearn.networks.backbones import backbones
from proxlearn.networks.encoders.base import Encoder

LONGEST = 10_000  # times 2 pi: the longest period of a sinusoid, in pixels of the map


class Image(Encoder):
    """By default of the published sizes, but for the backbone: the paper's is "resnet50", which
    needs `weights`, the path of a file with weights to begin with."""

    def __init__(
        self,
        instances: Images,
        size: int = 256,
        backbone: str = "small",
        weights: str | Path | None = None,
    ):
        super().__init__(instances)
        self.size, self.name = size, backbone
        self.backbone = backbones[backbone]()
        if weights is not None:
            self.backbone.read(weights)
        self.narrow = nn.Conv2d(self.backbone.channels[-1], size, 1)
        layers = [layer for _ in range(3) for layer in (nn.ReLU(), nn.Linear(size, size))]
        self.layers = nn.Sequential(*layers[1:])
        self.finish = nn.LayerNorm(size)

    def settings(self):
        return {"size": self.size, "backbone": self.name}

    def forward(self, observed):
        with halved_on_gpu(observed.device):
            *_, coarsest = self.backbone(observed)
        pixels = self.narrow(coarsest.float()).movedim(1, -1)  # (i h w c)
        return self.finish(self.layers(pixels + sinusoids(pixels)).mean((1, 2)))


def sinusoids(like: Float[Tensor, "i h w c"]) -> Float[Tensor, "h w c"]:
    """Of the row and of the column of every pixel, as Vaswani et al. (2017) have them: a quarter of
    the channels each for their sines and cosines, with periods up to the longest."""
    _, rows, columns, channels = like.shape
    count = -(-channels // 4)
    each = torch.arange(count, device=like.device)
    pace = (each * (-math.log(LONGEST) / count)).exp()
    down = torch.arange(rows, device=like.device)[:, None, None] * pace
    right = torch.arange(columns, device=like.device)[:, None] * pace
    waves = [
        wave.expand(rows, columns, count) for at in (down, right) for wave in (at.sin(), at.cos())
    ]
    return torch.cat(waves, -1)[..., :channels]
