"""Answers as NumPy arrays and as DataFrames of pandas, which is imported where it is used."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Shaped
from torch import Tensor

from proxlearn.errors import ProxlearnError

if TYPE_CHECKING:
    from pandas import DataFrame


class MissingPandasError(ProxlearnError, ImportError):
    """pandas is not installed."""


def as_array(points: Tensor, dtype: Any, copy: Any) -> np.ndarray:
    """Points for NumPy, as its protocol `__array__(dtype, copy)` asks for them."""
    return np.array(points.detach().cpu().numpy(), dtype=dtype, copy=copy)


def coordinates(points: Shaped[Tensor, "n d"], name: str = "x") -> dict[str, Tensor]:
    """A column for each coordinate: x1, x2, ..."""
    return {f"{name}{k + 1}": each for k, each in enumerate(points.unbind(-1))}


def frame_of(columns: dict[str, Any]) -> "DataFrame":
    """Columns, tensors or lists of one length, as a DataFrame."""
    try:
        from pandas import DataFrame
    except ImportError:
        raise MissingPandasError(
            "A DataFrame needs pandas, which is not installed: pip install 'proxlearn[notebook]'"
        ) from None
    arrays = {k: e.cpu().numpy() if isinstance(e, Tensor) else e for k, e in columns.items()}
    return DataFrame(arrays)
