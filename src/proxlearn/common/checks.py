"""Checks of numbers that users give, each an error in a sentence."""

import math
from numbers import Integral, Real
from typing import Any

from proxlearn.errors import InputError


def check_positive(name: str, value: Any) -> None:
    """An error where a setting is no positive number."""
    if not (is_number(value) and value > 0):
        raise InputError(f"{name} must be a positive number, not {value!r}.")


def check_whole(name: str, value: Any) -> None:
    """An error where a setting is no whole number."""
    if not isinstance(value, Integral):
        raise InputError(f"{name} must be a whole number, not {value!r}.")


def is_number(value: Any) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def check_steps(steps: Any) -> None:
    """An error where a number of applications, or of a method's steps, is none."""
    if not isinstance(steps, Integral) or steps < 0:
        raise InputError(
            f"steps must be a whole number, 0 (the starts themselves) or more, not {steps!r}."
        )
