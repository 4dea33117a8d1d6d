"""Optimizers at equal time: the library's own, Adam at three rates, and two that keep the curvature
of every matrix, SOAP and Shampoo. What are their operators worth after so many seconds?

    python benchmarks/optimizers.py --seconds 15 [--only FAMILY]

Conics are measured by witnessed precision at 0.05 after 5 applications, the l1 norm by how far the
operator is from the closed form, all others by the share of the optima of L-BFGS that have a point
within 2% of the diameter (as in benchmarks/ship.py, on other instances). Small families and short
trainings: a ranking, not figures to quote.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import torch
from _shared import Benchmark, options, show
from multimodal import LANDSCAPES
from ship import figures
from torch import Tensor

import proxlearn as px
from proxlearn.problems.base import Problem
from proxlearn.problems.maxcut import Maxcut
from proxlearn.problems.shrinkage import Shrinkage
from proxlearn.training import optimizer as optimizers
from proxlearn.training import session
from proxlearn.training.optimizer import ENTRIES, MOMENTUM, SMALLEST_SIDE, Optimizer

EVERY = 10  # steps between two looks at the curvature
OURS = Optimizer


class Curved(Optimizer, ABC):
    """All weights by Adam, but for matrices, which go by `direction`."""

    def __init__(self, module: torch.nn.Module, rate: float):
        optimizers.SMALLEST_SIDE = 1 << 30  # what is not a matrix to us is Adam's
        super().__init__(module, rate)
        optimizers.SMALLEST_SIDE = SMALLEST_SIDE
        self.taken = 0
        self.kept: dict[int, dict[str, Tensor]] = {}

    def matrices(self) -> Iterator[tuple[int, Tensor, Tensor]]:
        """(number, weights, gradient) of every matrix."""
        pieces = self.gradient.split([weight.numel() for weight in self.weights])
        for k, (weight, gradient) in enumerate(zip(self.weights, pieces)):
            if weight.dim() == 2 and min(weight.shape) >= SMALLEST_SIDE:
                yield k, weight.data, gradient.view(weight.shape)

    @torch.no_grad()
    def step_others(self) -> None:
        (rate,) = self.rates.values()
        self.taken += 1
        for k, weight, gradient in self.matrices():
            weight.sub_(rate * self.direction(k, gradient))
            gradient.zero_()  # so that Adam does not move it
        super().step_others()

    @abstractmethod
    def direction(self, k: int, gradient: Tensor) -> Tensor:
        """Of the matrix of this number, where it goes."""

    def curvature(self, k: int, g: Tensor) -> dict[str, Tensor]:
        """The running means of a matrix: of its gradient and of its two products with itself."""
        if k not in self.kept:
            sides = {"left": torch.zeros_like(g @ g.mT), "right": torch.zeros_like(g.mT @ g)}
            self.kept[k] = sides | {"mean": torch.zeros_like(g), "square": torch.zeros_like(g)}
        own = self.kept[k]
        own["left"].lerp_(g @ g.mT, 1 - MOMENTUM)
        own["right"].lerp_(g.mT @ g, 1 - MOMENTUM)
        own["mean"].lerp_(g, 1 - MOMENTUM)
        return own

    @property
    def looks(self) -> bool:
        return self.taken % EVERY == 1


class Soap(Curved):
    """Adam in the eigenvectors of the two products (Vyas et al., 2024)."""

    def direction(self, k, gradient):
        own = self.curvature(k, gradient)
        for side in ("left", "right"):
            if f"{side} basis" not in own:
                own[f"{side} basis"] = torch.linalg.eigh(own[side]).eigenvectors
            elif self.looks:
                own[f"{side} basis"] = torch.linalg.qr(own[side] @ own[f"{side} basis"]).Q
        left, right = own["left basis"], own["right basis"]
        own["square"].lerp_((left.mT @ gradient @ right).square(), 1 - MOMENTUM)
        begun = 1 - MOMENTUM**self.taken
        turned = left.mT @ own["mean"] @ right / begun
        return left @ (turned / ((own["square"] / begun).sqrt() + 1e-8)) @ right.mT


class Shampoo(Curved):
    """The mean gradient times the inverse fourth roots of the products (Gupta et al., 2018), as
    long as a step of ours."""

    def direction(self, k, gradient):
        own = self.curvature(k, gradient)
        if self.looks:
            for side in ("left", "right"):
                values, vectors = torch.linalg.eigh(own[side])
                root = (values.clamp(min=0) + 1e-6 * values[-1]).clamp(min=1e-30) ** -0.25
                own[f"{side} root"] = vectors * root @ vectors.mT
        step = own["left root"] @ own["mean"] @ own["right root"]
        return ENTRIES * math.sqrt(step.numel()) * step / step.norm().clamp(min=1e-30)


def by_adam(module: torch.nn.Module, rate: float) -> Optimizer:
    """Adam for every weight."""
    optimizers.SMALLEST_SIDE = 1 << 30
    made = Optimizer(module, rate)
    optimizers.SMALLEST_SIDE = SMALLEST_SIDE
    return made


WAYS: dict[str, tuple[Any, float | None]] = {
    "ours": (OURS, None),
    "Adam, 1e-3": (by_adam, 1e-3),
    "Adam, 3e-3": (by_adam, 3e-3),
    "Adam, 1e-2": (by_adam, 1e-2),
    "SOAP, 3e-3": (Soap, 3e-3),
    "SOAP, 6e-3": (Soap, 6e-3),
    "Shampoo, 6e-3": (Shampoo, 6e-3),
}


def families() -> dict[str, tuple[Problem, dict[str, Any]]]:
    """The problems, with settings of the training."""
    vincent = next(each for each in LANDSCAPES if each.name == "vincent")
    function = px.Problem.from_function(vincent.function, vincent.space, name="vincent")
    return {
        "conic": (px.problem("conic"), {"lam": 0.1}),
        "maxcut": (Maxcut(), {}),
        "sparse": (px.problem("sparse"), {}),
        "springs": (px.problem("springs"), {}),
        "peaks": (px.problem("peaks"), {}),
        "shrinkage": (Shrinkage(8), {"depth": 1}),
        "vincent": (function, {}),
    }


def worth(operator: px.Operator, problem: Problem, quick: bool) -> tuple[str, float]:
    """(what is measured, how much)."""
    if isinstance(problem, Shrinkage):
        operator = operator.to("cpu")
        x = problem.space.sample(1, 4096, generator=torch.Generator().manual_seed(5))
        y = operator.step(x, operator.prepare(operator.encode(torch.zeros(1, 0)))).detach()
        return "log10 of MSE/d", (y - problem.proximal(x)).square().mean().log10().item()
    (name, value), *_ = figures(operator, problem, *((2, 32) if quick else (16, 256))).items()
    return name, value


def trained(problem: Problem, how: dict[str, Any], quick: bool) -> tuple[int, str, float]:
    """(steps made, what is measured, how much); of a training that went astray, nan."""
    try:
        operator = px.learn(problem, **how)
    except (px.TrainingError, torch.linalg.LinAlgError):  # pyright: ignore[reportPrivateImportUsage]
        return 0, "diverged", math.nan
    return operator.provenance["steps"], *worth(operator, problem, quick)


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="training time of each")
    parser.add_argument("--only", action="append", help="a family (may be given again)")
    run = Benchmark("optimizers", parser.parse_args(arguments))
    seconds = 0.1 if run.quick else run.asked.seconds
    only = ("conic",) if run.quick else tuple(run.asked.only or families())
    for family, (problem, settings) in families().items():
        if family not in only:
            continue
        for way, (kind, rate) in WAYS.items():
            session.Optimizer = kind
            how = settings | {"seconds": seconds, "rate": rate, "applications": 30}
            how |= {"device": run.device.type, "progress": False}
            steps, figure, value = trained(problem, how, run.quick)
            run.add(family=family, optimizer=way, steps=steps, figure=figure, value=value)
            print(f"{family:10} {way:14} {steps:6} steps  {figure} {value:.3f}", flush=True)
    session.Optimizer = OURS
    lines = [[e[key] for key in ("family", "optimizer", "steps", "value")] for e in run.rows]
    show("Optimizers at equal time", ("family", "optimizer", "steps", "value"), lines)
    run.save()


if __name__ == "__main__":
    main()
