"""The best of distinct optima as the result that users of SciPy know."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

    from proxlearn.answers.optima import Optima

FOUND, UNVERIFIED, DOUBTFUL, NONE = range(4)  # `status`; success is FOUND alone


def best_of(optima: "Optima") -> "OptimizeResult":
    """The first of them, which has the lowest value, or was reached most where there are none.

    `x` (d,), `fun` (NaN without values), `share` of the starts, its `certificate` or None, and
    `success`: whether it is known to be an optimum, or to lead to one (not that it is the global
    one). `message` says what is known, in words.
    """
    from scipy.optimize import OptimizeResult

    status, message = _said(optima)
    found: dict[str, Any] = {"x": np.full(optima.points.shape[-1], np.nan), "fun": np.nan}
    found |= {"share": 0.0, "certificate": None}
    if len(optima):
        found["x"] = optima.points[0].double().cpu().numpy()
        found["share"] = float(optima.share[0])
        if optima.values is not None:
            found["fun"] = float(optima.values[0])
        if optima.certificates:
            found["certificate"] = optima.certificates[0]
    return OptimizeResult(**found, success=status == FOUND, status=status, message=message)


def _said(optima: "Optima") -> tuple[int, str]:
    """The status and the message."""
    starts = f"{optima.starts:,} starts"
    if not len(optima):
        return NONE, f"No optimum was found from {starts}."
    best = "The most reached" if optima.values is None else "The best"
    one, more = ("optimum", "optima") if optima.verified else ("solution", "solutions")
    many = f"{best} of {len(optima)} distinct {more}" if len(optima) > 1 else f"The only {one}"
    said = f"{many} found from {starts}"
    if doubt := getattr(optima.solutions, "doubt", None):
        return DOUBTFUL, f"{said}; not to be trusted: {doubt}."
    if optima.certificates:
        return FOUND, f"{said}; certified: {optima.certificates[0]}."
    if optima.verified:
        return FOUND, f"{said}; it leads to a certified optimum (polished() takes it there)."
    return UNVERIFIED, f"{said}; nothing verified that it is an optimum."
