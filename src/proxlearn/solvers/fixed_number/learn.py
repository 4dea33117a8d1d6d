"""Training a network that gives a fixed number of points, on the same instances as an operator and
by the same optimizer."""

import math
from collections.abc import Callable

import torch

from proxlearn.common import checks
from proxlearn.common.batch import Batch
from proxlearn.common.provenance import machine, versions
from proxlearn.common.seeds import generator_for
from proxlearn.errors import InputError, TrainingError
from proxlearn.gpu.capture import captured
from proxlearn.gpu.devices import pick_device
from proxlearn.gpu.precision import products_in
from proxlearn.networks.encoders import Encoder
from proxlearn.problems.base import Problem, check_problem
from proxlearn.solvers.fixed_number.network import COUNT, FixedNumber, chamfer
from proxlearn.training import lessons
from proxlearn.training.instances import Drawn, Fed, check_sample
from proxlearn.training.optimizer import Optimizer, shorten
from proxlearn.training.progress import Bar
from proxlearn.training.settings import training_from

STEPS = 2_000  # of a training, by default
KEPT = 0.98  # of a running mean, from step to step


def learn_fixed_number(
    problem: Problem,
    *,
    count: int = COUNT,
    encoder: Encoder | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    rate: float = 7e-4,
    instances: int = 32,
    precision: str = "fp32",
    seed: int = 0,
    device: str = "auto",
    progress: bool = True,
) -> FixedNumber:
    """Train a network that gives `count` points of each instance, by their chamfer distance to the
    solutions that the problem knows, for so many `steps` (default: `STEPS`) or `seconds`.

    `encoder`: a module in place of the problem's own, such as one with trained weights;
    `instances`: in a step; `precision`: of matrix products, fp32, tf32 or bf16; `rate`: the largest
    one, which falls to 0 along a cosine.
    """
    given = {"steps": steps, "seconds": seconds, "rate": rate, "instances": instances}
    given |= {"precision": precision}
    training_from(given)  # for its checks
    count, seed = checks.count("count", count), checks.seed_of(seed)
    check_problem(problem)
    show = checks.flag("progress", progress)
    check_known(problem)
    picked = pick_device(device)
    check_sample(problem, picked, seed)
    gpus = [picked] if picked.type == "cuda" else []
    with torch.random.fork_rng(gpus), Bar(f"fixed number, {problem.name}", show) as bar:
        torch.manual_seed(seed)
        network = FixedNumber(
            problem.space, problem.instances, encoder or problem.encoder(), count, precision
        ).to(picked)
        lesson = Lesson(problem, network, rate, instances, seed)
        length = lessons.teach(lesson, bar, rate, steps or STEPS, seconds)
    network.provenance = {
        "problem": problem.name,
        **length,
        "training": given | {"count": count, "seed": seed},
        "versions": versions(),
        "machine": machine(picked),
    }
    return network.eval()


def check_known(problem: Problem) -> None:
    """An error if there is nothing to learn from."""
    if type(problem).known is Problem.known:
        raise InputError(
            f"{problem.name!r} knows no solutions of its instances to learn from: define "
            "known(tau), or train an operator, px.learn(problem)."
        )


class Lesson(lessons.Lesson):
    """A training under way: the network and the step that it learns by."""

    def __init__(
        self, problem: Problem, network: FixedNumber, rate: float, instances: int, seed: int
    ):
        self.problem, self.network = problem, network
        device = network.device
        generator = generator_for(seed, "train", device)
        self.noise = generator_for(seed, "refresh", device)
        if problem.sampled_on == "cpu":
            self.source = Fed(problem, instances, seed, device, whole)
        else:
            self.source = Drawn(problem, instances, generator, whole)
        self.optimizer = Optimizer(network, rate)
        self.loss = torch.zeros((), device=device)
        self.usual_norm = torch.full((), 1e3, device=device)  # of the gradient, running
        self.step_once: Callable[[], None] = captured(self._one_step, device, generator, self.noise)

    def step_at(self, step: int, rate: float) -> None:
        """Take the step of this number, at this learning rate."""
        self.optimizer.set_rate(rate)
        self.source.fill(step)
        with products_in(self.network.precision):
            self.step_once()

    def _one_step(self) -> None:
        problem, network = self.problem, self.network
        tau = problem.refresh(problem.look_up(self.source.take()), self.noise)
        known = problem.known(tau)
        assert known is not None
        loss = chamfer(network.space.opened, network(problem.observe(tau)), *known)
        loss.backward()
        _, shorter = shorten(self.optimizer.gather(), self.usual_norm)
        self.usual_norm.lerp_(shorter, 1 - KEPT)
        self.optimizer.step()
        self.loss.copy_(torch.where(self.loss.isfinite(), loss.detach(), self.loss))

    def read(self) -> float:
        """The loss of the last step; an error once it is no number."""
        loss = self.loss.item()
        if not math.isfinite(loss):
            raise TrainingError(
                "The chamfer distance to the known solutions stopped being a number: try a smaller "
                "rate."
            )
        return loss


def whole(batch: Batch) -> Batch:
    """All instances of a step: the training has one process."""
    return batch
