"""Sparse recovery (paper, 5.2 and D.5): what its problems share.

A signal of which half the entries are 0 is measured, `y = A x + noise`, fewer times than it has
entries; it is looked for by minimizing `|A x - y|^2 + penalty(x)`.
"""

import warnings
from abc import ABC, abstractmethod
from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from proxlearn.common.batch import Batch, Points, Values
from proxlearn.common.checks import floats
from proxlearn.errors import InputError
from proxlearn.problems.base import Problem
from proxlearn.problems.sparse import thresholds
from proxlearn.spaces import Box

DIM, MEASURED = 8, 4
NOISE = 0.1  # standard deviation
WELL = 0.01  # where the exact |x|^p is steeper than any network or step size can follow
WEIGHTS = Box((0.0, 0.2), (1.0, 0.5))  # alpha and p
SEED = 0  # of the paper's kind of measurements, the ones used unless others are given
Measurements = tuple[Float[Tensor, "#i m d"], Float[Tensor, "#i m"]]  # A and y of every instance


class Recovery(Problem, ABC):
    """`f(x) = |A x - y|^2 + penalty(x)` on [-2, 2]^d, with the A and y given.

    Without them they are the paper's kind: d = 8, m = 4, A of standard normal entries, a uniform
    signal with half of its entries 0, and noise of 0.1.
    """

    def __init__(self, matrix: Any = None, measured: Any = None):
        if (matrix is None) != (measured is None):
            raise InputError("Give both A and y, the matrix and what it measured, or neither.")
        if matrix is None:
            drawn = draw_measurements(1, torch.Generator().manual_seed(SEED))
            matrix, measured = (each[0] for each in drawn)
        else:
            self.name += " of your own"  # no operator for the paper's A and y is for these
        self.matrix, self.measured = checked_measurements(matrix, measured)
        # Signals are drawn from it, but what measures alike may be larger.
        self.space = Box(-2.0, 2.0, dim=self.matrix.shape[1], open=True)
        self._there: dict[Any, tuple[Tensor, Tensor]] = {}

    def measurements(self, x: Points, tau: Batch) -> Measurements:
        """A and y of every instance, beside x; copied to its device only once."""
        key = (x.device, x.dtype)
        if key not in self._there:
            self._there[key] = (self.matrix[None].to(x), self.measured[None].to(x))
        return self._there[key]

    def smooth(self, x, tau):
        matrix, measured = self.measurements(x, tau)
        # Not a matrix product, which a GPU may round to fewer digits.
        predicted = (matrix[:, None] * x[:, :, None]).sum(-1)
        return (predicted - measured[:, None]).square().sum(-1)

    @abstractmethod
    def penalty(self, x: Points, tau: Batch) -> Values:
        """What asks for zeros."""

    def objective(self, x, tau):
        return self.smooth(x, tau) + self.penalty(x, tau)


class PowerRecovery(Recovery):
    """A penalty `alpha * sum_k |x_k|^p`."""

    def weights(self, tau: Batch) -> tuple[Tensor, Tensor | float]:
        """alpha and p, (i 1 1): the first two numbers of tau."""
        return tau[:, None, None, 0], tau[:, None, None, 1]

    def prox(self, x, tau, step):
        alpha, p = self.weights(tau)
        return thresholds.power(x, step * alpha, p)

    def penalty(self, x, tau):
        alpha, p = self.weights(tau)
        return (alpha * smoothed_power(x, p)).sum(-1)

    def pinned(self, x, tau):
        alpha, _ = self.weights(tau)
        return (x.abs() < WELL) & (alpha > 0)

    def rounded(self, x, tau):
        return self, torch.where(x.abs() < WELL, 0.0, x)  # there, `objective` is the exact one

    def check(self, tau):
        alpha, p = (torch.as_tensor(each) for each in self.weights(tau))
        if not ((p > 0) & (p <= 1)).all():
            raise InputError(
                f"p = {float(p[(p <= 0) | (p > 1)][0]):g} is not the exponent of a penalty that "
                "asks for zeros: it must be above 0 and at most 1."
            )
        if (alpha < 0).any():
            raise InputError(
                f"alpha = {float(alpha.min()):g} would reward large entries: it must be 0 or more."
            )


def smoothed_power(x: Points, p: Float[Tensor, "i 1 1"] | float) -> Points:
    """`|x|^p`, exact at 0 and from WELL on; between, a cubic in |x|, smooth at WELL and flat at 0.

    No minimum of the exact objective has an entry between 0 and `(alpha p (1 - p) / (2 |a|^2)) **
    (1 / (2 - p))`, a the column of A, where the sum curves down: above WELL but for tiny alphas.
    """
    size = x.abs()
    near = (size / WELL).clamp(max=1.0)
    inside = WELL**p * near.square() * ((3 - p) - (2 - p) * near)
    return torch.where(size < WELL, inside, size.clamp(min=WELL) ** p)


def draw_measurements(count: int, generator: Generator) -> Measurements:
    """Matrices A and what they measure, y, of signals with half their entries 0."""
    device = generator.device
    matrix = torch.randn(count, MEASURED, DIM, generator=generator, device=device)
    signal = 4 * torch.rand(count, DIM, generator=generator, device=device) - 2
    rank = torch.rand(count, DIM, generator=generator, device=device).argsort(-1).argsort(-1)
    signal = torch.where(rank < DIM // 2, 0.0, signal)
    noise = NOISE * torch.randn(count, MEASURED, generator=generator, device=device)
    return matrix, (matrix * signal[:, None]).sum(-1) + noise


def checked_measurements(
    matrix: Any, measured: Any
) -> tuple[Float[Tensor, "m d"], Float[Tensor, " m"]]:
    """A and y as tensors, or a sentence that says what is wrong with them.

    For a low rank it is a warning: the penalty still decides between signals that measure alike, so
    every method finds minima; there is only less to tell signals by.
    """
    matrix, measured = (
        floats(name, each, "rows of numbers" if name == "A" else "numbers").cpu()
        for name, each in (("A", matrix), ("y", measured))
    )
    if matrix.ndim != 2 or not matrix.numel() or measured.shape != matrix.shape[:1]:
        raise InputError(
            f"A has shape {tuple(matrix.shape)} and y {tuple(measured.shape)}; expected "
            "(measurements, entries) and (measurements,): one y for each row of A."
        )
    rank, full = int(torch.linalg.matrix_rank(matrix)), min(matrix.shape)
    if rank < full:
        warnings.warn(
            f"A has rank {rank} where {full} is possible: some of its {len(matrix)} measurements "
            "follow from others, so that more signals than usual fit y equally well.",
            UserWarning,
            stacklevel=3,
        )
    return matrix, measured
