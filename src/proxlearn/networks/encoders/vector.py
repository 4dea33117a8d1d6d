"""tau is a vector: its code is the vector itself, brought to [-1, 1] by the trained range."""

import reprlib
import warnings
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.errors import InputError, RangeWarning
from proxlearn.networks.encoders import Encoder
from proxlearn.spaces import Box


class Vector(Encoder):
    kind = "vector"

    def __init__(self, low: list[float], high: list[float]):
        super().__init__()
        self.range = Box(low, high)
        self.size = max(1, self.range.dim)  # a single objective has the constant code 0

    @classmethod
    def over(cls, parameters: Box | None) -> "Vector":
        """The encoder of vectors from a box; None is a single objective, with no parameters."""
        return (
            cls([], []) if parameters is None else cls(list(parameters.low), list(parameters.high))
        )

    def settings(self) -> dict[str, Any]:
        return {"low": list(self.range.low), "high": list(self.range.high)}

    def batch(self, tau):
        tau = self.rows(tau)
        outside = ~self.range.contains(tau)
        if outside.any():
            worst = tau[outside][0].tolist()
            warnings.warn(
                f"{int(outside.sum())} of {len(tau)} taus lie outside the range "
                f"[{_numbers(self.range.low)}] to [{_numbers(self.range.high)}] that operators are "
                f"trained on, for instance [{_numbers(worst)}]: their solutions there are a guess.",
                RangeWarning,
                stacklevel=3,
            )
        return tau

    def rows(self, tau: Any) -> Float[Tensor, "i p"]:
        """One vector or many as a batch of finite numbers, in the range or not."""
        p = self.range.dim
        if tau is None and p == 0:
            return torch.zeros(1, 0)
        if tau is None:
            raise InputError(f"This is a family of objectives: give tau, {_count(p)}.")
        expected = f"tau must be {_count(p)}, or rows of {_count(p)}"
        try:
            tau = torch.as_tensor(tau, dtype=torch.float32)
        except (TypeError, ValueError, RuntimeError):
            raise InputError(f"{expected}, not {reprlib.repr(tau)}.") from None
        tau = tau.reshape(1) if tau.ndim == 0 else tau
        if tau.ndim == 1 and p == 0:
            raise InputError("This is a single objective, which takes no tau: leave it out.")
        if tau.ndim == 1 and len(tau) != p:
            raise InputError(f"{expected}; this one has {len(tau)}.")
        tau = tau[None] if tau.ndim == 1 else tau
        if tau.ndim != 2 or tau.shape[1] != p or len(tau) == 0:
            raise InputError(
                f"tau has shape {tuple(tau.shape)}; expected ({p},) for one instance or "
                f"(instances, {p}) for many."
            )
        if not tau.isfinite().all():
            raise InputError("tau holds NaN or infinite numbers; every entry must be finite.")
        return tau

    def knows(self, observed):
        return self.range.contains(observed)

    def forward(self, observed):
        if self.range.dim == 0:
            return observed.new_zeros(len(observed), 1)
        return self.range.to_unit(observed)


def _count(p: int) -> str:
    return "1 number" if p == 1 else f"{p} numbers"


def _numbers(values) -> str:
    return ", ".join(f"{v:.4g}" for v in values)
