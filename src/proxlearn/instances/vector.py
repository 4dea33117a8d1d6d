"""tau is a vector, out of a box that operators are trained on."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.checks import floats
from proxlearn.errors import InputError, RangeWarning
from proxlearn.instances.base import Instances
from proxlearn.spaces import Box


@dataclass(frozen=True)
class Vectors(Instances):
    """Vectors between `low` and `high`; without any numbers, the tau of a single objective."""

    encoder = "vector"
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self):
        if self.low or self.high:
            _ = self.range  # for its checks

    @classmethod
    def over(cls, parameters: Box | None) -> "Vectors":
        """The vectors of a box; None is a single objective, with no parameters."""
        return cls((), ()) if parameters is None else cls(parameters.low, parameters.high)

    @classmethod
    def rebuilt(cls, settings, rebuild):
        return cls(tuple(settings["low"]), tuple(settings["high"]))

    @cached_property
    def range(self) -> Box:
        """Where operators are trained."""
        return Box(self.low, self.high)

    @property
    def words(self):
        return "1 number" if len(self.low) == 1 else f"{len(self.low)} numbers"

    @property
    def numbers(self):
        return len(self.low)

    def warn_of_unknown(self, observed):
        if self.low:
            warn_outside(self.range, observed[~self.knows(observed)], len(observed), "tau")

    def batch(self, tau: Any) -> Float[Tensor, "i p"]:
        """One vector or many as a batch of finite numbers, in the range or not."""
        p = len(self.low)
        if tau is None and p == 0:
            return torch.zeros(1, 0)
        if tau is None:
            raise InputError(f"This is a family of objectives: give tau, {self.words}.")
        expected = f"{self.words}, or rows of {self.words}"
        tau = torch.atleast_1d(floats("tau", tau, expected))
        if tau.ndim == 1 and p == 0:
            raise InputError("This is a single objective, which takes no tau: leave it out.")
        if tau.ndim == 1 and len(tau) != p:
            raise InputError(f"tau must be {expected}; this one has {len(tau)}.")
        tau = tau[None] if tau.ndim == 1 else tau
        if tau.ndim != 2 or tau.shape[1] != p or len(tau) == 0:
            raise InputError(
                f"tau has shape {tuple(tau.shape)}; expected ({p},) for one instance or "
                f"(instances, {p}) for many."
            )
        return tau

    def knows(self, observed):
        return self.range.contains(observed) if self.low else super().knows(observed)


def warn_outside(trained: Box, outside: Float[Tensor, "k p"], count: int, what: str) -> None:
    """A `RangeWarning` where some vectors, out of `count` of them, are outside the range."""
    if some := len(outside):
        first = _numbers(outside[0].tolist())
        many = f"{some} of {count} {what}s, such as [{first}], lie{'s' * (some == 1)}"
        who = many if count > 1 else f"This {what}, [{first}], lies"
        warnings.warn(
            f"{who} outside the range [{_numbers(trained.low)}] to [{_numbers(trained.high)}] that "
            "operators are trained on: their solutions there are a guess.",
            RangeWarning,
            stacklevel=4,
        )


def _numbers(values) -> str:
    return ", ".join(f"{v:.4g}" for v in values)
