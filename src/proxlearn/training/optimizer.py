"""How weights are updated. A matrix goes against its gradient made orthogonal (Muon), so that all
of its directions learn alike; all other weights go by Adam. Done in place, on the device."""

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim.adamw import adamw

CLIP = 3.0  # gradients longer than this many times the usual are shortened
PIECES = 30  # of the weights: what a fused optimizer updates in one launch on a GPU
SMALLEST_SIDE = 16  # of a matrix whose steps are made orthogonal
MOMENTUM = 0.95
ENTRIES = 0.2  # of an orthogonal step, in the square mean: as Adam's, so that one rate suits both
POLYNOMIAL = (3.4445, -4.7750, 2.0315)  # a x + b x^3 + c x^5: any x from 0.01 to 1 comes near 1
TIMES = 5  # that it is applied
TINY = 1e-45  # the least that is divided by

Vector = Float[Tensor, " w"]  # a number for each weight


class Alike(NamedTuple):
    """What weights that are updated at once have in common."""

    sides: tuple[int, int]  # of a matrix, the smaller one first; (0, 0) goes by Adam
    tall: bool  # whether its first side is the larger one
    rate: float  # times the rate of the training
    decay: float  # times the rate: the share that the weights lose in a step


class Run(NamedTuple):
    """Where weights that are alike follow one another in the vector of all weights."""

    alike: Alike
    part: slice

    def matrices(self, vector: Vector) -> Float[Tensor, "k s l"]:
        """Their part of a vector, as matrices whose smaller side is first."""
        small, large = self.alike.sides
        if self.alike.tall:
            return vector[self.part].view(-1, large, small).mT
        return vector[self.part].view(-1, small, large)

    @property
    def size(self) -> int:
        """How many matrices there are."""
        return (self.part.stop - self.part.start) // math.prod(self.alike.sides)


class Optimizer:
    """The weights of a module, moved into one vector, with another one for their gradients.

    Weights that need no gradient stay as they are. A module inside may have a rate of its own,
    `rate_factor` times that of the training, and a `weight_decay`; they hold for all that is in it.
    """

    def __init__(self, module: nn.Module, rate: float):
        alike = dict(_weights(module))
        self.weights = sorted(alike, key=alike.__getitem__, reverse=True)  # matrices first
        sizes = [weight.numel() for weight in self.weights]
        self.values = torch.cat([weight.detach().flatten() for weight in self.weights])
        self.gradient = torch.zeros_like(self.values)
        for weight, piece in zip(self.weights, self.values.split(sizes)):
            weight.data = piece.view(weight.shape)
        device = self.values.device
        self.rates = {each.rate: torch.zeros((), device=device) for each in alike.values()}
        self.set_rate(rate)
        runs = []
        for each, members in groupby(self.weights, alike.__getitem__):
            start = runs[-1].part.stop if runs else 0
            runs.append(Run(each, slice(start, start + sum(weight.numel() for weight in members))))
        matrices = [run for run in runs if any(run.alike.sides)]
        self.batches = _batches(matrices)
        self.ahead = [_room(runs, self.values) for runs in self.batches]
        self.momentum = torch.zeros_like(self.values[: matrices[-1].part.stop if matrices else 0])
        self.adams = [
            Adam(
                self.values[run.part],
                self.gradient[run.part],
                self.rates[run.alike.rate],
                run.alike.decay,
            )
            for run in runs
            if not any(run.alike.sides)
        ]

    def set_rate(self, rate: float) -> None:
        """For the steps that follow; a step that was captured on a GPU reads it anew."""
        for factor, own in self.rates.items():
            own.fill_(rate * factor)

    def gather(self) -> Vector:
        """The gradients of all weights, moved into one vector; 0 where there is none."""
        every = (torch.zeros_like(w) if w.grad is None else w.grad for w in self.weights)
        torch.cat([each.flatten() for each in every], out=self.gradient)
        for weight in self.weights:
            weight.grad = None
        return self.gradient

    def step(self) -> None:
        """Update all weights by the gradients that were gathered."""
        self.step_matrices()
        self.step_others()

    @torch.no_grad()
    def step_matrices(self) -> None:
        """Update those that are made orthogonal."""
        gradient = self.gradient[: len(self.momentum)]
        self.momentum.lerp_(gradient, 1 - MOMENTUM)
        for runs, ahead in zip(self.batches, self.ahead):
            sizes = [run.size for run in runs]
            for run, own in zip(runs, ahead.split(sizes)):  # Nesterov's; zeros stay beside it
                ends = run.matrices(gradient), run.matrices(self.momentum)
                torch.lerp(*ends, MOMENTUM, out=own[..., : run.alike.sides[1]])
            for run, step in zip(runs, orthogonal(ahead).split(sizes)):
                self._move(run, step)

    def step_others(self) -> None:
        """Update those that go by Adam."""
        for adam in self.adams:
            adam.step()

    def _move(self, run: Run, step: Float[Tensor, "k s l"]) -> None:
        weights, rate = run.matrices(self.values), self.rates[run.alike.rate]
        length = run.alike.sides[1]
        if run.alike.decay:
            weights.addcmul_(weights, rate, value=-run.alike.decay)
        weights.addcmul_(step[..., :length], rate, value=-ENTRIES * math.sqrt(length))

    def state(self) -> dict[str, Any]:
        """What a checkpoint has to hold besides the weights."""
        return {"momentum": self.momentum, "adam": [adam.state() for adam in self.adams]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from such a state."""
        self.momentum.copy_(state["momentum"])
        for adam, old in zip(self.adams, state["adam"], strict=True):
            for mine, saved in zip(adam.state(), old):
                mine.copy_(saved)


class Adam:
    """Adam's steps for weights that are alike, in equal pieces, which are fewer than the weights.
    (Not `torch.optim.Adam`, since that takes seconds to import what it needs.)"""

    def __init__(self, values: Vector, gradient: Vector, rate: Tensor, decay: float):
        size = -(-len(values) // PIECES)
        self.rate, self.decay = rate, decay
        self.mean, self.square = torch.zeros_like(values), torch.zeros_like(values)
        vectors = (values, gradient, self.mean, self.square)
        self.pieces = [list(vector.split(size)) for vector in vectors]
        self.taken = values.new_zeros(len(self.pieces[0]))  # steps, of each piece

    def step(self) -> None:
        weights, gradients, means, squares = self.pieces
        adamw(
            weights, gradients, means, squares, [], list(self.taken.unbind()), fused=True,
            lr=self.rate, weight_decay=self.decay, beta1=0.9, beta2=0.999, eps=1e-8,
            amsgrad=False, maximize=False, capturable=self.rate.is_cuda,
        )  # fmt: skip

    def state(self) -> list[Tensor]:
        return [self.mean, self.square, self.taken]


def orthogonal(matrices: Float[Tensor, "k s l"]) -> Float[Tensor, "k s l"]:
    """Near each matrix, one whose singular values are about 1, by the iteration of Newton and
    Schulz; on a GPU in 16 bits, which is enough for a direction."""
    a, b, c = POLYNOMIAL
    kind = torch.bfloat16 if matrices.is_cuda else matrices.dtype
    # In 64 bits, no square underflows.
    norm = torch.linalg.vector_norm(matrices, dim=(-2, -1), keepdim=True, dtype=torch.float64)
    x = torch.div(matrices, norm.clamp(min=TINY), out=torch.empty_like(matrices, dtype=kind))
    scaled = _identity(a, x.shape[-2], kind, x.device)
    for _ in range(TIMES):
        gram = x @ x.mT
        x = torch.add(scaled, gram, alpha=b).baddbmm_(gram, gram, alpha=c) @ x
    return x


@lru_cache(maxsize=64)
def _identity(scale: float, size: int, kind: torch.dtype, device: torch.device) -> Tensor:
    """A multiple of it, made once."""
    return scale * torch.eye(size, dtype=kind, device=device)


def _room(runs: list[Run], values: Vector) -> Float[Tensor, "k s l"]:
    """Zeros for all matrices of a batch, those of one run after those of another."""
    return values.new_zeros(sum(run.size for run in runs), *runs[0].alike.sides)


def _batches(runs: list[Run]) -> list[list[Run]]:
    """Runs whose matrices are made orthogonal at once: those with the same smaller side, the
    largest first, to which others at least half as large are padded with zeros; these change
    nothing."""
    batches: list[list[Run]] = []
    for run in runs:
        small, large = run.alike.sides
        if batches:
            first, longest = batches[-1][0].alike.sides
            if small == first and 2 * large >= longest:
                batches[-1].append(run)
                continue
        batches.append([run])
    return batches


def _weights(
    module: nn.Module, rate: float = 1.0, decay: float = 0.0
) -> Iterator[tuple[nn.Parameter, Alike]]:
    """All that are trained, each with how it is updated; one that is shared comes several times."""
    rate, decay = getattr(module, "rate_factor", rate), getattr(module, "weight_decay", decay)
    for weight in module.parameters(recurse=False):
        if weight.requires_grad:
            rows, columns = (weight.flatten(1) if weight.dim() > 1 else weight.reshape(1, -1)).shape
            sides, tall = (min(rows, columns), max(rows, columns)), rows > columns
            if sides[0] < SMALLEST_SIDE:
                sides, tall = (0, 0), False
            yield weight, Alike(sides, tall, rate, decay)
    for child in module.children():
        yield from _weights(child, rate, decay)


def shorten(gradient: Vector, usual_norm: Tensor) -> tuple[Tensor, Tensor]:
    """Shorten a gradient that is far longer than usual, so that a wild batch does not undo the
    rest: its length before and after."""
    norm = gradient.norm()
    shorter = torch.minimum(norm, CLIP * usual_norm)
    gradient.mul_(shorter / norm.clamp(min=1e-30))
    return norm, shorter


def keep_books(
    norm: Tensor,
    shorter: Tensor,
    values: Float[Tensor, " t"],
    usual_norm: Tensor,
    smooth: Float[Tensor, " t"],
    count: Tensor,
    fine: Tensor,
) -> None:
    """Of the gradient's usual length and of the means of the loss's terms, both running; and of the
    steps: how many there were, and the last one before any whose loss was no number."""
    usual_norm.lerp_(shorter, 0.02)
    smooth.lerp_(values, 0.02)
    # 0 times what is no number makes the count none, for good: a good step after a bad one does not
    # make it good. fmax passes over that. (A sum is a number only if all of its parts are.)
    count.add_(1).add_(norm, alpha=0).add_(values[0], alpha=0)
    torch.fmax(fine, count, out=fine)


def schedule(spent: float) -> float:
    """The learning rate's factor: a short warm-up, then a cosine to 0."""
    return min(1.0, spent / 0.01) * 0.5 * (1 + math.cos(math.pi * min(spent, 1.0)))
