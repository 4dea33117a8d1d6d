"""Has a point arrived? A small network beside the operator's says how far above the best value a
point is, and how sure it is of that; no objective is needed to ask it.

It is told of the point and where the operator takes it next. That step tells more than the point:
of a proximal step, `lam (x - Phi(x))` is the gradient of the objective at `Phi(x)`.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from proxlearn.common.batch import Flags, Points, Values
from proxlearn.networks.base import Network
from proxlearn.networks.coupling import REACH, Block, Coupling, two_layers

FLOOR = 1e-8  # lower levels are all alike
SIZES = Coupling(blocks=1, width=64, shared=128)
DOWN = -7.7  # a level that low is as good as the best
LEAST_FALL = 0.3  # of the level, for a point to go on
SURE = 1.0  # times the error that the fall has to be
PATIENCES = (2, 4, 8)  # applications without such a fall, and a point has arrived: one of these


class Arrival(nn.Module):
    """The level of a point and its error, both in powers of ten."""

    def __init__(self, told: int, code: int, sizes: Coupling = SIZES, patience: int = PATIENCES[0]):
        """told: how many numbers it is told of a point; code: those of tau."""
        super().__init__()
        self.sizes, self.patience = sizes, patience
        self.of_x = two_layers(told, sizes)
        self.of_tau = two_layers(code, sizes)
        self.block = Block(1, sizes)

    def describe(self) -> dict[str, Any]:
        """For an operator's file: what to make it of again."""
        return self.sizes.settings() | {"patience": self.patience}

    @staticmethod
    def of(network: Network, dim: int, about: dict[str, Any] | None = None) -> "Arrival":
        """One for an operator's network on a space of so many coordinates, its weights drawn anew;
        `about` is such a description."""
        sizes: dict[str, Any] = dict(about) if about else SIZES.settings()
        patience = sizes.pop("patience", PATIENCES[0])
        return Arrival(2 * dim + 1, network.code_size or 0, Coupling(**sizes), patience)

    def prepare(self, code: Float[Tensor, "i c"]) -> Float[Tensor, "i 1 s"]:
        """Everything that depends on tau alone."""
        return self.block.from_tau(self.of_tau(code))[:, None]

    def forward(self, told: Float[Tensor, "i n f"], prepared: Tensor) -> tuple[Values, Values]:
        """Level and log(error) of points that it is told this of."""
        level, log_error = self.block(self.of_x(told), prepared).unbind(-1)
        return level - 3, log_error.clamp(-5, 2)  # it begins at the middle of the range


def told_of(x: Points, y: Points) -> Float[Tensor, "i n f"]:
    """What it is told of x, which the operator takes to y, both in unit coordinates: where it is,
    and which way and how far it goes."""
    step = y - x
    length = step.norm(dim=-1, keepdim=True)
    told = (x.clamp(-REACH, REACH), step / (length + 1e-6), (length + 1e-5).log10() / 2 + 1)
    return torch.cat(told, -1)


def falls(level: Values, new: Values, error: Values) -> Flags:
    """Whether a new level is so much lower that it cannot be an error."""
    return level - new > (SURE * error).clamp(min=LEAST_FALL)


def levels(values: Float[Tensor, "k i n"]) -> Float[Tensor, "k i n"]:
    """What is to be predicted: log10 of how far a value is above the best of its instance, as a
    share of how far the median start (k = 0) is. Infinite values count as a thousand times that."""
    best = values.amin((0, 2))[:, None]
    usual = (values[0].median(1, keepdim=True).values - best).clamp(min=1e-30)
    return (((values - best) / usual).clamp(0, 1e3) + FLOOR).log10()
