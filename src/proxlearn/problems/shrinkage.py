"""The l1 norm (paper, D.2): its proximal operator is known, so a learned one can be measured."""

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.problems.base import Problem
from proxlearn.spaces import Box


class Shrinkage(Problem):
    """`f(x) = |x|_1` on [-1, 1]^d, a single objective. `lam` = 2 is the paper's `|y - x|^2`."""

    name = "shrinkage"
    lam: float = 2.0

    def __init__(self, dim: int = 2):
        self.space = Box(-1.0, 1.0, dim=dim)

    def objective(self, x, tau):
        return x.abs().sum(-1)

    def proximal(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        """The closed form, eq. (shrinkage): every coordinate moves towards 0 by at most 1/lam."""
        return torch.nn.functional.softshrink(x, 1 / self.lam)

    def truth(self, tau):
        return [tau.new_zeros(1, self.space.dim) for _ in tau]
