"""Teaching a trained operator when a point has arrived (`Arrival`), on the points it visits, and
measuring how many applications that takes.

The operator stays as it is. It is taught afterwards, since the points that it visits, and the best
values that it finds, are then those of the finished operator.
"""

import time
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers.starts import starting_points
from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch, Points, Values
from proxlearn.common.seeds import generator_for
from proxlearn.gpu.capture import captured
from proxlearn.gpu.precision import products_in
from proxlearn.networks.arrival import PATIENCES, Arrival, levels
from proxlearn.operators.bound_operator import MOST_APPLICATIONS
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import Problem, sampled
from proxlearn.problems.objectives import values_of
from proxlearn.training.loss import LOST
from proxlearn.training.optimizer import Optimizer, schedule
from proxlearn.training.sampling import random_lams

DEPTH = 16  # applications that the points of a round have behind them at most
UPDATES = 16  # of the weights in a round
RATE = 6e-3
HIGHER = 1e-4  # of the way down from the median start: ending that much higher is worse
FEW = 0.01  # the share of points that may


class Lessons:
    """Rounds of teaching: new instances, points on their way, and what is to be known of them."""

    def __init__(self, operator: Operator, problem: Problem, shape: tuple[int, int], seed: int):
        self.operator, self.problem, self.shape = operator, problem, shape
        device = operator.device
        self.generator = generator_for(seed, "arrival", device)
        self.arrival = Arrival.of(operator.network, operator.space.dim).to(device)
        self.optimizer = Optimizer(self.arrival, RATE)
        self.error = torch.ones((), device=device)  # of the levels, running

    def round(self) -> None:
        """Take some points some way, and learn from that."""
        code, told, true = self.examples()
        rows = torch.arange(len(code), device=code.device)
        for _ in range(UPDATES):
            which = torch.randint(DEPTH, rows.shape, generator=self.generator, device=code.device)
            level, log_error = self.arrival(told[which, rows], self.arrival.prepare(code))
            off = true[which, rows] - level
            loss = (0.5 * (off / log_error.exp()).square() + log_error).mean()
            loss.backward()
            gradient = self.optimizer.gather()
            gradient.div_(gradient.norm().clamp(min=1.0))
            self.optimizer.step()
            self.error.lerp_(off.detach().abs().mean(), 0.02)

    @torch.no_grad()
    def examples(
        self,
    ) -> tuple[Float[Tensor, "i c"], Float[Tensor, "k i n f"], Float[Tensor, "k i n"]]:
        """Codes of new instances; of points after 0, 1, ... applications, what is told of them and
        their levels."""
        operator, own = self.operator, {"generator": self.generator, "device": self.operator.device}
        tau = sampled(self.problem, self.shape[0], "train", self.generator)
        x, every, values = operator.space.sample(*self.shape, **own), [], []
        lam = random_lams(operator.lams, self.shape[0], self.generator) if operator.lams else None
        prepared = operator.prepare(operator.encode(self.problem.observe(tau)), lam)
        for _ in range(DEPTH):  # a point that flies away, which may overflow, is left where it was
            y, told = operator.watched_step(x, prepared)
            every.append(told)
            values.append(_values(self.problem, x, tau))
            x = torch.where(operator.space.contains(y, LOST)[..., None], y, x)
        return prepared["code"], torch.stack(every), levels(torch.stack(values))


def learn_arrival(
    operator: Operator,
    problem: Problem,
    shape: tuple[int, int],
    seed: int,
    spent: Callable[[int, float], float],
    show: Callable[[float, float], None] = lambda spent, error: None,
) -> Arrival | None:
    """What the operator then knows, with no more patience than it takes; None where points would
    stop too early.

    `shape` is (instances, points) of a round; `spent(rounds, seconds)` is the share that is done;
    `show` is told of it, with the error of the levels.
    """
    lessons = Lessons(operator, problem, shape, seed)
    one_round = captured(lessons.round, operator.device, lessons.generator)
    started = shown = time.monotonic()
    rounds, done = 0, 0.0
    with products_in(operator.precision):
        while done < 1:
            lessons.optimizer.set_rate(RATE * schedule(done))
            one_round()
            rounds += 1
            done = spent(rounds, time.monotonic() - started)
            if time.monotonic() - shown > 0.5:
                shown = time.monotonic()
                show(done, float(lessons.error))
    if not lessons.error.isfinite():
        return None  # its loss broke: the operator is then applied a number of times
    arrival = lessons.arrival.eval()
    for arrival.patience in PATIENCES:
        if pays_off(operator, problem, arrival, seed):
            return arrival
    return None


@torch.no_grad()
def settled_after(operator: Operator, problem: Problem, seed: int) -> int:
    """How many applications it takes until four of five instances have settled: until 98% of their
    starts have a value as low as after a hundred, up to 1e-4 of the way down to the best."""
    counts = (0, 1, 2, 3, 5, 10, 20, 50, 100)
    tau, x = _instances_and_starts(operator, problem, seed)
    found = operator.bound(problem, tau).apply(x, counts)
    values = torch.stack([_values(problem, each.points, tau) for each in found])  # (counts, i, n)
    scale = values[0].median(1, keepdim=True).values - values.amin((0, 2))[:, None]
    settled = (values <= values[-1] + 1e-4 * scale).float().mean(2) >= 0.98
    share = settled.float().mean(1).tolist()  # of the instances, for each count
    return next((k for k, settled in zip(counts, share) if settled >= 0.8), counts[-1])


@torch.no_grad()
def pays_off(operator: Operator, problem: Problem, arrival: Arrival, seed: int) -> bool:
    """Whether points that stop when they seem to have arrived end no higher, but for a few, than
    after the usual number of applications."""
    tau, x = _instances_and_starts(operator, problem, seed)
    bound = operator.bound(problem, tau)
    usual = bound.apply(x, (operator.applications,))[0].points
    before, operator.arrival = operator.arrival, arrival
    stopped = bound.arrive(x, (MOST_APPLICATIONS,))[0].points
    operator.arrival = before
    start, usual, stopped = (_values(problem, each, tau) for each in (x, usual, stopped))
    scale = start.median(1, keepdim=True).values - usual.amin(1, keepdim=True)
    return bool((stopped > usual + HIGHER * scale).float().mean() <= FEW)


def _instances_and_starts(operator: Operator, problem: Problem, seed: int) -> tuple[Batch, Points]:
    generator = generator_for(seed, "settled", operator.device)
    tau = sampled(problem, 32 if problem.family else 1, "train", generator)
    count = batches.size(tau)
    return tau, starting_points(problem.space, 1024 // count, count, seed, operator.device)


def _values(problem: Problem, x: Points, tau: Batch) -> Values:
    """Of the objective; infinite outside the space, which is no place to arrive at."""
    values = values_of(problem, x, tau).nan_to_num(torch.inf, torch.inf)
    return values.masked_fill(~problem.space.contains(x), torch.inf)
