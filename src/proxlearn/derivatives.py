"""Values and gradients of an objective at many points at once, along the manifold where the space
is one. Points do not mix, so one backward pass serves them all.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn import batch as batches
from proxlearn.batch import Batch
from proxlearn.problem import Problem


def gradient(
    problem: Problem, x: Float[Tensor, "i n d"], tau: Batch
) -> tuple[Float[Tensor, "i n"], Float[Tensor, "i n d"]]:
    """Values and gradients at every point, along the manifold where the space is one."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        values = problem.objective(problem.space.retract(x), tau)
        (slope,) = torch.autograd.grad(values.sum(), x)
    return values.detach(), slope


def pieces(
    tau: Batch, x: Float[Tensor, "i n d"], most: int
) -> Iterator[tuple[slice, slice, Batch, Float[Tensor, "j m d"]]]:
    """Rows and columns of x with the instances that go with them, at most `most` points each."""
    columns = max(1, min(most, x.shape[1]))
    rows = max(1, most // columns)
    for i in range(0, x.shape[0], rows):
        some = slice(i, i + rows)
        instances = batches.select(tau, some)
        for n in range(0, x.shape[1], columns):
            yield some, slice(n, n + columns), instances, x[some, n : n + columns]
