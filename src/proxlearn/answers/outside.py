"""What is said of solutions: a line to the log, and a warning where all of an instance's left the
space, since there is then no best value."""

import warnings

from proxlearn.answers.solutions import Solutions
from proxlearn.common.log import logger
from proxlearn.errors import OutsideWarning


def logged(solutions: Solutions) -> Solutions:
    """The same solutions, told to the log."""
    of = f"Solved {solutions.problem.name!r}" if solutions.problem else "Solved"
    logger.info("%s: %r", of, solutions)
    return solutions


def warn_where_none_is_inside(solutions: Solutions) -> Solutions:
    """The same solutions; a warning where there is an instance with none inside the space."""
    gone, count = int((~solutions.inside.any(1)).sum()), solutions.points.shape[1]
    if gone:
        of = "" if len(solutions) == 1 else f" of {gone} of {len(solutions)} instances"
        warnings.warn(
            f"None of the {count:,} solutions{of} is inside {solutions.space}, so there is no best "
            "one: they followed the objective out of an open box, or are not numbers. If bounds "
            "are part of the problem, say Box(..., open=False); else make the box larger.",
            OutsideWarning,
            stacklevel=4,
        )
    return solutions
