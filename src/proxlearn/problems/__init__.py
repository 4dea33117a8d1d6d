"""The built-in problems. A file here is a problem: it holds one `Problem` subclass whose `name` is
how users call it, with `-` for the file's `_`. Files whose name begins with `_` are shared. A path
to a file of one's own works wherever a name does.
"""

import importlib
import importlib.util
import pkgutil
from pathlib import Path
from types import ModuleType

from proxlearn.errors import FileError, UnknownNameError
from proxlearn.problem import Problem
from proxlearn.spaces import Space


def names() -> list[str]:
    """The names of the built-in problems."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name.replace("_", "-") for name in found if not name.startswith("_"))


def problem(name: str) -> Problem:
    """A problem by name, or from the path of a Python file that defines one."""
    if name.endswith(".py"):
        return _only_problem(_module_at(Path(name)))
    if name not in names():
        raise UnknownNameError("problem", name, names())
    return _only_problem(importlib.import_module(f"{__name__}.{name.replace('-', '_')}"))


def _module_at(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise FileError(f"There is no problem file at {path}.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a user's file may do
        raise FileError(f"The problem file {path} cannot be run: {error!r}.") from error
    return module


def _only_problem(module: ModuleType) -> Problem:
    kinds = [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, Problem)
        and each.__module__ == module.__name__
    ]
    if len(kinds) != 1:
        raise FileError(
            f"{module.__file__} defines {len(kinds)} subclasses of Problem; a problem file has one."
        )
    made = kinds[0]()
    if not isinstance(getattr(made, "space", None), Space):
        raise FileError(f"{module.__file__} needs a space, such as space = px.Box(-5, 5, dim=2).")
    return made
