"""ResNet-50 (He et al., 2016), the paper's; its weights are those of torchvision's `resnet50`."""

from torch import Tensor, nn
from torch.nn.functional import relu

from proxlearn.networks.backbones.base import Backbone, FrozenNorm

GROUPS = ((64, 3), (128, 4), (256, 6), (512, 3))  # hidden channels and blocks
WIDER = 4  # times its hidden channels: those that a block gives


class ResNet50(Backbone):
    """With the names of torchvision's parameters. As there, a block's 3 x 3 convolution strides."""

    channels = tuple(WIDER * width for width, _ in GROUPS)
    unused = ("fc.",)

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = FrozenNorm(64)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        inputs = 64
        for k, (width, blocks) in enumerate(GROUPS, 1):
            first = Bottleneck(inputs, width, stride=1 if k == 1 else 2)
            inputs = WIDER * width
            others = (Bottleneck(inputs, width) for _ in range(blocks - 1))
            setattr(self, f"layer{k}", nn.Sequential(first, *others))

    def maps(self, images):
        h = self.maxpool(relu(self.bn1(self.conv1(images))))
        found = []
        for group in self._groups():
            h = group(h)
            found.append(h)
        return found

    def first(self):
        return [self.conv1, self._groups()[0]]

    def _groups(self) -> list[nn.Module]:
        return [self.get_submodule(f"layer{k}") for k, _ in enumerate(GROUPS, 1)]


class Bottleneck(nn.Module):
    """Three convolutions around which the input goes as it is, or by a linear map where the shape
    changes."""

    def __init__(self, inputs: int, width: int, stride: int = 1):
        super().__init__()
        outputs = WIDER * width
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), FrozenNorm(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = FrozenNorm(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, bias=False), FrozenNorm(outputs)
        self.downsample = None
        if stride > 1 or inputs != outputs:
            changed = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
            self.downsample = nn.Sequential(changed, FrozenNorm(outputs))

    def forward(self, x: Tensor) -> Tensor:
        h = relu(self.bn1(self.conv1(x)))
        h = self.bn3(self.conv3(relu(self.bn2(self.conv2(h)))))
        return relu(h + (x if self.downsample is None else self.downsample(x)))
