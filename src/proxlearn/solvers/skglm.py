"""skglm's coordinate descent from every start, one after the other: what people use today for
sparse regression with a concave penalty (extra `sparse`)."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from proxlearn.common.checks import check_positive
from proxlearn.problems.base import Problem
from proxlearn.problems.sparse.recovery import Recovery
from proxlearn.problems.sparse.sparse_half import SparseHalf
from proxlearn.problems.sparse.sparse_mcp import SparseMcp
from proxlearn.solvers.base import Solver


@dataclass(frozen=True)
class Skglm(Solver):
    """`AndersonCD` with the L0.5 penalty or the MCP; for `sparse-half` and `sparse-mcp`."""

    tolerance: float = 1e-8  # of its optimality condition

    def __post_init__(self):
        check_positive("tolerance", self.tolerance)

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
        penalties = _penalties(problem)
        assert isinstance(problem, Recovery)
        matrix, measured = problem.matrix.double().numpy(), problem.measured.double().numpy()
        minimize = _minimizer(np.asfortranarray(matrix), measured, self.tolerance)
        found = torch.empty_like(starts)
        for i, one in enumerate(tau[:, 0].tolist()):
            penalty = penalties(one, len(measured))
            for n, start in enumerate(starts[i].double().cpu().numpy()):
                found[i, n] = torch.as_tensor(minimize(penalty, start), dtype=starts.dtype)
        return found


def _penalties(problem: Problem) -> Callable[[float, int], Any]:
    """The penalty of one tau for m measurements. skglm minimizes `|A x - y|^2 / (2 m) + penalty`,
    so that everything is divided by 2 m."""
    from skglm.penalties import L0_5, MCPenalty  # pyright: ignore[reportMissingImports]

    if isinstance(problem, SparseHalf):
        return lambda alpha, m: L0_5(alpha / (2 * m))
    return lambda tau, m: MCPenalty(alpha=1 / (2 * m), gamma=m / tau)


def _minimizer(
    matrix: np.ndarray, measured: np.ndarray, tolerance: float
) -> Callable[[Any, np.ndarray], np.ndarray]:
    """A function of a penalty and a start."""
    from skglm.datafits import Quadratic  # pyright: ignore[reportMissingImports]
    from skglm.solvers import AndersonCD  # pyright: ignore[reportMissingImports]

    solver = AndersonCD(fit_intercept=False, warm_start=True, tol=tolerance)
    datafit = Quadratic()

    def minimize(penalty: Any, start: np.ndarray) -> np.ndarray:
        begun = start.copy()  # skglm works in place
        solved: Any = solver.solve(matrix, measured, datafit, penalty, begun, matrix @ begun)
        return solved[0]

    return minimize
