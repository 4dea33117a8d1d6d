"""Sparse recovery with p = 1/2, where the proximal operator is known (paper, D.5): tau = alpha."""

from proxlearn.problems.sparse import thresholds
from proxlearn.problems.sparse.recovery import PowerRecovery
from proxlearn.spaces import Box


class SparseHalf(PowerRecovery):
    """`f(x) = |A x - y|^2 + alpha * sum_k |x_k|^(1/2)` with tau = alpha in [0, 1]."""

    name = "sparse-half"
    parameters = Box(0.0, 1.0, dim=1)
    lam = 5.0

    def weights(self, tau):
        return tau[:, None], 0.5

    def prox(self, x, tau, step):
        return thresholds.half(x, step * tau[:, None])  # what `power` finds, in closed form
