"""The code of a set: features of each of its vectors, the largest and the mean of each over the
set, so that neither the order of the vectors nor their number matters."""

import torch
from torch import nn

from proxlearn.instances.set import Sets
from proxlearn.networks.encoders.base import Encoder


class Set(Encoder):
    instances: Sets

    def __init__(self, instances: Sets, size: int = 64, width: int = 128):
        super().__init__(instances)
        self.size, self.width = size, width
        inputs = instances.features
        self.layers = nn.Sequential(
            nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, size // 2)
        )

    def settings(self):
        return {"size": self.size, "width": self.width}

    def forward(self, observed):
        members, there = self.instances.seen(observed)
        features = self.layers(members).relu() * there[..., None]  # 0 changes no maximum and no sum
        mean = features.sum(1) / there.sum(1, keepdim=True).clamp(min=1)
        return torch.cat((features.amax(1), mean), -1)
