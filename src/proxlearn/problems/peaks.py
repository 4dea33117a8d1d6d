"""Up to eight peaks of random place, height and shape: a landscape whose optima are known."""

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.instances.set import Sets
from proxlearn.problems.base import Problem
from proxlearn.spaces import Box

PEAKS = 8
# Of one peak: its summit (2), its height if that is positive, its two widths and their direction.
LOW, HIGH = (0.1, 0.1, -1.0, 0.05, 0.05, 0.0), (0.9, 0.9, 1.0, 0.2, 0.2, 3.14159)
FIRST = (0.1, 0.1, 0.0, 0.05, 0.05, 0.0)  # the first one is always there


class Peaks(Problem):
    """`f(x) = -max_k h_k / (1 + (x - c_k)' W_k (x - c_k))` over the peaks k that are there.

    W_k has the eigenvalues `1/w^2` of its two widths. tau = any number of peaks (c_1, c_2, s, w_1,
    w_2, angle), as a list or in a row; one with s > 0 is there, with `h = (1 + s) / 2`.
    """

    name = "peaks"
    space = Box(0.0, 1.0, dim=2, open=True)  # all summits are well inside, and the plane goes on
    parameters = Box(FIRST + LOW * (PEAKS - 1), HIGH * PEAKS)
    instances = Sets(LOW, HIGH, most=PEAKS, switch=2)
    architecture = "attending"
    # Exact proximal steps with it lose one peak in eight, and 100 of them take all but one point in
    # 500 to a peak; with 100 they lose one peak in a hundred, and take several times as many.
    lam = 15.0

    def objective(self, x, tau):
        return -_hills(x, tau).amax(-1)

    @property
    def drawn_from(self):
        return "one to eight peaks of random places, heights and widths"

    def truth(self, tau):
        """The summits that no other peak covers: going to its summit, a peak only ever rises, so
        nothing else is a minimum."""
        summits, heights = tau.unflatten(-1, (-1, 6))[..., :2], _heights(tau)
        covered = _hills(summits, tau).amax(-1) > heights * (1 + 1e-6)
        return [c[keep] for c, keep in zip(summits, (heights > 0) & ~covered)]


def _heights(tau: Float[Tensor, "i p"]) -> Float[Tensor, "i k"]:
    strength = tau.unflatten(-1, (-1, 6))[..., 2]
    return torch.where(strength > 0, (1 + strength) / 2, 0.0)


def _hills(x: Float[Tensor, "i n 2"], tau: Float[Tensor, "i p"]) -> Float[Tensor, "i n k"]:
    """How high every peak is at every point."""
    summit, _, width, angle = tau.unflatten(-1, (-1, 6)).split((2, 1, 2, 1), -1)
    away = x[:, :, None] - summit[:, None]
    (u, v), cos, sin = away.unbind(-1), angle[:, None, :, 0].cos(), angle[:, None, :, 0].sin()
    along, across = cos * u + sin * v, cos * v - sin * u
    first, second = width[:, None].unbind(-1)
    return _heights(tau)[:, None] / (1 + (along / first).square() + (across / second).square())
