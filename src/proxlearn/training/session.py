"""A training under way; `Session.run` is its loop."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor

from proxlearn.common.memory import afford
from proxlearn.common.provenance import machine, versions
from proxlearn.errors import TrainingError
from proxlearn.gpu.capture import Beside, captured
from proxlearn.gpu.kernels import Compiling
from proxlearn.gpu.parallel import ALONE, Process
from proxlearn.gpu.precision import products_in
from proxlearn.networks.arrival import Arrival
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import Problem
from proxlearn.problems.objectives import (
    INSTANCES,
    POINTS,
    check_at,
    check_objective,
    some_values,
)
from proxlearn.training import settings
from proxlearn.training.arrival import learn_arrival, settled_after
from proxlearn.training.instances import check_sample
from proxlearn.training.loss import LOST, Given, Loss
from proxlearn.training.optimizer import Optimizer, keep_books, schedule, shorten
from proxlearn.training.sampling import SAMPLINGS
from proxlearn.training.settings import Training
from proxlearn.training.threads import settle_threads, with_best_threads

KEPT, LAYERS = 16, 4  # what a step holds of each point, at least: copies of it, layers of it
REPORT_SECONDS = 0.5  # how often the loss is read back from the device
JUDGING = 0.04  # the share of a training's seconds for judging the operator at the end
FEWEST = 200  # steps: if the clock allows fewer, the operator does not learn when to stop
ARRIVAL = 0.1  # the share of a training's seconds for learning when to stop


@dataclass(frozen=True)
class Report:
    """Where training stands, read back from the device now and then."""

    step: int
    seconds: float
    spent: float  # the share of the training that is done
    terms: dict[str, float]  # the loss and what it is made of, smoothed
    at_optimum: float | None = None  # the share of held-out starts that do, looked at now and then

    def row(self) -> dict[str, Any]:
        seen = {} if self.at_optimum is None else {"at_optimum": self.at_optimum}
        return {"step": self.step, "seconds": round(self.seconds, 3), **self.terms, **seen}


class Session:
    """A training under way: all that a checkpoint has to hold, and the loop."""

    def __init__(
        self, problem: Problem, training: Training, device: torch.device, process: Process = ALONE
    ):
        self.threads = torch.get_num_threads()  # the most that may be used
        if device.type == "cpu" and not training.steps and process.size == 1:
            settle_threads(self.threads)
        check_sample(problem, device, training.seed)
        check_objective(problem, device, training.seed)
        self.problem, self.training, self.device, self.process = problem, training, device, process
        # By these a checkpoint knows the objective again.
        self.values = some_values(problem, device)
        self.rule = process.from_first(settings.make_rule(problem, training, device))
        architecture = settings.pick_architecture(problem, training, device)
        torch.manual_seed(training.seed)  # for the weights
        lam, lams, asked = self.rule.lam, self.rule.lams, training.applications
        precision = settings.pick_precision(training, architecture, device)
        self.operator = Operator.untrained(
            problem, architecture, lam, lams, applications=asked or 1, precision=precision
        ).to(device)
        # Arrival is read from the code. It is not needed where the number of applications is given,
        # or where points stay at the optima.
        network = self.operator.network
        told = network.code_size is not None and not network.settles
        self.learns_arrival = asked is None and told
        self.shape = instances, points = settings.batch_shape(problem, training, device)
        self._afford(instances, points)
        sampling, depth, seed = SAMPLINGS[training.sampling], training.depth, training.seed
        some: dict[str, Any] = {"near": settings.pick_near(problem, training)}
        some |= {} if training.encodes is None else {"encodes": training.encodes}
        self.sampler = sampling(
            problem, instances, points, depth, lams or (lam, lam), seed, device, process, **some
        )
        self.loss = Loss(self.rule, problem, self.sampler.part)
        self.rate = settings.pick_rate(training, device)
        self.optimizer = Optimizer(self.operator, self.rate)
        self.steps, self.seconds = settings.pick_length(problem, training, device)
        self.beside = Beside(device)
        self.compiling: Compiling | None = None  # kernels of the network, beside the training
        self.step, self.elapsed = 0, 0.0
        self.names: list[str] = []  # of the terms of the loss
        self.smooth: Tensor | None = None  # their running means
        self.count = torch.zeros((), device=device)
        self.usual_norm = torch.full((), 1e3, device=device)  # of the gradient, running
        self.fine = torch.zeros((), device=device)  # the last step whose loss was a number

    def _afford(self, instances: int, points: int) -> None:
        """An error where a step has more points than there is memory for."""
        taus, dim = max(instances, self.training.depth + 1), self.problem.space.dim
        count = taus * points / self.process.size
        needed = 4 * count * (KEPT * dim + LAYERS * self.operator.network.widest(dim))
        what = f"A step of {taus:,} instances (taus) of {points:,} points"
        afford(needed, what, "give a smaller instances=, points= or depth=", self.device)

    @property
    def spent(self) -> float:
        """The share of the training that is done."""
        if self.seconds:
            later = JUDGING + (ARRIVAL if self.learns_arrival else 0.0)
            return self.elapsed / (self.seconds * (1 - later))
        assert self.steps
        return self.step / self.steps

    def run(self, interrupted: Callable[[], bool] = lambda: False) -> Iterator[Report]:
        """Train, stopping for a report every half second and at the end, or when interrupted."""
        started = reported = time.monotonic()
        before, sampler = self.elapsed, self.sampler
        self.compiling = self._compile_kernels()
        step_once = self._captured_step()

        def standing() -> tuple[float, float, bool]:
            now = time.monotonic()
            return before + now - started, now - reported, interrupted()

        with products_in(self.operator.precision):
            while self.spent < 1:
                self.optimizer.set_rate(self.rate * schedule(self.spent))
                sampler.source.fill(self.step)
                agreed = self.process.ask(standing)  # while the step is under way
                step_once()
                self.step += 1
                self.elapsed, since_report, stop = agreed()
                if stop:
                    raise KeyboardInterrupt
                if self.compiling and self.compiling.just_done():
                    self.operator.network.kernels, step_once = True, self._captured_step()
                if since_report > REPORT_SECONDS and self.spent < 1:
                    yield self.report()
                    reported = time.monotonic()
        yield self.report()

    def _compile_kernels(self) -> Compiling | None:
        """Have the network's own kernels compiled or loaded, and train without them until they are
        there; where several processes train, each waits for its own."""
        network, sampler = self.operator.network, self.sampler
        if self.process.size > 1:
            return None
        shape = (sampler.batch, sampler.points, self.problem.space.dim)
        compiling = network.compile_kernels(shape)
        network.kernels = compiling is None
        return compiling

    def _captured_step(self) -> Callable[[], None]:
        """The step in its fastest form. A training that ends by the clock, and not after a number
        of steps, differs from run to run anyway, so that it may choose its threads."""
        if self.device.type == "cpu" and self.seconds and self.process.size == 1:
            return partial(next, with_best_threads(self._one_step, self.threads))
        generators = self.sampler.generator, self.sampler.noise
        return captured(self._one_step, self.device, *generators)

    def _one_step(self) -> None:
        applied, terms = self.sampler.apply(self.operator, self.loss)
        with self.beside:
            self.sampler.refill()
        reduce(torch.add, (Given.apply(y, slope) for y, slope in applied)).backward()
        gradient = self.optimizer.gather()
        terms = self.sampler.part.merge([gradient], terms)
        lengths = shorten(gradient, self.usual_norm)
        with self.beside:
            values = torch.stack(list(terms.values()))
            if self.smooth is None:
                self.names, self.smooth = list(terms), values.clone()
            keep_books(*lengths, values, self.usual_norm, self.smooth, self.count, self.fine)
            self.optimizer.step_others()
        self.optimizer.step_matrices()
        self.beside.wait()

    def report(self) -> Report:
        """Read the losses back (the only wait for the device) and check that they are numbers."""
        terms = [] if self.smooth is None else [self.smooth]
        fine, *terms = torch.cat([self.fine[None], *terms]).tolist()
        if fine < self.step:
            raise TrainingError(
                f"The loss stopped being a number at step {int(fine) + 1}: try a larger lam, a "
                "smaller rate, or an objective that is finite everywhere and grows less steeply."
            )
        return Report(self.step, self.elapsed, self.spent, dict(zip(self.names, terms)))

    def check_objective(self) -> None:
        """An error where the objective fails at points that only the training has reached."""
        some = self.sampler.under_way(INSTANCES, POINTS)
        if some is not None and not self.problem.costly:
            x, tau = some
            near = self.problem.space.contains(x, LOST)[
                ..., None
            ]  # it is not evaluated farther out
            check_at(self.problem, torch.where(near, x, self.problem.space.project(x)), tau)

    @property
    def worth_teaching(self) -> bool:
        """Whether the operator is trained enough to learn when a point has arrived."""
        return self.step >= FEWEST or not self.seconds

    def learn_arrival(
        self, show: Callable[[float, float], None], interrupted: Callable[[], bool]
    ) -> Arrival | None:
        """Teach the trained operator when a point has arrived, if that can be learned; the first
        process does it for all."""
        problem, seed = self.problem, self.training.seed
        seconds = ARRIVAL * (self.seconds or 0.0)
        rounds = min(2_000, math.ceil((self.steps or 0) / 50))

        def spent(done: int, elapsed: float) -> float:
            if interrupted():
                raise KeyboardInterrupt
            return elapsed / seconds if seconds else done / rounds

        arrival = None
        if self.process.first:
            torch.manual_seed(seed)
            with suppress(KeyboardInterrupt):  # half-taught would be worse than not at all
                arrival = learn_arrival(self.operator, problem, self.shape, seed, spent, show)
        arrival = self.process.from_first(None if arrival is None else arrival.cpu())
        return None if arrival is None else arrival.to(self.device)

    def finished(self) -> Operator:
        """The operator as it is now, with its provenance."""
        operator, training = self.operator, asdict(self.training)
        if self.training.applications is None:
            operator.applications = settled_after(operator, self.problem, self.training.seed)
        operator.provenance = {
            "problem": self.problem.name,
            "training": training | {"architecture": operator.network.architecture.describe()},
            "rule": asdict(self.rule),
            "steps": self.step,
            "seconds": round(self.elapsed, 1),
            "versions": versions(),
            "machine": machine(self.device),
            "data": self.problem.drawn_from,
        }
        return operator.eval()
