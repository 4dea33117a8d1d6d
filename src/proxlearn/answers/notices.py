"""What is said of solutions as they are returned: a line to the log, and warnings where all of an
instance are outside the space, or some have no value, so that the best one is none, or wrong."""

import warnings
from typing import TYPE_CHECKING

from proxlearn.common.log import logger
from proxlearn.errors import NotFiniteWarning, OutsideWarning

if TYPE_CHECKING:
    from proxlearn.answers.solutions import Solutions


def logged(solutions: "Solutions") -> "Solutions":
    """The same solutions, told to the log."""
    of = f"Solved {solutions.problem.name!r}" if solutions.problem else "Solved"
    logger.info("%s: %r", of, solutions)
    return solutions


def warned(solutions: "Solutions") -> "Solutions":
    """The same solutions, with both warnings, where they apply."""
    return warn_where_some_have_no_value(warn_where_none_is_inside(solutions))


def warn_where_some_have_no_value(solutions: "Solutions") -> "Solutions":
    """The same solutions; a warning where the objective is NaN or infinite inside the space."""
    values, inside = solutions.values, solutions.inside
    if values is not None and (some := int((inside & ~values.isfinite()).sum())):
        warnings.warn(
            f"The objective is NaN or infinite at {some:,} of {int(inside.sum()):,} solutions "
            f"inside {solutions.space}, which are no optima: it must be finite on the whole space.",
            NotFiniteWarning,
            stacklevel=5,
        )
    return solutions


def warn_where_none_is_inside(solutions: "Solutions") -> "Solutions":
    """The same solutions; a warning where none of an instance is inside the space."""
    gone, count = int((~solutions.inside.any(1)).sum()), solutions.points.shape[1]
    if gone:
        of = "" if len(solutions) == 1 else f" of {gone} of {len(solutions)} instances"
        warnings.warn(
            f"None of the {count:,} solutions{of} is inside {solutions.space}, so there is no best "
            "one: they followed the objective out of an open box, or are not numbers. If bounds "
            "are part of the problem, say Box(..., open=False); else make the box larger.",
            OutsideWarning,
            stacklevel=5,
        )
    return solutions
