"""A small backbone that is trained from nothing: for drawn pictures, CPUs and tests."""

from itertools import pairwise

from torch import nn

from proxlearn.networks.backbones.base import Backbone

WIDTHS = (24, 32, 64, 96, 128)  # channels of stride 2 and of the maps
GROUPS = 8  # of channels that are normalized together


class Small(Backbone):
    """Two 3 x 3 convolutions for each stride."""

    channels = WIDTHS[1:]
    needs_file = False
    rate_factor = 1.0

    def __init__(self):
        super().__init__(((0.5,) * 3, (0.25,) * 3))
        self.stem = nn.Sequential(*conv(3, WIDTHS[0], stride=2))
        self.stages = nn.ModuleList(
            nn.Sequential(*conv(inputs, outputs, stride=2), *conv(outputs, outputs))
            for inputs, outputs in pairwise(WIDTHS)
        )

    def maps(self, images):
        h, found = self.stem(images), []
        for stage in self.stages:
            h = stage(h)
            found.append(h)
        return found

    def first(self):
        return []


def conv(inputs: int, outputs: int, stride: int = 1) -> list[nn.Module]:
    """A convolution, its norm and its activation."""
    layer = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
    return [layer, nn.GroupNorm(GROUPS, outputs), nn.SiLU(inplace=True)]
