"""All maximum cuts of a graph by a relaxation of rank 2 (paper, 5.3): a circle for every vertex."""

import torch
from torch import Generator, Tensor

from proxlearn.common.checks import whole
from proxlearn.instances.graph import Graphs, at_unit_scale, graphs
from proxlearn.problems.base import Problem
from proxlearn.problems.maxcut.cuts import Cuts, Weights, best_half_circles
from proxlearn.spaces import Circles

VERTICES = 8


class Maxcut(Problem):
    """`f(x) = 1/2 sum_{i<j} w_ij x_i . x_j` over unit vectors x_i of the plane; tau = w, a matrix.
    Opposite vectors are opposite sides of the cut.

    The instances are the paper's: half Erdos-Renyi graphs with p = 1/2, half complete graphs with
    uniform weights. With `most` they have `vertices` to `most` vertices, all densities and signs of
    weights, and a common scale; those with fewer than `most` are filled up with isolated ones.
    """

    name = "maxcut"
    space: Circles
    lam = 0.1  # with the paper's 2.5, points have not arrived after hundreds of applications
    architecture = "cut_circles"

    def __init__(self, vertices: int = VERTICES, most: int | None = None):
        vertices = whole("vertices", vertices, 2)
        least = " vertices of the smallest graphs"
        most = None if most is None else whole("most", most, vertices, least)
        self.vertices, self.most = vertices, most
        self.space = Circles(most or vertices)
        self.instances = Graphs(self.space.n, any_size=most is not None)

    def objective(self, x, tau):
        vectors = x.unflatten(-1, (-1, 2)).transpose(1, 2)  # (i v n 2)
        field = (tau @ vectors.flatten(2)).view(vectors.shape)
        return (vectors * field).sum((1, 3)) / 4  # every pair is in it twice

    def sample(self, count, split, generator):
        if self.most is None:
            return _paper_graphs(count, self.vertices, generator)
        return _mixed_graphs(count, self.vertices, self.most, generator)

    def batch(self, tau):
        return graphs(tau)

    def sized(self, tau):
        return self if tau.shape[-1] == self.space.n else Maxcut(tau.shape[-1])

    @property
    def drawn_from(self):
        if self.most is None:
            return (
                f"random graphs of {self.vertices} vertices, with weights 0 and 1 or uniform ones"
            )
        return (
            f"random graphs of {self.vertices} to {self.most} vertices of all densities, with "
            "weights 1, uniform, +-1 and normal"
        )

    def rounded(self, x, tau):
        """Cuts, of each point the best that a line through the origin makes."""
        return Cuts(self.space.n), best_half_circles(x, tau)

    def canonical(self, x):
        """Turned so that the first vertex is at angle 0."""
        u, v = x.unflatten(-1, (-1, 2)).unbind(-1)
        cos, sin = u[..., :1], v[..., :1]
        return torch.stack((u * cos + v * sin, v * cos - u * sin), -1).flatten(-2)

    def images(self, x):
        """Itself and its mirror image."""
        return torch.stack((x, x * x.new_tensor((1.0, -1.0)).repeat(x.shape[-1] // 2)))


def _paper_graphs(count: int, vertices: int, generator: Generator) -> Weights:
    """Every other one with weights 0 and 1, every other one with uniform weights."""
    device = generator.device
    uniform = torch.rand(count, vertices, vertices, generator=generator, device=device)
    simple = torch.arange(count, device=device)[:, None, None] % 2 == 0
    return _symmetric(torch.where(simple, (uniform < 0.5).float(), uniform))


def _mixed_graphs(count: int, least: int, most: int, generator: Generator) -> Weights:
    """Of four kinds in turn, weights 1, uniform, +-1 and normal, with any share of all edges; a
    third of them has the least number of vertices, the others any up to the most."""
    device = generator.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(count, *shape, generator=generator, device=device)

    kind = torch.arange(count, device=device)[:, None, None] % 4
    first, second = uniform(most, most), uniform(most, most)
    normal = (-2 * (1 - first).log()).sqrt() * (2 * torch.pi * second).cos()
    signs = (first < 0.5).float() * 2 - 1
    weights = torch.where(kind == 0, 1.0, torch.where(kind == 1, first, signs))
    weights = torch.where(kind == 3, normal, weights)
    there = uniform(most, most) < 0.1 + 0.9 * uniform(1, 1)
    vertices = least + ((most - least + 1) * (1.5 * uniform(1) - 0.5).clamp(min=0)).floor()
    real = torch.arange(most, device=device) < vertices
    weights = weights * there * real[:, None] * real[:, :, None]
    return at_unit_scale(_symmetric(weights))


def _symmetric(weights: Weights) -> Weights:
    half = weights.triu(1)
    return half + half.mT
