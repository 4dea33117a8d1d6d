"""One registry for all that is found by being in its folder: problems, solvers, spaces, instances,
encoders, networks, pictures and experiments.

The rule is the same for all: a thing is a file in the folder, called by the file's name (`-` may
stand for `_`), and holds one class of its kind. What takes several files is a folder inside, named
like the beginning of what is in it: `maxcut/maxcut.py`, `sparse/sparse_half.py`. Other files there,
`base.py`, and files that begin with `_` are shared.
"""

import importlib
import json
import pkgutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import lru_cache, partial
from types import ModuleType, NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from proxlearn.common.checks import said
from proxlearn.common.contents import brief
from proxlearn.errors import FileError, InputError, UnknownNameError

LARGEST = 1e30  # of the numbers in a description: even their squares are finite
WORDS: dict[Any, str] = {float: "a number", int: "a whole number", bool: "True or False"}
Kind = TypeVar("Kind")


class Described:
    """What an operator file can name: by its `kind`, which is its file's name where it is part of
    proxlearn and else that of its class, and by `settings` that make the same value again."""

    kind: str

    def __init_subclass__(cls, **more: Any):
        super().__init_subclass__(**more)
        package, _, file = cls.__module__.rpartition(".")
        ours = package.startswith("proxlearn.")
        cls.kind = vars(cls).get("kind", file if ours else cls.__name__)

    def settings(self) -> dict[str, Any]:
        """Keyword arguments, as JSON has them, that make it again: a dataclass's fields."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # pyright: ignore[reportArgumentType]

    def describe(self) -> dict[str, Any]:
        """Its kind and settings, for a file."""
        return {"kind": self.kind, **self.settings()}

    @classmethod
    def rebuilt(cls, settings: dict[str, Any], rebuild: Callable[[dict[str, Any]], Any]) -> Any:
        """The value with these settings; `rebuild` makes one of a description inside them."""
        return cls(**settings)


class Registry(Generic[Kind]):
    """The things of one kind that live in a package."""

    def __init__(self, what: str, package: str, kind: type[Kind], shared: tuple[str, ...] = ()):
        self.what, self.package, self.kind = what, package, kind
        self.shared = {"base", *shared}

    def files(self) -> dict[str, str]:
        """The module of each thing, by its name."""
        return dict(sorted(self._found(self.package).items()))

    def _found(self, package: str, folder: str = "", beginning: str = "") -> dict[str, str]:
        """What is in a package, or in a folder inside, which is not imported for it."""
        found: dict[str, str] = {}
        folders = [folder] if folder else importlib.import_module(package).__path__
        for each in pkgutil.iter_modules(folders):
            path = f"{package}.{each.name}"
            if each.ispkg:
                inside = f"{each.module_finder.path}/{each.name}"  # pyright: ignore[reportAttributeAccessIssue]
                found |= {} if beginning else self._found(path, inside, each.name)
            elif each.name.startswith(beginning) and not each.name.startswith("_"):
                found[each.name] = path
        return {name: path for name, path in found.items() if name not in self.shared}

    def names(self) -> list[str]:
        """The names of all of them."""
        return list(self.files())

    def module(self, name: str) -> ModuleType:
        """The file of a thing."""
        found = self.files().get(name.replace("-", "_")) if isinstance(name, str) else None
        if found is None:
            given = name if isinstance(name, str) else said(name)
            raise UnknownNameError(self.what, given, self.names())
        return importlib.import_module(found)

    def __getitem__(self, name: str) -> type[Kind]:
        return only_class(self.module(name), self.kind)

    def rebuild(self, description: dict[str, Any], own: Any = None) -> Kind:
        """What `describe()` wrote. A kind that is not part of proxlearn has to be the user's `own`:
        the class of it, or such a value."""
        settings, rebuild = dict(description), partial(self.rebuild, own=own)
        kind = str(settings.pop("kind"))
        if kind.lower() in self.names():
            known: Any = self[kind.lower()]
            check_types(known, settings)
            return known.rebuilt(settings, rebuild)
        keyword = self.what.split()[-1]
        if own is None or own.kind != kind:
            raise FileError(
                f"The {self.what} {kind!r} of this file is not part of proxlearn (it has "
                f"{', '.join(self.names())}): pass the one it was made with, {keyword}=..."
            )
        made: Any = own.rebuilt(settings, rebuild) if isinstance(own, type) else own
        if json.loads(json.dumps(made.describe())) != description:
            raise FileError(
                f"The {self.what} of this file is {description}, but {keyword}= is "
                f"{made.describe()}: pass the one it was made with."
            )
        return made


def check_types(kind: type, settings: dict[str, Any]) -> None:
    """An error where a setting, as JSON has it, is not of the type that the class takes."""
    hints = _hints(kind)
    for name, value in settings.items():
        hint = hints.get(name, Any)
        if not _is_of(value, hint):
            expected = f"must be {WORDS[hint]}, not" if hint in WORDS else "cannot be"
            raise InputError(f"{brief(name)} of {kind.__name__} {expected} {brief(repr(value))}.")


@lru_cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind.__init__)


def _is_of(value: Any, hint: Any) -> bool:
    """Whether a value of JSON is of a type. Only numbers, text and lists of them are checked here;
    other types are left to the class that takes them."""
    inside = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(_is_of(value, each) for each in inside)
    if get_origin(hint) in (list, tuple, Sequence):
        return isinstance(value, list | tuple) and all(_is_of(each, inside[0]) for each in value)
    if hint is float:
        return is_usable_number(value)
    if hint is int:
        return type(value) is int and abs(value) <= sys.maxsize
    if hint in (bool, str, NoneType):
        return type(value) is hint
    return True


def is_usable_number(value: Any) -> bool:
    """Whether a value of JSON is a number that can be computed with, not NaN."""
    return type(value) in (int, float) and abs(value) <= LARGEST


def only_class(module: ModuleType, kind: type[Kind]) -> type[Kind]:
    """The one class of a kind that a module defines; what it imports does not count."""
    classes = [e for e in vars(module).values() if isinstance(e, type) and issubclass(e, kind)]
    defined = [each for each in classes if each.__module__ == module.__name__]
    if len(defined) != 1:
        raise FileError(
            f"{module.__file__} defines {len(defined)} subclasses of {kind.__name__}; such a file "
            "has one."
        )
    return defined[0]
