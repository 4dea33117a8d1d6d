"""Training a particle swarm, so that it makes the objective small all along its way."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from proxlearn.calculus.derivatives import gradient
from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch, Points
from proxlearn.common.checks import count, flag, positive, seed_of
from proxlearn.common.memory import afford
from proxlearn.common.provenance import machine, versions
from proxlearn.common.seeds import generator_for
from proxlearn.errors import TrainingError
from proxlearn.gpu.capture import captured
from proxlearn.gpu.devices import pick_device
from proxlearn.problems.base import Problem, check_problem, sampled
from proxlearn.problems.objectives import check_differentiable, check_objective, values_of
from proxlearn.solvers.swarm.network import POPULATION, State, Swarm
from proxlearn.training import lessons
from proxlearn.training.progress import Bar
from proxlearn.training.settings import training_from

STEPS = 400  # of a training, by default
COPIES = 16  # of the points of a population that are held in memory, at least
ENTROPY = 0.05  # the weight of the entropy in the loss


def meta_loss(heights: Float[Tensor, "t i n"]) -> tuple[Float[Tensor, ""], Float[Tensor, "t i n"]]:
    """The loss, from the values that populations met on their way, and its derivative in each of
    them: the mean value, and how uncertain the best place still is. That is the entropy of the
    Boltzmann distribution over all places that a population has been to, which stands for the
    original's posterior over the global optimum."""
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
    """Train a swarm for a problem, for so many `steps` (default: `STEPS`) or `seconds`.

    A step moves `runs` populations `unroll` times and learns from where they went. The next step
    goes on from there, but for a tenth of them, which start afresh with other points and taus.
    """
    training_from({"steps": steps, "seconds": seconds, "rate": rate})  # for its checks
    for name, value in {"runs": runs, "unroll": unroll}.items():
        count(name, value)
    check_problem(problem)
    show = flag("progress", progress)
    picked, seed, rate = pick_device(device), seed_of(seed), positive("rate", rate)
    held = 4 * COPIES * runs * POPULATION * problem.space.dim  # bytes
    afford(held, f"{runs:,} populations", "give fewer runs", picked)
    check_differentiable(problem, "The training of a swarm")
    check_objective(problem, picked, seed)
    gpus = [picked] if picked.type == "cuda" else []
    with torch.random.fork_rng(gpus), Bar(f"swarm, {problem.name}", show) as bar:
        lesson = Lesson(problem, picked, rate, runs, unroll, seed)
        length = lessons.teach(lesson, bar, rate, steps or STEPS, seconds)
    lesson.swarm.provenance = {
        "problem": problem.name,
        **length,
        "training": {"rate": rate, "runs": runs, "unroll": unroll, "seed": seed},
        "versions": versions(),
        "machine": machine(picked),
    }
    return lesson.swarm.eval()


class Lesson(lessons.Lesson):
    """A training under way: populations on their way, and the step that learns from them.

    Gradients run back through the memory and the sum of all moves, and not through the features:
    the objective is differentiated once (Andrychowicz et al. 2016).
    """

    ages = 10  # unrolls that a population lives for

    def __init__(
        self, problem: Problem, device: torch.device, rate: float, runs: int, unroll: int, seed: int
    ):
        self.problem, self.unroll = problem, unroll
        self.generator = generator_for(seed, "swarm", device)
        torch.manual_seed(seed)
        self.group = math.ceil(runs / self.ages)  # populations that start afresh together
        tau, x = self._fresh(self.group * self.ages)
        height = values_of(problem, x, tau).detach().std().clamp(min=1e-12).item()
        self.swarm = Swarm(problem.space, height).to(device)
        self.tau = batches.tree_map(torch.clone, tau)
        self.state = State(*(each.clone() for each in self.swarm.begin(x)))
        self.rate, self.loss = torch.tensor(rate, device=device), torch.zeros((), device=device)
        weights, on_gpu = self.swarm.parameters(), device.type == "cuda"
        self.optimizer = torch.optim.Adam(weights, lr=self.rate, capturable=on_gpu)
        self.step_once = captured(self._one_step, device)

    def _fresh(self, count: int) -> tuple[Batch, Points]:
        """So many populations, each with a tau of its own."""
        own, space = self.generator, self.problem.space
        tau = sampled(self.problem, count, "train", own)
        return tau, space.sample(count, POPULATION, generator=own, device=own.device)

    def step_at(self, step: int, rate: float) -> None:
        """Take the step of this number, at this learning rate."""
        self.rate.fill_(rate)
        self.restart(step)
        self.step_once()

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
        # Once not finite, always.
        self.loss.copy_(torch.where(self.loss.isfinite(), loss, self.loss))
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
