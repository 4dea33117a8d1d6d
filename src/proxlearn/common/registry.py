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
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from types import ModuleType
from typing import Any, Generic, TypeVar

from proxlearn.errors import FileError, UnknownNameError

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
            raise UnknownNameError(self.what, str(name), self.names())
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
