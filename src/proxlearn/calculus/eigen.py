"""Eigenvalues of many small symmetric matrices at once."""

import torch
from jaxtyping import Float
from torch import Tensor

MATRICES_AT_ONCE = 1 << 14  # cuSOLVER fails beyond some 32,000


def eigh(
    matrices: Float[Tensor, "*n k k"],
) -> tuple[Float[Tensor, "*n k"], Float[Tensor, "*n k k"]]:
    """Eigenvalues, smallest first, and eigenvectors, the columns of a matrix each."""
    shape = matrices.shape
    if not matrices.is_cuda:
        return torch.linalg.eigh(matrices)
    found = [torch.linalg.eigh(some) for some in matrices.flatten(0, -3).split(MATRICES_AT_ONCE)]
    values, vectors = (torch.cat(each) for each in zip(*found))
    return values.view(shape[:-1]), vectors.view(shape)
