"""An interval in every coordinate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from proxlearn.common.checks import array, flag, said
from proxlearn.errors import InputError
from proxlearn.spaces.base import EDGE, Space, constant, size_of

Bound = float | Sequence[float]  # of all coordinates, or of each


@dataclass(frozen=True, init=False)
class Box(Space):
    """`[low, high]^dim`, or a box with its own bounds for every coordinate.

    The bounds are part of the problem: no method leaves the box, and optima may lie on its edge.
    One that is `open` is only a window on a problem without bounds: starts are drawn from it, and
    points may leave it, which `contains` then tells.

    `Box(-5, 5, dim=2)`; `Box([0, -2], [1, 2])`; the same as pairs, `Box([(0, 1), (-2, 2)])`;
    or as an array or tensor (2, dim), the lower bounds first."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    open: bool = False

    def __init__(
        self, low: Any, high: Bound | None = None, dim: int | None = None, open: bool = False
    ):
        if high is None:
            low, high = _low_and_high(low)
        low, high = _bounds("low", low, dim), _bounds("high", high, dim)
        if len(low) != len(high):
            raise InputError(
                f"Box has {len(low)} lower and {len(high)} upper bounds: give as many of each, "
                "or one number and dim=."
            )
        for k, (a, b) in enumerate(zip(low, high)):
            if not (math.isfinite(a) and math.isfinite(b) and a < b):
                raise InputError(
                    f"Box needs finite bounds with low < high, but coordinate {k} has "
                    f"low = {a:g} and high = {b:g}."
                )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "open", flag("open", open))

    @property
    def dim(self) -> int:
        return len(self.low)

    @property
    def diameter(self) -> float:
        return math.dist(self.low, self.high)

    @property
    def _width(self) -> tuple[float, ...]:
        return tuple(b - a for a, b in zip(self.low, self.high))

    @property
    def _center(self) -> tuple[float, ...]:
        return tuple((a + b) / 2 for a, b in zip(self.low, self.high))

    @property
    def bounds(self):
        return super().bounds if self.open else (self.low, self.high)

    @property
    def closed(self):
        return not self.open

    @property
    def opened(self):
        return self if self.open else Box(self.low, self.high, open=True)

    def sample(self, *shape, generator=None, device="cpu"):
        unit = torch.rand(*shape, self.dim, generator=generator, device=device)
        return torch.addcmul(constant(self.low, unit), unit, constant(self._width, unit))

    def project(self, x):
        return x.clamp(constant(self.low, x), constant(self.high, x))

    def retract(self, x):
        return x if self.open else self.project(x)

    def contains(self, x, edge=EDGE):
        low = tuple(a - edge * width for a, width in zip(self.low, self._width))
        high = tuple(b + edge * width for b, width in zip(self.high, self._width))
        return (x.clamp(constant(low, x), constant(high, x)) == x).all(-1)

    def to_unit(self, x):
        scale = tuple(2 / width for width in self._width)
        origin = tuple(-center * each for center, each in zip(self._center, scale))
        return torch.addcmul(constant(origin, x), x, constant(scale, x))

    def from_unit(self, x):
        half = tuple(width / 2 for width in self._width)
        return torch.addcmul(constant(self._center, x), x, constant(half, x))

    @classmethod
    def rebuilt(cls, settings, rebuild):
        return cls(**{"open": True} | settings)  # all were, in files that do not say


def _low_and_high(bounds: Any) -> tuple[list[float], list[float]]:
    """The bounds out of pairs, or of an array (2, dim)."""
    rows = bounds.tolist() if isinstance(bounds, np.ndarray | torch.Tensor) else bounds
    pairs = zip(*rows) if rows is not bounds and len(rows) == 2 else rows
    try:
        low, high = zip(*((float(a), float(b)) for a, b in pairs))
    except (TypeError, ValueError):
        shape = f"{tuple(bounds.shape)}" if rows is not bounds else repr(bounds)
        raise InputError(
            "Box needs lower and upper bounds: Box(-5, 5, dim=2), Box([0, -2], [1, 2]), pairs such "
            f"as Box([(0, 1), (-2, 2)]), or an array (2, dim), not {shape}."
        ) from None
    return list(low), list(high)


def _bounds(name: str, value: Bound, dim: int | None) -> tuple[float, ...]:
    """One bound for each coordinate."""
    values = array(f"{name} of a Box", value, "a number, or one for each coordinate")
    if not values.ndim and dim is None:
        raise InputError(f"Box got one number for {name}: say dim=, or give one a coordinate.")
    if not values.ndim:
        return (float(values),) * size_of("dim of a Box", dim)
    if values.ndim > 1 or not len(values) or (dim is not None and len(values) != dim):
        raise InputError(
            f"Box got bounds of shape {tuple(values.shape)} for {name}; expected a number for each "
            f"coordinate{'' if dim is None else f', of which it has {said(dim)}'}."
        )
    return tuple(values.double().tolist())
