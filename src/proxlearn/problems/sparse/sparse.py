"""Sparse recovery with an l_p norm, p < 1 (paper, 5.2): tau = (alpha, p)."""

from proxlearn.problems.sparse.recovery import WEIGHTS, PowerRecovery


class Sparse(PowerRecovery):
    """`f(x) = |A x - y|^2 + alpha * sum_k |x_k|^p`, tau = (alpha, p) in [0, 1] x [0.2, 0.5]."""

    name = "sparse"
    parameters = WEIGHTS
    lam = 2.5
