"""Sparse recovery from any measurements: tau = (alpha, p, A, y), so that one operator serves all.
Beyond the paper, which trains an operator for one A and one y."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.instances import Vectors
from proxlearn.networks.encoders.gram import Gram
from proxlearn.problems.sparse import recovery
from proxlearn.problems.sparse.recovery import DIM, MEASURED, WEIGHTS, PowerRecovery
from proxlearn.spaces import Box

ENTRIES = MEASURED * DIM
RANGE = Box(  # all but one in a thousand of the measurements that are drawn
    (*WEIGHTS.low, *[-5.0] * ENTRIES, *[-16.0] * MEASURED),
    (*WEIGHTS.high, *[5.0] * ENTRIES, *[16.0] * MEASURED),
)


class SparseGeneral(PowerRecovery):
    """`f(x) = |A x - y|^2 + alpha * sum_k |x_k|^p`, tau = (alpha, p, rows of A, y), 38 numbers.
    `tau(A, y, alpha, p)` makes one of its parts."""

    name = "sparse-general"
    parameters = RANGE
    lam = 5.0

    def tau(self, matrix: Any, measured: Any, alpha: Any, p: Any) -> Float[Tensor, " q"]:
        """One instance as a vector, checked."""
        matrix, measured = recovery.checked_measurements(matrix, measured)
        if matrix.shape != (MEASURED, DIM):
            raise InputError(
                f"A has shape {tuple(matrix.shape)}; {self.name!r} is for ({MEASURED}, {DIM}). For "
                "another size, train on Sparse(A, y) of proxlearn.problems.sparse."
            )
        try:
            weights = torch.tensor([float(alpha), float(p)])
        except (TypeError, ValueError):
            raise InputError(f"alpha and p must be numbers, not {alpha!r} and {p!r}.") from None
        tau = torch.cat((weights, matrix.flatten(), measured))
        self.check(tau[None])
        return tau

    def sample(self, count, split, generator):
        matrix, measured = recovery.draw_measurements(count, generator)
        weights = WEIGHTS.sample(count, generator=generator, device=generator.device)
        return torch.cat((weights, matrix.flatten(1), measured), -1)

    def encoder(self):
        return Gram(Vectors.over(RANGE), MEASURED, DIM)

    def measurements(self, x, tau):
        _, matrix, measured = tau.split((2, ENTRIES, MEASURED), -1)
        return matrix.unflatten(-1, (MEASURED, DIM)), measured
