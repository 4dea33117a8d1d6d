"""What can go wrong, each as a sentence: what was given, what is expected, what to do."""

import difflib
from collections.abc import Iterable


class ProxlearnError(Exception):
    """The family of every error that proxlearn raises on purpose."""


class InputError(ProxlearnError, ValueError):
    """A tau, a number of starts, a space or a setting that cannot be used."""


class ObjectiveError(ProxlearnError, ValueError):
    """An objective that returns the wrong shape, a non-number, or has no gradient."""


class FileError(ProxlearnError, OSError):
    """A file that cannot be read as what it should be, or a folder that cannot be written."""


class TrainingError(ProxlearnError, RuntimeError):
    """Training that cannot go on, such as a loss that stopped being a number."""


class ProcessError(ProxlearnError, RuntimeError):
    """One of several processes on a job that was lost, so that the others cannot go on."""


class UnknownNameError(ProxlearnError, LookupError):
    """A name that is not there, with the nearest that is."""

    def __init__(self, what: str, name: str, known: Iterable[str]):
        name, known = str(name)[:80], sorted(known)
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        super().__init__(f"There is no {what} {name!r}. {hint}Known: {', '.join(known)}.")


class SpeedWarning(UserWarning):
    """Something that works, but more slowly than it could."""


class RangeWarning(UserWarning):
    """A tau outside the range an operator was trained on: its answers there are a guess."""


class PoorOperatorWarning(UserWarning):
    """An operator that its own training judged to be poor: its answers are not to be trusted."""


class OutsideWarning(UserWarning):
    """Solutions of which none is inside the space: there is no best value among them."""


class NotFiniteWarning(UserWarning):
    """Solutions at which the objective is NaN or infinite: they are no optima."""


class LeftOutWarning(UserWarning):
    """Files, or parts of files, that could not be used and were left out."""
