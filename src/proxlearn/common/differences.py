"""Functions written with NumPy as functions of torch: in double precision on the CPU, with their
gradients by central differences."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from proxlearn.common.batch import Points, Values

STEP = 6e-6  # of a difference: the cube root of the precision of a double, where errors are least
OfArrays = Callable[[Float[np.ndarray, "i n d"]], Float[np.ndarray, "i n"]]


@dataclass(frozen=True)
class Range:
    """Where points lie: no difference takes values from elsewhere."""

    low: tuple[float, ...]  # of every coordinate; infinite where it has no bound
    high: tuple[float, ...]
    width: tuple[float, ...]  # the length over which each coordinate usually varies


def by_differences(function: OfArrays, x: Points, within: Range) -> Values:
    """The values of a function of arrays, in double precision, and differentiable once in x."""
    return _Differences.apply(x, function, within)  # pyright: ignore[reportReturnType]


class _Differences(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, function: OfArrays, within: Range) -> Tensor:
        ctx.save_for_backward(x)
        ctx.function, ctx.within = function, within
        return torch.from_numpy(function(_array(x)))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (x,) = ctx.saved_tensors
        slope = torch.from_numpy(_slope(ctx.function, _array(x), ctx.within))
        return (grads[0][..., None] * slope).to(x.dtype), None, None


def _array(x: Tensor) -> Float[np.ndarray, "i n d"]:
    """A copy that a function may change."""
    return x.detach().to(torch.float64, copy=True).numpy()


def _slope(function: OfArrays, x: np.ndarray, within: Range) -> Float[np.ndarray, "i n d"]:
    """The gradient at every point; beside a bound it is one-sided, by points inside alone."""
    slope = np.empty_like(x)
    for k, (low, high, width) in enumerate(zip(within.low, within.high, within.width)):
        step = STEP * np.minimum(width, np.maximum(1.0, np.abs(x[..., k])))
        ahead, behind = x.copy(), x.copy()
        ahead[..., k] = np.minimum(x[..., k] + step, high)
        behind[..., k] = np.maximum(x[..., k] - step, low)
        length = ahead[..., k] - behind[..., k]
        slope[..., k] = (function(ahead.copy()) - function(behind.copy())) / length
    return slope
