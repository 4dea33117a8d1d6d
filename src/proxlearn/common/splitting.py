"""Work on many points in parts of a bounded size."""

from collections.abc import Iterator

from jaxtyping import Float
from torch import Tensor

from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch, Points


def pieces(
    tau: Batch, x: Points, most: int
) -> Iterator[tuple[slice, slice, Batch, Float[Tensor, "j m d"]]]:
    """Rows and columns of x with the instances that go with them, at most `most` points each."""
    columns = max(1, min(most, x.shape[1]))
    rows = max(1, most // columns)
    for i in range(0, x.shape[0], rows):
        some = slice(i, i + rows)
        instances = batches.select(tau, some)
        for n in range(0, x.shape[1], columns):
            yield some, slice(n, n + columns), instances, x[some, n : n + columns]
