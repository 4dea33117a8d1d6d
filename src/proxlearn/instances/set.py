"""tau is a set of vectors, of any number and in any order."""

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from proxlearn.common.checks import floats, said, shape_of
from proxlearn.common.contents import json_of, text_of
from proxlearn.errors import FileError, InputError, RangeWarning
from proxlearn.instances.base import Instances
from proxlearn.instances.vector import warn_outside
from proxlearn.spaces import Box


@dataclass(frozen=True)
class Sets(Instances):
    """Sets of vectors between `low` and `high`, `most` of them at most in training.

    A batch is a tensor (i, m w): a row for each set, its vectors one after the other, padded with
    absent vectors until all rows are equally long; `members` takes it apart. A vector is there if
    its number `switch` is positive. Where no number says that (`switch` is None), all vectors that
    are given are there, and in a batch each has one more number, 1 or 0.
    """

    encoder = "set"
    low: tuple[float, ...]
    high: tuple[float, ...]
    most: int
    switch: int | None = None

    @classmethod
    def rebuilt(cls, settings, rebuild):
        low, high, most, switch = (settings[k] for k in ("low", "high", "most", "switch"))
        return cls(tuple(low), tuple(high), most, switch)

    @cached_property
    def range(self) -> Box:
        """Where the vectors of training are."""
        return Box(self.low, self.high)

    @property
    def words(self):
        return f"a set of vectors of {len(self.low)} numbers"

    @property
    def numbers(self):
        return None if self.switch is None else self.most * len(self.low)

    @property
    def _width(self) -> int:
        """How many numbers a vector has in a batch."""
        return len(self.low) + (self.switch is None)

    def members(
        self, tau: Float[Tensor, "i w"]
    ) -> tuple[Float[Tensor, "i m p"], Bool[Tensor, "i m"]]:
        """The vectors of every set of a batch, and which of them are there."""
        rows = tau.unflatten(1, (-1, self._width))
        if self.switch is None:
            return rows[..., :-1], rows[..., -1] > 0
        return rows, rows[..., self.switch] > 0

    @property
    def features(self) -> int:
        """How many numbers a network sees of a vector."""
        return 3 * len(self.low)

    def seen(self, tau: Float[Tensor, "i w"]) -> tuple[Float[Tensor, "i m f"], Bool[Tensor, "i m"]]:
        """What a network sees of every vector, and which are there: each number brought to [-1, 1]
        by the trained range, with the sine and cosine that take the range once around, so that the
        two ends of an angle are one."""
        members, there = self.members(tau)
        unit = self.range.to_unit(members)
        around = math.pi * unit
        return torch.cat((unit, around.sin(), around.cos()), -1), there

    def batch(self, tau: Any) -> Float[Tensor, "i w"]:
        """A set (members, p), several of one size (instances, members, p), a list of sets of any
        sizes, or rows as a batch has them."""
        if tau is None:
            raise InputError(f"This is a family of objectives: give tau, {self.words}.")
        if isinstance(tau, list | tuple) and len({shape_of(each) for each in tau}) > 1:
            return self.together([self.batch(each) for each in tau])
        rows = self._rows(floats("tau", tau, self.words))
        return self._padded(rows, 2 * self._width)  # else a row could be taken for a vector

    def together(self, every):
        longest = max(rows.shape[1] for rows in every)
        return torch.cat([self._padded(rows, longest) for rows in every])

    def _padded(self, rows: Float[Tensor, "i w"], length: int) -> Float[Tensor, "i v"]:
        """Rows padded to this length by copies of their first vectors, marked as absent, for which
        an objective is finite, too."""
        first = rows[:, : self._width].clone()
        first[:, -1 if self.switch is None else self.switch] = 0
        missing = max(0, length - rows.shape[1]) // self._width
        return torch.cat((rows, first.repeat(1, missing)), 1)

    def _rows(self, tau: Tensor) -> Float[Tensor, "i w"]:
        p, given = len(self.low), tuple(tau.shape)
        tau = tau[None] if tau.ndim == 1 or given[1:] == (p,) else tau
        if tau.ndim == 3 and tau.shape[2] == p:
            there = tau.new_ones(*tau.shape[:2], self._width - p)
            tau = torch.cat((tau, there), -1).flatten(1)
        if tau.ndim != 2 or tau.numel() == 0 or tau.shape[1] % self._width:
            raise InputError(
                f"tau has shape {given}; expected {self.words}, (members, {p}) with at least "
                f"one member, several of one size, (instances, members, {p}), or a list of sets."
            )
        return tau

    def read(self, text: str) -> Any:
        """A set from the command line: a list of vectors as JSON, or a .json or .npy with it, or
        numbers separated by commas, one vector after the other."""
        if Path(text).suffix == ".npy":
            return super().read(text)
        written = text_of(text, "set of vectors") if Path(text).suffix == ".json" else text
        listed = written if written.lstrip().startswith("[") else f"[{written}]"
        try:
            given = json_of(listed.encode(), text)
        except FileError:
            raise InputError(
                f"--tau must be {self.words}, as in [[0.1, 0.2], [0.3, 0.4]], or the path of a "
                f".json or .npy file with one, not {said(text)}."
            ) from None
        return self.batch(given)

    def knows(self, observed):
        members, there = self.members(observed)
        known = (self.range.contains(members) | ~there).all(1)
        return known & (there.sum(1) <= self.most)

    def warn_of_unknown(self, observed):
        members, there = self.members(observed)
        outside = there & ~self.range.contains(members)
        warn_outside(self.range, members[outside], int(there.sum()), "vector")
        if (larger := int((there.sum(1) > self.most).sum())) > 0:
            warnings.warn(
                f"{larger} of {len(observed)} sets have more than {self.most} vectors, the most "
                "that operators are trained on: their solutions are a guess.",
                RangeWarning,
                stacklevel=3,
            )
