"""A learned particle swarm, which the paper compares with in D.3: "Learning to Optimize in Swarms"
(Cao, Chen, Wang and Shen, NeurIPS 2019).

Particles move in populations of four. A small LSTM, the same for every coordinate, says how: it
sees the gradient, its momentum, the way to the particle's own best and that to better neighbours,
weighed by an attention within the particle (over these features) and one between particles.
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from proxlearn.common.batch import Points, Values
from proxlearn.common.module_weights import built, filled, readable
from proxlearn.common.weight_files import read_weights, write_weights
from proxlearn.errors import InputError
from proxlearn.gpu.devices import pick_device
from proxlearn.problems.base import Problem
from proxlearn.spaces import Space, space_from

VERSION = 1  # of its file
POPULATION = 4
FEATURES = 4  # gradient, momentum, own best, better neighbours
DECAY = 0.9  # of the momentum
SMALLEST = 10.0  # features below e^-10 count as nothing
FIRST_STEP = -3.0  # the logarithm of a step's length at first, in half-widths of the space

Memory = Float[Tensor, "i n d h"]  # h numbers for each coordinate of each particle
Ways = Float[Tensor, "i r p p d"]  # from every particle to each of its population


class State(NamedTuple):
    """Where the particles are and what they remember."""

    x: Points
    momentum: Points
    best: Points  # the best place inside the space that each has been to
    lowest: Values  # the value there
    hidden: Memory
    cell: Memory


class Swarm(nn.Module):
    """The network that moves particles, and what it takes to use it.

    It works in units of the space (half a box's width) and of the objective: `height`, the standard
    deviation of its values over the space. n, the number of particles, is a multiple of four.
    """

    def __init__(
        self, space: Space, height: float, size: int = 20, provenance: dict[str, Any] | None = None
    ):
        super().__init__()
        self.space, self.height, self.size, self.provenance = space, height, size, provenance or {}
        self.embedding = nn.Parameter(torch.randn(FEATURES, 2, size) / math.sqrt(2))
        self.offset = nn.Parameter(torch.zeros(FEATURES, size))
        self.memory = nn.Linear(size, size)
        self.score = nn.Linear(size, 1, bias=False)
        self.query, self.key = nn.Linear(size, size), nn.Linear(size, size)
        self.share = nn.Parameter(torch.tensor(0.1))  # of the neighbours beside the own features
        self.width = nn.Parameter(torch.tensor(0.0))  # of the kernel between particles, its log
        self.lstm = nn.LSTMCell(size, size)
        self.move = nn.Linear(size, 2)
        with torch.no_grad():
            self.move.weight.mul_(0.1)
            self.move.bias.copy_(torch.tensor([0.0, FIRST_STEP]))

    def __repr__(self) -> str:
        about = self.provenance.get("problem"), self.provenance.get("steps")
        return "Swarm(trained for {!r} in {} steps)".format(*about)

    @property
    def unit(self) -> Float[Tensor, " d"]:
        """The length of every coordinate's unit."""
        one = torch.ones(self.space.dim, device=self.share.device)
        return self.space.from_unit(one) - self.space.from_unit(0 * one)

    def begin(self, x: Points) -> State:
        """Particles that have not moved yet."""
        memory = x.new_zeros(*x.shape, self.size)
        lowest = torch.full_like(x[..., 0], torch.inf)
        return State(x, torch.zeros_like(x), x, lowest, memory, memory)

    def forward(self, state: State, values: Values, slope: Points) -> State:
        """Move every particle once, given the objective's values and gradients where they are."""
        x, unit = state.x.detach(), self.unit
        slope = (slope * unit / self.height).nan_to_num(0.0, 0.0, 0.0)
        momentum = torch.lerp(slope, state.momentum, DECAY)
        best, lowest = best_so_far(self.space, state, values)
        apart, closer = self._neighbours(x / unit, values)
        attraction = (closer[..., None] * apart).sum(-2).flatten(1, 2)
        features = torch.stack((slope, momentum, (best - x) / unit, attraction), -1)
        context = self._between(self._within(log_and_sign(features), state.hidden), apart)
        before = state.hidden.flatten(0, 2), state.cell.flatten(0, 2)
        after = self.lstm(context.flatten(0, 2), before)
        hidden, cell = (each.unflatten(0, x.shape) for each in after)
        direction, length = self.move(hidden).unbind(-1)
        step = unit * direction.tanh() * length.clamp(max=0.0).exp()
        return State(self.space.retract(state.x + step), momentum, best, lowest, hidden, cell)

    def _neighbours(self, x: Points, values: Values) -> tuple[Ways, Float[Tensor, "i r p p"]]:
        """The way to each neighbour, and how much it draws: better ones do, near ones more."""
        x, values = x.unflatten(1, (-1, POPULATION)), values.unflatten(1, (-1, POPULATION))
        apart = x[:, :, None] - x[:, :, :, None]
        better = values[:, :, None] < values[:, :, :, None]
        return apart, better * (-apart.square().sum(-1)).exp()

    def _within(self, seen: Float[Tensor, "i n d f 2"], hidden: Memory) -> Memory:
        """Attention over the features of a particle, asked by what it remembers."""
        embedded = torch.einsum("indfk,fkh->indfh", seen, self.embedding) + self.offset
        asked = self.score((embedded + self.memory(hidden)[..., None, :]).tanh())
        return (asked.softmax(-2) * embedded).sum(-2)

    def _between(self, context: Memory, apart: Ways) -> Memory:
        """Attention over the particles of a population, times how near they are."""
        every = context.unflatten(1, (-1, POPULATION))
        whole = every.mean(-2)  # of all coordinates
        alike = self.query(whole) @ self.key(whole).mT / math.sqrt(self.size)
        near = (-apart.square().sum(-1) * self.width.exp()).exp()
        mixed = torch.einsum("irpq,irqdh->irpdh", alike.softmax(-1) * near, every)
        return context + self.share * mixed.flatten(1, 2)

    def check_fits(self, problem: Problem) -> None:
        """An error that says why, if this swarm cannot be of the problem."""
        if self.space.opened != problem.space.opened:
            raise InputError(
                f"This swarm was trained for {self.provenance.get('problem')!r} on {self.space}; "
                f"{problem.name!r} lives on {problem.space}: give a swarm trained for it."
            )

    def save(self, path: str | Path) -> Path:
        """Write one safetensors file: weights, and a header with the rest."""
        header = {"space": self.space.describe(), "height": self.height, "size": self.size}
        header["provenance"] = self.provenance
        return write_weights(path, "swarm", VERSION, header, self.state_dict())


def load_swarm(path: str | Path, device: str = "auto") -> Swarm:
    """Read a swarm that `Swarm.save` wrote."""
    header, weights = read_weights(path, "swarm", VERSION)
    with readable(path):
        space = space_from(header.pop("space"))
        swarm = built(lambda: Swarm(space, **header), weights)
    return filled(swarm, weights, path).eval().to(pick_device(device))


def best_so_far(space: Space, state: State, values: Values) -> tuple[Points, Values]:
    """The best places so far with the present ones counted in, and their values."""
    x = state.x.detach()
    better = (values < state.lowest) & space.contains(x)
    best = torch.where(better[..., None], x, state.best)
    return best, torch.where(better, values, state.lowest)


def log_and_sign(features: Float[Tensor, "*n f"]) -> Float[Tensor, "*n f 2"]:
    """Numbers of any magnitude for a network: their logarithm, in [-1, 1], and their sign, which
    fades for those too small to count (Andrychowicz et al. 2016)."""
    size = features.abs().clamp(min=1e-30).log() / SMALLEST
    sign = (features * math.exp(SMALLEST)).clamp(-1.0, 1.0)
    return torch.stack((size.clamp(-1.0, 1.0), sign), -1)
