"""Sampling from conic sections (paper, 5.1): the zero set of a quadratic in the plane."""

from proxlearn.problems.base import Problem
from proxlearn.spaces import Box


class Conic(Problem):
    """`f(x, y) = (A x^2 + B x y + C y^2 + D x + E y + F)^2` with tau = (A, ..., F)."""

    name = "conic"
    space = Box(-5.0, 5.0, dim=2, open=True)  # a curve goes on beyond what is looked at
    parameters = Box(-1.0, 1.0, dim=6)
    lam = 0.2  # the paper's; with more, flat valleys take long

    def objective(self, x, tau):
        a, b, c, d, e, f = tau[:, None].unbind(-1)
        u, v = x.unbind(-1)
        return (u * (a * u + b * v + d) + v * (c * v + e) + f).square()
