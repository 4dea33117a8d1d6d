"""Particle descent (paper, section 4): every start follows the gradient on its own."""

from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.common.batch import Batch
from proxlearn.common.checks import check_positive
from proxlearn.gpu.capture import captured, compiled
from proxlearn.solvers.base import Solver

LONG = 30_000  # steps on a GPU from which on it pays to compile the objective


@dataclass(frozen=True)
class Descent(Solver):
    """Gradient descent, with Adam's step sizes unless `adam` is False."""

    steps: int = 4000
    rate: float | None = None  # None: 5e-4 of the space's diameter
    adam: bool = True

    def __post_init__(self):
        if self.rate is not None:
            check_positive("rate", self.rate)

    def run(self, problem, tau, starts):
        rate = 5e-4 * problem.space.diameter if self.rate is None else self.rate
        x = starts.clone(memory_format=torch.contiguous_format).requires_grad_()
        if self.adam:
            optimizer = torch.optim.Adam([x], lr=rate, fused=True, capturable=x.is_cuda)
        else:
            optimizer = torch.optim.SGD([x], lr=rate)

        def total(x: Tensor, tau: Batch) -> Tensor:
            return problem.objective(problem.space.retract(x), tau).sum()

        total = compiled(total) if x.is_cuda and self.steps >= LONG else total

        def step() -> None:
            with torch.enable_grad():
                (slope,) = torch.autograd.grad(total(x, tau), x)
            x.grad = slope.contiguous()  # the fused optimizer reads it number by number
            optimizer.step()
            with torch.no_grad():
                x.copy_(problem.space.retract(x))

        step_once = captured(step, x.device)
        for _ in range(self.steps):
            step_once()
        return x.detach()
