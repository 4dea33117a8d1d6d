"""A vector's code is the vector itself, brought to [-1, 1] by the trained range."""

from proxlearn.instances import Vectors
from proxlearn.networks.encoders.base import Encoder


class Vector(Encoder):
    instances: Vectors

    def __init__(self, instances: Vectors):
        super().__init__(instances)
        self.size = max(1, len(instances.low))  # a single objective has the constant code 0

    def forward(self, observed):
        if not self.instances.low:
            return observed.new_zeros(observed.shape[0], 1)  # unlike len(), it may vary in a graph
        return self.instances.range.to_unit(observed)
