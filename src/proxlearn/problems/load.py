"""A problem by its name, or from a Python file of one's own."""

import importlib.util
from pathlib import Path
from types import ModuleType

from proxlearn.common.checks import path_of, said
from proxlearn.common.registry import Registry, only_class
from proxlearn.errors import FileError, InputError, UnknownNameError
from proxlearn.problems.base import Problem
from proxlearn.spaces import Space

problems = Registry("problem", "proxlearn.problems", Problem, shared=("load", "objectives"))


def names() -> list[str]:
    """The names of the built-in problems."""
    return [name.replace("_", "-") for name in problems.names()]


def problem(name: str) -> Problem:
    """A problem by name, or from the path of a Python file that defines one."""
    if not isinstance(name, str):
        raise InputError(f"A problem is a name or a path, 'conic' or 'mine.py', not {said(name)}.")
    if name.replace("_", "-") not in names() and not name.endswith(".py"):
        raise UnknownNameError("problem", name, names())
    module = _module_at(Path(name)) if name.endswith(".py") else problems.module(name)
    made = only_class(module, Problem)()
    if not isinstance(getattr(made, "space", None), Space):
        raise FileError(f"{module.__file__} needs a space, such as space = px.Box(-5, 5, dim=2).")
    return made


def _module_at(path: Path) -> ModuleType:
    path = path_of(path, "file of a problem")
    spec = importlib.util.spec_from_file_location(path.stem, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise FileError(f"There is no problem file at {path}.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a user's file may do
        raise FileError(f"The problem file {path} cannot be run: {error!r}.") from error
    return module
