"""A picture's code, by a small convolutional network that keeps where things are."""

from torch import nn

from proxlearn.instances.image import Images
from proxlearn.instances.picture import Pictures
from proxlearn.networks.encoders.base import Encoder


class Picture(Encoder):
    """Strided convolutions; their last map is flattened, not averaged, to say where things are."""

    def __init__(self, instances: Pictures | Images, size: int = 64, features: int = 16):
        super().__init__(instances)
        self.size, self.features = size, features
        height, width = -(-instances.height // 4), -(-instances.width // 4)
        self.layers = nn.Sequential(
            nn.Conv2d(instances.channels, features, 3, stride=2, padding=1),
            nn.SiLU(),
            nn.Conv2d(features, 2 * features, 3, stride=2, padding=1),
            nn.SiLU(),
            nn.Flatten(),
            nn.Linear(2 * features * height * width, size),
        )

    def settings(self):
        return {"size": self.size, "features": self.features}

    def forward(self, observed):
        return self.layers(observed)
