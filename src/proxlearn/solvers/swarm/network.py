"""A learned particle swarm, which the paper compares with in D.3: "Learning to Optimize in Swarms"
(Cao, Chen, Wang and Shen, NeurIPS 2019). `learn_swarm` trains one for `px.solve(..., "swarm")`.

Particles move in populations of four. A small LSTM, the same for every coordinate, says how: it
sees the gradient, its momentum, the way to the particle's own best and the way to better
neighbours, weighed by an attention within the particle (over these features) and one between
particles. It is trained to make the objective small all along its way.
"""

import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from proxlearn.calculus.derivatives import gradient
from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch
from proxlearn.common.checks import check_positive, check_whole
from proxlearn.common.devices import pick_device
from proxlearn.common.files import read_weights, write_weights
from proxlearn.common.provenance import machine, versions
from proxlearn.common.seeds import generator_for
from proxlearn.common.splitting import pieces
from proxlearn.errors import FileError, InputError, TrainingError
from proxlearn.gpu.capture import captured
from proxlearn.problems.base import Problem, check_objective, sampled
from proxlearn.spaces import Space, space_from
from proxlearn.training.progress import Bar
from proxlearn.training.session import REPORT_SECONDS, Report, schedule

STEPS = 400  # of a training, unless told
VERSION = 1  # of its file
POPULATION = 4
MAX_POINTS = 1 << 16  # moved at once, a multiple of the population
FEATURES = 4  # gradient, momentum, own best, better neighbours
DECAY = 0.9  # of the momentum
SMALLEST = 10.0  # features below e^-10 count as nothing
ENTROPY = 0.05  # its share in the loss
FIRST_STEP = -3.0  # the logarithm of a step's length at first, in half-widths of the space


class State(NamedTuple):
    """Where the particles are and what they remember."""

    x: Float[Tensor, "i n d"]
    momentum: Float[Tensor, "i n d"]
    best: Float[Tensor, "i n d"]  # the best place inside the space that each has been to
    lowest: Float[Tensor, "i n"]  # the value there
    hidden: Float[Tensor, "i n d h"]
    cell: Float[Tensor, "i n d h"]


class Swarm(nn.Module):
    """The network that moves particles, and what it takes to use it.

    It works in units of the space (half a box's width) and of the objective: `height`, the standard
    deviation of its values over the space. n, the number of particles, is a multiple of four.
    """

    def __init__(
        self,
        space: Space,
        height: float,
        size: int = 20,
        provenance: dict[str, Any] | None = None,
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

    def begin(self, x: Float[Tensor, "i n d"]) -> State:
        """Particles that have not moved yet."""
        memory = x.new_zeros(*x.shape, self.size)
        lowest = torch.full_like(x[..., 0], torch.inf)
        return State(x, torch.zeros_like(x), x, lowest, memory, memory)

    def forward(
        self, state: State, values: Float[Tensor, "i n"], slope: Float[Tensor, "i n d"]
    ) -> State:
        """Move every particle once, given the objective's values and gradients where they are."""
        x, unit = state.x.detach(), self.unit
        slope = (slope * unit / self.height).nan_to_num(0.0, 0.0, 0.0)
        momentum = torch.lerp(slope, state.momentum, DECAY)
        best, lowest = remembered(self.space, state, values)
        apart, closer = self._neighbours(x / unit, values)
        attraction = (closer[..., None] * apart).sum(-2).flatten(1, 2)
        features = torch.stack((slope, momentum, (best - x) / unit, attraction), -1)
        context = self._between(self._within(log_and_sign(features), state.hidden), apart)
        before = state.hidden.flatten(0, 2), state.cell.flatten(0, 2)
        hidden, cell = (
            each.unflatten(0, x.shape) for each in self.lstm(context.flatten(0, 2), before)
        )
        direction, length = self.move(hidden).unbind(-1)
        step = unit * direction.tanh() * length.clamp(max=0.0).exp()
        return State(self.space.retract(state.x + step), momentum, best, lowest, hidden, cell)

    def _neighbours(
        self, x: Float[Tensor, "i n d"], values: Float[Tensor, "i n"]
    ) -> tuple[Float[Tensor, "i r p p d"], Float[Tensor, "i r p p"]]:
        """The way from every particle to each of its population, and how much it draws: better ones
        do, and the more so the nearer they are."""
        x, values = x.unflatten(1, (-1, POPULATION)), values.unflatten(1, (-1, POPULATION))
        apart = x[:, :, None] - x[:, :, :, None]
        better = values[:, :, None] < values[:, :, :, None]
        return apart, better * (-apart.square().sum(-1)).exp()

    def _within(
        self, seen: Float[Tensor, "i n d f 2"], hidden: Float[Tensor, "i n d h"]
    ) -> Float[Tensor, "i n d h"]:
        """Attention over the features of a particle, asked by what it remembers."""
        embedded = torch.einsum("indfk,fkh->indfh", seen, self.embedding) + self.offset
        asked = self.score((embedded + self.memory(hidden)[..., None, :]).tanh())
        return (asked.softmax(-2) * embedded).sum(-2)

    def _between(
        self, context: Float[Tensor, "i n d h"], apart: Float[Tensor, "i r p p d"]
    ) -> Float[Tensor, "i n d h"]:
        """Attention over the particles of a population, times how near they are."""
        every = context.unflatten(1, (-1, POPULATION))
        whole = every.mean(-2)  # of all coordinates
        alike = self.query(whole) @ self.key(whole).mT / math.sqrt(self.size)
        near = (-apart.square().sum(-1) * self.width.exp()).exp()
        mixed = torch.einsum("irpq,irqdh->irpdh", alike.softmax(-1) * near, every)
        return context + self.share * mixed.flatten(1, 2)

    @torch.no_grad()
    def run(
        self, problem: Problem, tau: Batch, starts: Float[Tensor, "i n d"], steps: int
    ) -> Float[Tensor, "i n d"]:
        """The best place inside the space that every particle came to in so many steps. A number of
        starts that four does not divide is filled up with the first of them."""
        if steps < 0:
            raise InputError(f"steps must be 0 (the starts themselves) or more, not {steps}.")
        count = starts.shape[1]
        places = torch.arange(count + -count % POPULATION, device=starts.device) % count
        begun = starts[:, places]
        found = torch.empty_like(begun)
        for rows, columns, some, x in pieces(tau, begun, MAX_POINTS):  # whole populations
            state = self.begin(x)
            for _ in range(steps):
                state = self(state, *gradient(problem, state.x, some))
            values = problem.objective(state.x, some)
            found[rows, columns] = remembered(self.space, state, values)[0]
        return found[:, :count]

    def check_fits(self, problem: Problem) -> None:
        """An error that says why, if this swarm cannot be of the problem."""
        if self.space != problem.space:
            raise InputError(
                f"This swarm was trained for {self.provenance.get('problem')!r} on {self.space}; "
                f"{problem.name!r} lives on {problem.space}: give a swarm trained for it."
            )

    def save(self, path: str | Path) -> Path:
        """Write one safetensors file: weights, and a header with the rest."""
        header = {
            "space": self.space.describe(),
            "height": self.height,
            "size": self.size,
            "provenance": self.provenance,
        }
        return write_weights(path, "swarm", VERSION, header, self.state_dict())


def load_swarm(path: str | Path, device: str = "auto") -> Swarm:
    """Read a swarm that `Swarm.save` wrote."""
    header, weights = read_weights(path, "swarm", VERSION)
    try:
        swarm = Swarm(space_from(header.pop("space")), **header)
        swarm.load_state_dict(weights)
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        raise FileError(f"The header of {path} does not fit its weights: {error}") from None
    return swarm.eval().to(pick_device(device))


def remembered(
    space: Space, state: State, values: Float[Tensor, "i n"]
) -> tuple[Float[Tensor, "i n d"], Float[Tensor, "i n"]]:
    """The best places so far with the present ones counted in, and their values."""
    x = state.x.detach()
    better: Bool[Tensor, "i n"] = (values < state.lowest) & space.contains(x)
    best = torch.where(better[..., None], x, state.best)
    return best, torch.where(better, values, state.lowest)


def log_and_sign(features: Float[Tensor, "*n f"]) -> Float[Tensor, "*n f 2"]:
    """Numbers of any magnitude for a network: their logarithm, in [-1, 1], and their sign, which
    fades for those too small to count (Andrychowicz et al. 2016)."""
    size = features.abs().clamp(min=1e-30).log() / SMALLEST
    sign = (features * math.exp(SMALLEST)).clamp(-1.0, 1.0)
    return torch.stack((size.clamp(-1.0, 1.0), sign), -1)


def meta_loss(heights: Float[Tensor, "t i n"]) -> tuple[Float[Tensor, ""], Float[Tensor, "t i n"]]:
    """What training makes small, from the values met along the way of populations, and its
    derivative in each of them: their mean, and how uncertain the best place still is. That is the
    entropy of the Boltzmann distribution over all places that a population has been to, which
    stands for the original's posterior over the global optimum."""
    with torch.enable_grad():
        heights = heights.detach().requires_grad_()
        log_p = (-heights).transpose(0, 1).flatten(1).log_softmax(1)
        entropy = -(log_p.exp() * log_p).sum(1)
        loss = heights.mean() + ENTROPY * entropy.mean()
        (weights,) = torch.autograd.grad(loss, heights)
    return loss.detach(), weights


def learn_swarm(
    problem: Problem,
    *,
    steps: int | None = None,
    seconds: float | None = None,
    rate: float = 1e-2,
    runs: int = 40,
    unroll: int = 10,
    seed: int = 0,
    device: str = "auto",
    progress: bool = True,
) -> Swarm:
    """Train a swarm for a problem, for so many `steps` (`STEPS` unless told) or `seconds`.

    A step moves `runs` populations `unroll` times and learns from where they went; they go on from
    there in the next, and a tenth of them starts afresh, from other points and with other taus.
    """
    if steps is not None and seconds is not None:
        raise InputError("Give steps or seconds, not both: each is the length of the training.")
    counts: dict[str, Any] = {"steps": steps, "runs": runs, "unroll": unroll}
    for name, value in (counts | {"seconds": seconds, "rate": rate}).items():
        if value is not None:
            check_positive(name, value)
        if value is not None and name in counts:
            check_whole(name, value)
    picked = pick_device(device)
    check_objective(problem, picked, seed)
    gpus = [picked] if picked.type == "cuda" else []
    with torch.random.fork_rng(gpus), Bar(f"swarm, {problem.name}", progress) as bar:
        lesson = Lesson(problem, picked, rate, runs, unroll, seed)
        started, reported, step, spent = time.monotonic(), 0.0, 0, 0.0
        while spent < 1:
            lesson.rate.fill_(rate * schedule(spent))
            lesson.restart(step)
            lesson.step_once()
            step, elapsed = step + 1, time.monotonic() - started
            spent = elapsed / seconds if seconds else step / (steps or STEPS)
            if elapsed - reported > REPORT_SECONDS or spent >= 1:
                bar.show(Report(step, elapsed, spent, {"loss": lesson.read()}))
                reported = elapsed
    lesson.swarm.provenance = {
        "problem": problem.name,
        "steps": step,
        "seconds": round(time.monotonic() - started, 1),
        "training": {"rate": rate, "runs": runs, "unroll": unroll, "seed": seed},
        "versions": versions(),
        "machine": machine(picked),
    }
    return lesson.swarm.eval()


class Lesson:
    """A training under way: populations on their way, and the step that learns from them.

    Gradients run back through the memory and the sum of all moves, and not through the features:
    the objective is differentiated once (Andrychowicz et al. 2016).
    """

    ages = 10  # unrolls that a population lives for

    def __init__(
        self,
        problem: Problem,
        device: torch.device,
        rate: float,
        runs: int,
        unroll: int,
        seed: int,
    ):
        self.problem, self.unroll = problem, unroll
        self.generator = generator_for(seed, "swarm", device)
        torch.manual_seed(seed)
        self.group = math.ceil(runs / self.ages)  # populations that start afresh together
        tau, x = self._fresh(self.group * self.ages)
        height = problem.objective(x, tau).detach().std().clamp(min=1e-12).item()
        self.swarm = Swarm(problem.space, height).to(device)
        self.tau = batches.tree_map(lambda t: t.clone(), tau)
        self.state = State(*(each.clone() for each in self.swarm.begin(x)))
        self.rate, self.loss = torch.tensor(rate, device=device), torch.zeros((), device=device)
        self.optimizer = torch.optim.Adam(
            self.swarm.parameters(), lr=self.rate, capturable=device.type == "cuda"
        )
        self.step_once = captured(self._one_step, device)

    def _fresh(self, count: int) -> tuple[Batch, Float[Tensor, "i n d"]]:
        """So many populations, each with a tau of its own."""
        device = self.generator.device
        tau = sampled(self.problem, count, "train", self.generator)
        space = self.problem.space
        return tau, space.sample(count, POPULATION, generator=self.generator, device=device)

    def restart(self, step: int) -> None:
        """The oldest populations start afresh."""
        first = step % self.ages * self.group
        tau, x = self._fresh(self.group)

        def write(old: Tensor, new: Tensor) -> None:
            old[first : first + self.group] = new

        batches.tree_map(write, (self.tau, self.state), (tau, self.swarm.begin(x)))

    def _one_step(self) -> None:
        state, tau, problem = self.state, self.tau, self.problem
        values, slope = gradient(problem, state.x, tau)
        been, met = [], []
        for _ in range(self.unroll):
            state = self.swarm(state, values, slope)
            values, slope = gradient(problem, state.x, tau)
            been.append(state.x)
            met.append((values, slope))
        heights, slopes = (torch.stack(each) for each in zip(*met))
        loss, weights = meta_loss(heights / self.swarm.height)
        pull = weights[..., None] * slopes / self.swarm.height
        self.optimizer.zero_grad()
        torch.autograd.backward(torch.stack(been), pull.nan_to_num(0.0, 0.0, 0.0))
        nn.utils.clip_grad_norm_(self.swarm.parameters(), 1.0)
        self.optimizer.step()
        self.loss.copy_(torch.where(self.loss.isfinite(), loss, self.loss))  # once lost, noticed
        for own, new in zip(self.state, state):
            own.copy_(new.detach())

    def read(self) -> float:
        """The loss of the last step, in units of the objective's height."""
        loss = self.loss.item()
        if not math.isfinite(loss):
            raise TrainingError(
                "The objective stopped being a number along the way of the swarm: add a term that "
                "keeps particles in the space, such as 0.01 |x|^2."
            )
        return loss
