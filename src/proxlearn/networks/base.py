"""What every network promises. An `Architecture` is a frozen value, the sizes of a network, which
an operator's file names; it builds a `Network`, the module with the weights.

The work on a tau is done in two stages, each giving any tree of tensors (instances first): `encode`
looks at what is observed of tau, once; `prepare` adds lam, once for each lam. `forward` then does
the work of every point, and may look at what is prepared where the point is.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import fields
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from proxlearn.common.batch import Batch, Points, Values, leaves
from proxlearn.common.checks import check_fields
from proxlearn.common.registry import Described
from proxlearn.errors import UnknownNameError
from proxlearn.gpu.kernels import Compiling
from proxlearn.instances import Instances
from proxlearn.networks.encoders.base import Encoder
from proxlearn.spaces import Space

Lams = tuple[float, float]  # a range of proximal weights
Code = Batch  # of a tau: any tree of tensors (i, ...)
Prepared = Batch  # the same with lam


def place_of_lam(lam: Float[Tensor, " i"], lams: Lams | None) -> Float[Tensor, " i"]:
    """Where lam is in the trained range, -1 to 1 by orders of magnitude; 0 where there is one."""
    if lams is None:
        return torch.zeros_like(lam)
    low, high = map(math.log, lams)
    return (2 * lam.log() - (low + high)) / (high - low)


class Network(nn.Module):
    """A map of points in unit coordinates, given what is prepared of tau."""

    architecture: "Architecture"
    precision: str = "fp32"  # of matrix products, for networks with kernels of their own
    code_size: int | None = None  # where `prepare` gives a "code" (i c): arrival is taught from it
    rates: bool = False  # whether it can tell how good a point is
    settles: bool = False  # whether points stay at the optima that it leads them to
    kernels: bool = True  # whether it may use kernels of its own: not until they are loaded

    def encode(self, observed: Batch) -> Code:
        """What is known of tau without lam: the costly part, such as a feature map of a picture."""
        return observed

    @abstractmethod
    def prepare(self, code: Code, lam: Float[Tensor, " i"]) -> Prepared:
        """All else that depends on tau and lam alone."""

    @abstractmethod
    def forward(self, x: Points, prepared: Prepared) -> Points:
        """Where the points go."""

    def rated(self, x: Points, prepared: Prepared) -> tuple[Points, Values | None]:
        """The same, and how good each point is as an answer where it is, as `Problem.quality` has
        it: the logit of a number from 0 to 1; None where the network does not rate points."""
        return self(x, prepared), None

    def compile_kernels(self, shape: tuple[int, int, int]) -> Compiling | None:
        """Have the kernels of its own that points of a shape (i, n, d) take compiled and loaded,
        while it is used without them; None where it has none for these."""
        return None

    @property
    def rough_at_first(self) -> bool:
        """Whether a CPU may compute in bf16 up to the last application."""
        return False

    def widest(self, dim: int) -> int:
        """How many numbers its widest layer has for a point with so many coordinates, about."""
        return 256

    def lam_scale(self, observed: Batch) -> Float[Tensor, " i"]:
        """What lam is to be multiplied by where it is used on each instance's objective itself: 1,
        unless the network brings instances to a common scale, and lam is relative to that."""
        first = leaves(observed)[0]
        return torch.ones(len(first), device=first.device)


class Architecture(Described, ABC):
    """The sizes of a network: a frozen dataclass with a help text under each field."""

    exact: ClassVar[bool] = False  # whether its products are to be in full precision by default
    encodes: ClassVar[bool] = True  # whether it works on an encoder's code

    def __post_init__(self):
        check_fields(self)

    def refuses(self, space: Space, instances: Instances) -> str | None:
        """Why it cannot be of these; None where it can."""
        return None

    @abstractmethod
    def build(
        self, space: Space, instances: Instances, lams: Lams | None, encoder: Encoder | None
    ) -> Network:
        """The module, its weights drawn anew. `lams` is the range that lam is drawn from, None
        where it is one number; `encoder` is there where the architecture `encodes`."""

    @classmethod
    def rebuilt(cls, settings, rebuild):
        known = [field.name for field in fields(cls)]  # pyright: ignore[reportArgumentType]
        for name in settings:
            if name not in known:
                raise UnknownNameError("size of a network", name, known)
        return cls(**settings)
