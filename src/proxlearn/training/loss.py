"""The loss of a training step: a rule on a problem's objective, whole or a process's part of it."""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.batch import Batch, Points
from proxlearn.gpu.parallel import WHOLE, Part
from proxlearn.problems.base import Problem
from proxlearn.training.rules import Rule, Terms


class Loss:
    """A function of (y, x, tau, lam): the terms of the loss of going from x to y, and its gradient
    in y. Where y is only `part` of a step, the terms are means over that part, and the gradient is
    that of the mean over all. `compiled` is what its pieces go through first."""

    def __init__(
        self, rule: Rule, problem: Problem, compiled: Callable | None = None, part: Part = WHOLE
    ):
        wrap = compiled or (lambda function: function)
        self.terms = wrap(partial(rule.terms, problem))
        self.usual, self.weigh, self.part = wrap(rule.usual), wrap(rule.weigh), part

    def __call__(
        self, y: Points, x: Points, tau: Batch, lam: Float[Tensor, " i"]
    ) -> tuple[Terms, Points]:
        y = y.detach().requires_grad_()
        terms = self.terms(y, x, tau, lam)
        loss = terms["loss"]
        (slope,) = torch.autograd.grad(loss, y, torch.full_like(loss, self.part.weight))
        usual = self.part.average(self.usual(slope))
        return {name: term.detach() for name, term in terms.items()}, self.weigh(slope, usual)
