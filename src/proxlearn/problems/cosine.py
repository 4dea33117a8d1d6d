"""A grid of equal wells (paper, D.3): what the proximal weight decides."""

import math

import torch

from proxlearn.problems.base import Problem
from proxlearn.spaces import Box


class Cosine(Problem):
    """`f(x) = -10 sum_i cos(2 pi x_i)` on [-5, 5]^2, a single objective with 121 minima.
    Its weak convexity constant is 40 pi^2 = 394.8: with a larger `lam` wells keep their points."""

    name = "cosine"
    space = Box(-5.0, 5.0, dim=2)  # closed: 40 of the minima are on its edge
    lam = 400.0

    def objective(self, x, tau):
        return -10 * (2 * math.pi * x).cos().sum(-1)

    def truth(self, tau):
        whole = torch.arange(-5.0, 6.0, device=tau.device)
        return [torch.cartesian_prod(whole, whole) for _ in tau]
