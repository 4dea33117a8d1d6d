"""A graph's code is the weight of every pair of vertices, row after row."""

import torch

from proxlearn.instances.graph import Graphs
from proxlearn.networks.encoders.base import Encoder


class Pairs(Encoder):
    def __init__(self, instances: Graphs):
        super().__init__(instances)
        self.size = instances.vertices * (instances.vertices - 1) // 2

    def forward(self, observed):
        row, column = torch.triu_indices(*observed.shape[-2:], offset=1, device=observed.device)
        return observed[:, row, column]
