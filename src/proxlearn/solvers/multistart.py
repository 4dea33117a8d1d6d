"""SciPy's L-BFGS-B from every start, one after the other: the yardstick people use today."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize

from proxlearn.calculus.derivatives import gradient
from proxlearn.common import batch as batches
from proxlearn.solvers.base import Solver


@dataclass(frozen=True)
class Multistart(Solver):
    """`scipy.optimize.minimize(method="L-BFGS-B")`, with the space's bounds where there are any."""

    steps: int = 200  # SciPy's maxiter

    def run(self, problem, tau, starts):
        space = problem.space
        bounds = list(zip(*space.bounds))
        settings = {"method": "L-BFGS-B", "bounds": bounds, "options": {"maxiter": self.steps}}
        solutions = torch.empty_like(starts)
        for i in range(len(starts)):
            one = batches.select(tau, slice(i, i + 1))

            def evaluate(x: np.ndarray, one=one) -> tuple[float, np.ndarray]:
                at = torch.as_tensor(x, dtype=starts.dtype, device=starts.device)[None, None]
                values, slope = gradient(problem, at, one)
                return values.item(), slope[0, 0].double().cpu().numpy()

            for n, start in enumerate(starts[i].double().cpu().numpy()):
                found = minimize(evaluate, start, jac=True, **settings)
                solutions[i, n] = torch.as_tensor(found.x, dtype=starts.dtype)
        return space.retract(solutions)
