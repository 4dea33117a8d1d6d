"""The code of a cloud and of an order of turns: that of the cloud, and the angle of a turn."""

import torch

from proxlearn.instances.cloud import Clouds
from proxlearn.instances.turned_cloud import TurnedClouds, angles
from proxlearn.networks.encoders.base import Encoder
from proxlearn.networks.encoders.cloud import Cloud


class TurnedCloud(Encoder):
    """As `Cloud`, with two numbers more."""

    def __init__(self, instances: TurnedClouds, size: int = 256, width: int = 64, near: int = 20):
        super().__init__(instances)
        self.cloud = Cloud(Clouds(instances.points), size, width, near)
        self.size = size + 2

    def settings(self):
        return self.cloud.settings()

    def forward(self, observed):
        angle = angles(observed["order"])[:, None]
        code = self.cloud(observed["cloud"])
        return torch.cat((code, angle.cos().to(code), angle.sin().to(code)), -1)
