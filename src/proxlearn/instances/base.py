"""What every kind of instance promises."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from proxlearn.common.arrays import read_npy
from proxlearn.common.batch import Batch, leaves, tree_map
from proxlearn.common.registry import Described
from proxlearn.errors import InputError


class Instances(Described, ABC):
    """The taus of a family, as an operator sees them: a frozen dataclass whose fields go into the
    operator's file, so that reading and checking a tau needs no problem."""

    any_size = False  # whether instances, and with them the space, may be of any size
    encoder: str | None = None  # which of `networks.encoders` makes a code of one; None: nothing
    numbers: int | None = None  # that a tau is given as; None where it is something else

    @abstractmethod
    def batch(self, tau: Any) -> Batch:
        """One instance or many, as a user gives them: checked, and as tensors (i, ...)."""

    def read(self, text: str) -> Batch:
        """One instance from the command line: a path of a .npy, unless a kind reads others."""
        words = self.words
        if Path(text).suffix != ".npy":
            raise InputError(f"--tau must be the path of a .npy file with {words}, not {text}.")
        return self.batch(read_npy(text, words))

    def together(self, every: Sequence[Batch]) -> Batch:
        """Several batches as one."""
        if len({tuple(each.shape[1:] for each in leaves(one)) for one in every}) > 1:
            raise InputError("The taus are of different sizes: give those of one size.")
        return tree_map(lambda *each: torch.cat(each), *every)

    @property
    def words(self) -> str:
        """What a tau is, in an error's words."""
        return f"a {self.kind}"

    def parts(self, observed: Batch) -> int | None:
        """How many parts (such as vertices) these instances have, where that differs from one batch
        to the next and the space with it; None where all are alike."""
        return None

    def knows(self, observed: Batch) -> Bool[Tensor, " i"]:
        """Whether each is like those an operator is trained on; True where that cannot be told."""
        first = leaves(observed)[0]
        return torch.ones(len(first), dtype=torch.bool, device=first.device)

    def warn_of_unknown(self, observed: Batch) -> None:
        """A `RangeWarning` where some are unlike those in training."""
