"""The code of a cloud of points with normals, by DGCNN (Wang et al., 2019), as in the paper (D.7):
four edge convolutions, each over neighbours that are searched anew among the features that it is
given, and the largest and the mean of the points' features.

Two things differ from the published code. There is no dropout, as in the paper. And features are
normalized point by point, not over a batch, so that a code does not depend on other instances.

An edge convolution is the largest of `A (h_j - h_i) + B h_i` over the neighbours j of a point i.
That is the largest `A h_j`, plus `(B - A) h_i`, so that no features of edges are ever made.
"""

from itertools import pairwise

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from proxlearn.common.batch import pieces
from proxlearn.gpu.precision import products_in
from proxlearn.instances.cloud import Clouds
from proxlearn.networks.encoders.base import Encoder

CHANNELS = 6  # of a point: where it is, and the normal there
AT_ONCE = 1 << 25  # distances that are compared at once
SLOPE = 0.2  # of the activation where it is negative

Features = Float[Tensor, "i m c"]  # of every point of a cloud
Neighbours = Int64[Tensor, "i m k"]


class Cloud(Encoder):
    """By default of the published sizes."""

    def __init__(self, instances: Clouds, size: int = 256, width: int = 64, near: int = 20):
        super().__init__(instances)
        self.size, self.width, self.near = size, width, near
        widths = (CHANNELS, width, width, 2 * width, 4 * width)
        self.edges = nn.ModuleList(Edges(a, b) for a, b in pairwise(widths))
        self.mix = layer(sum(widths[1:]), 16 * width)
        self.code = nn.Sequential(
            layer(2 * 16 * width, 8 * width),
            layer(8 * width, 4 * width),
            nn.Linear(4 * width, size),
        )

    def settings(self):
        return {"size": self.size, "width": self.width, "near": self.near}

    def forward(self, observed):
        h, found = observed, []
        for edges in self.edges:
            h = edges(h, nearest(h, self.near))
            found.append(h)
        mixed = self.mix(torch.cat(found, -1))
        return self.code(torch.cat((mixed.amax(1), mixed.mean(1)), -1))


class Edges(nn.Module):
    """An edge convolution."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.of_others = nn.Linear(inputs, outputs, bias=False)
        self.of_itself = nn.Linear(inputs, outputs)
        self.finish = nn.Sequential(nn.LayerNorm(outputs), nn.LeakyReLU(SLOPE))

    def forward(self, h: Features, near: Neighbours) -> Float[Tensor, "i m o"]:
        return self.finish(largest(self.of_others(h), near) + self.of_itself(h))


def layer(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, outputs), nn.LayerNorm(outputs), nn.LeakyReLU(SLOPE, inplace=True)
    )


@torch.no_grad()
def nearest(h: Features, count: int) -> Neighbours:
    """The nearest points of each, itself among them, in any order; always in full precision, as
    near points differ by little."""
    i, m, _ = h.shape
    found = torch.empty(i, m, min(count, m), dtype=torch.int64, device=h.device)
    with torch.autocast(h.device.type, enabled=False), products_in("fp32"):
        h = h.float()
        for rows, columns, every, some in pieces(h, h, AT_ONCE // m):
            square = every.square().sum(-1)[:, None]
            # Less the squared length of the point itself, which is the same for all others.
            apart = torch.baddbmm(square, some, every.mT, alpha=-2)
            found[rows, columns] = apart.topk(found.shape[-1], largest=False, sorted=False).indices
    return found


def largest(h: Features, near: Neighbours) -> Features:
    """Of each feature the largest among the neighbours; only which of them has it is kept for the
    gradient."""
    i, m, _ = h.shape
    before = m * torch.arange(i, device=h.device)[:, None, None]  # points of the clouds before
    bags = (near + before).flatten(0, 1)
    return nn.functional.embedding_bag(bags, h.flatten(0, 1), mode="max").view_as(h)
