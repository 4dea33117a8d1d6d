"""Sparse recovery with the minimax concave penalty (paper, D.5): tau says how concave it is."""

from proxlearn.errors import InputError
from proxlearn.problems.sparse import thresholds
from proxlearn.problems.sparse.recovery import Recovery
from proxlearn.spaces import Box


class SparseMcp(Recovery):
    """`f(x) = |A x - y|^2 + sum_k MCP(x_k)` with tau in [0.5, 2].
    `MCP(x) = |x| - tau x^2` up to `|x| = 1 / (2 tau)`, and `1 / (4 tau)` beyond."""

    name = "sparse-mcp"
    parameters = Box(0.5, 2.0, dim=1)
    lam = 5.0

    def check(self, tau):
        if (tau <= 0).any():
            raise InputError(f"tau = {tau.min().item():g} must be above 0: the MCP divides by it.")

    def penalty(self, x, tau):
        tau = tau[:, None]
        near = x.abs().clamp(max=1 / (2 * tau))
        return (near - tau * near.square()).sum(-1)

    def prox(self, x, tau, step):
        return thresholds.mcp(x, step, tau[:, None])
