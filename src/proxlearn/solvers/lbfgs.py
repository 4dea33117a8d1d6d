"""Multistart L-BFGS, all starts at once: what a user would write today, batched."""

from dataclasses import dataclass

from proxlearn.calculus.lbfgs import QuasiNewton
from proxlearn.solvers.base import Stepwise


@dataclass(frozen=True)
class Lbfgs(QuasiNewton, Stepwise):
    """So many steps of L-BFGS from every start."""

    steps: int = 100
