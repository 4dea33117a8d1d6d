"""The code of a vector tau that ends with a matrix A, row by row, and measurements y: it holds A'A
and A'y, all that `|A x - y|^2` depends on, in which it is linear. It is the same however the
measurements are turned or ordered, (Q A, Q y), which an operator then need not learn."""

import torch

from proxlearn.instances import Vectors
from proxlearn.networks.encoders.vector import Vector


class Gram(Vector):
    """Of vectors (weights, A, y) with so many measurements in y; the weights' code is as ever."""

    def __init__(self, instances: Vectors, measured: int, dim: int):
        super().__init__(instances)
        self.measured, self.dim = measured, dim
        self.weights = len(instances.low) - measured * (dim + 1)
        self.size = self.weights + dim * (dim + 1)

    def settings(self):
        return {"measured": self.measured, "dim": self.dim}

    def forward(self, observed):
        sizes = (self.weights, self.measured * self.dim, self.measured)
        weights = super().forward(observed)[:, : self.weights]
        _, matrix, measured = observed.split(sizes, -1)
        matrix = matrix.unflatten(-1, (self.measured, self.dim))
        gram = matrix.mT @ matrix / self.measured  # means over measurements, so of unit size
        product = (matrix.mT @ measured[..., None])[..., 0] / self.measured
        return torch.cat((weights, gram.flatten(1), product), -1)
