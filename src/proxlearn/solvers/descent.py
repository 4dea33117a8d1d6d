"""Particle descent (paper, section 4): every start follows the gradient on its own."""

from dataclasses import dataclass

import torch

from proxlearn.capture import captured
from proxlearn.derivatives import gradient
from proxlearn.settings import check_positive
from proxlearn.solvers import Solver


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
        x = starts.clone().requires_grad_()
        if self.adam:
            optimizer = torch.optim.Adam([x], lr=rate, capturable=x.is_cuda)
        else:
            optimizer = torch.optim.SGD([x], lr=rate)

        def step() -> None:
            x.grad = gradient(problem, x, tau)[1]
            optimizer.step()
            with torch.no_grad():
                x.copy_(problem.space.retract(x))

        step_once = captured(step, x.device)
        for _ in range(self.steps):
            step_once()
        return x.detach()
