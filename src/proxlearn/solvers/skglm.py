"""skglm's coordinate descent from every start, one after the other: what people use today for
sparse regression with a concave penalty (extra `sparse`)."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from proxlearn.common.checks import positive
from proxlearn.problems.sparse.recovery import Recovery
from proxlearn.problems.sparse.sparse_half import SparseHalf
from proxlearn.problems.sparse.sparse_mcp import SparseMcp
from proxlearn.solvers.base import Solver


@dataclass(frozen=True)
class Skglm(Solver):
    """`AndersonCD` with the L0.5 penalty or the MCP; for `sparse-half` and `sparse-mcp`."""

    tolerance: float = 1e-8  # of its optimality condition

    def __post_init__(self):
        positive("tolerance", self.tolerance)

    def refuses(self, problem):
        if not isinstance(problem, SparseHalf | SparseMcp):
            return (
                "The method 'skglm' solves 'sparse-half' and 'sparse-mcp', whose penalties it "
                f"has, and not {problem.name!r}: use proximal_gradient, descent or lbfgs."
            )
        if not find_spec("skglm"):
            return (
                "The method 'skglm' needs the package skglm, which is not installed: pip install "
                "'proxlearn[sparse]'"
            )
        return None

    def run(self, problem, tau, starts):
        from skglm.datafits import Quadratic  # pyright: ignore[reportMissingImports]
        from skglm.penalties import L0_5, MCPenalty  # pyright: ignore[reportMissingImports]
        from skglm.solvers import AndersonCD  # pyright: ignore[reportMissingImports]

        assert isinstance(problem, Recovery)
        matrix = np.asfortranarray(problem.matrix.double().numpy())
        measured, m = problem.measured.double().numpy(), len(problem.measured)
        # skglm minimizes `|A x - y|^2 / (2 m) + penalty`: all that we have, divided by 2 m.
        half = isinstance(problem, SparseHalf)
        method = AndersonCD(fit_intercept=False, warm_start=True, tol=self.tolerance)
        found = torch.empty_like(starts)
        for i, one in enumerate(tau[:, 0].tolist()):
            penalty = L0_5(one / (2 * m)) if half else MCPenalty(alpha=1 / (2 * m), gamma=m / one)
            for n, start in enumerate(starts[i].double().cpu().numpy()):
                begun = start.copy()  # skglm works in place
                w: Any = method.solve(matrix, measured, Quadratic(), penalty, begun, matrix @ begun)
                found[i, n] = torch.as_tensor(w[0], dtype=starts.dtype)
        return found
