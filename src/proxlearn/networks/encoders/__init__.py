"""Encoders: modules that turn what is observed of tau into a code (instances, size).

Each encoder is one file here. It also owns the form in which a user passes tau: `batch` takes one
instance or many, checks them, and returns the batch that `forward` takes. An operator file names
its encoder and holds its settings, so that loading it needs no problem code.
"""

import importlib
import pkgutil
from abc import abstractmethod
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from proxlearn.common.batch import Batch, leaves
from proxlearn.errors import FileError, InputError
from proxlearn.spaces import Space


class Encoder(nn.Module):
    """A module with a name, settings that rebuild it, and a say in what a tau looks like."""

    kind: ClassVar[str]
    size: int  # the length of the code
    any_size: bool = False  # whether instances, and with them the space, may be of any size

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Keyword arguments (JSON) that make the same module again, weights apart."""

    @property
    def words(self) -> str:
        """What a tau is, in an error's words."""
        return f"a {self.kind} of size {self.size}"

    @abstractmethod
    def batch(self, tau: Any) -> Batch:
        """One instance, or many, from a user: checked, as a batch on the CPU or where it is."""

    @abstractmethod
    def forward(self, observed: Batch) -> Float[Tensor, "i c"]:
        """The code of every instance."""

    def read(self, text: str) -> Batch:
        """One instance from what is written on the command line, such as the path of a file."""
        raise InputError(f"A {self.kind} takes no numbers as tau: leave --tau out.")

    def space(self, observed: Batch) -> Space | None:
        """The space of these instances where it depends on them; None: it is the operator's."""
        return None

    def lam_scale(self, observed: Batch) -> Float[Tensor, " i"]:
        """What lam is to be multiplied by where it is used on each instance's objective itself; 1
        unless the encoder brings instances to a common scale, and lam is relative to that."""
        first = leaves(observed)[0]
        return torch.ones(len(first), device=first.device)

    def knows(self, observed: Batch) -> Bool[Tensor, " i"]:
        """Whether each instance is like those it was trained on; True where it cannot tell."""
        first = leaves(observed)[0]
        return torch.ones(len(first), dtype=torch.bool, device=first.device)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, **self.settings()}


def encoder_from(description: dict[str, Any], own: Encoder | None = None) -> Encoder:
    """Rebuild an encoder from what `Encoder.describe` wrote; its weights are loaded after.

    A user's `own` encoder is taken where its kind is not one of the library's.
    """
    settings = dict(description)
    kind = settings.pop("kind")
    known = [module.name for module in pkgutil.iter_modules(__path__)]
    if kind not in known and own is not None:
        return own
    if kind not in known:
        raise FileError(
            f"This operator's encoder {kind!r} is not part of proxlearn (it has "
            f"{', '.join(known)}): pass the module it was trained with, px.load(path, encoder=...)."
        )
    module = importlib.import_module(f"{__name__}.{kind}")
    return next(
        each(**settings)
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Encoder) and vars(each).get("kind") == kind
    )
