"""Rules: the loss an operator is trained with, given points x and instances tau."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.batch import Batch
from proxlearn.problems.base import Problem

STEEP = 10.0  # a point's gradient counts at most this many times the usual (geometric mean) one
Terms = dict[str, Tensor]  # what the loss is made of, for the progress bar; "loss" is their sum


@dataclass(frozen=True)
class Proximal:
    """The paper's POL, eq. (3): `f(Phi(x)) + lam/2 |Phi(x) - x|^2`."""

    lam: float
    lams: tuple[float, float] | None = None  # the range that it is drawn from, for every instance

    def terms(
        self,
        problem: Problem,
        y: Float[Tensor, "i n d"],
        x: Float[Tensor, "i n d"],
        tau: Batch,
        lam: Float[Tensor, " i"],
    ) -> Terms:
        """The loss of going from x to y."""
        value = problem.objective(y, tau).mean()
        pull = (lam[:, None] / 2 * problem.space.squared_distance(x, y)).mean()
        return {"loss": value + pull, "value": value, "proximal": pull}

    def usual(self, slope: Float[Tensor, "i n d"]) -> Float[Tensor, ""]:
        """The logarithm of a gradient's usual length."""
        return slope.norm(dim=-1).clamp(min=1e-30).log().mean()

    def weigh(
        self, slope: Float[Tensor, "i n d"], usual: Float[Tensor, ""]
    ) -> Float[Tensor, "i n d"]:
        """Shorten the gradients of points that are far longer than usual, so that a few points on
        a steep slope do not outweigh all others. The minimizer of eq. (3) is found point by point,
        so a weight on a point's loss does not move it.
        """
        norm = slope.norm(dim=-1, keepdim=True).clamp(min=1e-30)
        return slope * (STEEP * usual.exp() / norm).clamp(max=1.0)


@dataclass(frozen=True)
class Gradient:
    """The paper's GOL, eq. (5): regression on the result of Q steps of gradient descent.

    A step is never longer than `longest`, a share of the space's diameter, so that a steep wall
    does not throw the target out of the space.
    """

    rate: float  # the paper's eta
    descents: int = 10  # the paper's Q
    longest: float = 0.05
    lams: None = None  # it has no weight to draw

    @property
    def lam(self) -> float:
        """The proximal weight whose step is as long: 1 / (Q eta)."""
        return 1 / (self.descents * self.rate)

    def terms(
        self,
        problem: Problem,
        y: Float[Tensor, "i n d"],
        x: Float[Tensor, "i n d"],
        tau: Batch,
        lam: Float[Tensor, " i"],
    ) -> Terms:
        """The loss of going from x to y."""
        target = self._descend(problem, x, tau)
        return {"loss": problem.space.squared_distance(y, target).mean()}

    def usual(self, slope: Float[Tensor, "i n d"]) -> Float[Tensor, ""]:
        """Nothing that a gradient is compared with."""
        return slope.new_zeros(())

    def weigh(
        self, slope: Float[Tensor, "i n d"], usual: Float[Tensor, ""]
    ) -> Float[Tensor, "i n d"]:
        """Every point's gradient counts as it is: none is longer than the space allows."""
        return slope

    def _descend(
        self, problem: Problem, x: Float[Tensor, "i n d"], tau: Batch
    ) -> Float[Tensor, "i n d"]:
        longest = self.longest * problem.space.diameter
        y = x.detach()
        for _ in range(self.descents):
            y.requires_grad_()
            (gradient,) = torch.autograd.grad(problem.objective(y, tau).sum(), y)
            step = self.rate * gradient
            step = step * (longest / step.norm(dim=-1, keepdim=True).clamp(min=longest))
            y = problem.space.retract(y.detach() - step)
        return y


Rule = Proximal | Gradient
