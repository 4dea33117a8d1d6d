"""Rules: the loss an operator is trained with, given points x and instances tau."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from proxlearn.common.batch import Batch, Points, Values
from proxlearn.errors import InputError
from proxlearn.gpu.parallel import WHOLE, Part
from proxlearn.problems.base import Problem
from proxlearn.problems.objectives import check_has_gradient, values_of
from proxlearn.spaces.base import Space, constant

LOST = 100.0  # diameters outside the space, where an objective may overflow and is not asked for
STEEP = 10.0  # where slopes are noisy, one counts at most this many times the usual one
FLAT = 1e-4  # where they are not, one this many times the usual one, and less, is taken for none
Terms = dict[str, Tensor]  # what the loss is made of, for the progress bar; "loss" is their sum


class Rule(ABC):
    """What every rule promises."""

    lam: float
    lams: tuple[float, float] | None = None  # the range that it is drawn from, for every instance

    @abstractmethod
    def slope(
        self,
        problem: Problem,
        y: Points,
        x: Points,
        tau: Batch,
        lam: Float[Tensor, " i"],
        weight: float,
    ) -> tuple[Terms, Points]:
        """The loss of going from x to y, and its gradient in y, where every point's own loss counts
        `weight` times."""

    def weigh(self, slope: Points, noisy: bool, part: Part) -> Points:
        """Every point's gradient as it is to count."""
        return slope


@dataclass(frozen=True)
class Proximal(Rule):
    """The paper's POL, eq. (3): `f(Phi(x)) + lam/2 |Phi(x) - x|^2`.

    Where bounds bind, y may lie beyond them, and f is that of the point of the edge it becomes;
    the pull is that of y itself, so that the least of both is on the edge, and never outside."""

    lam: float
    lams: tuple[float, float] | None = None

    def slope(self, problem, y, x, tau, lam, weight):
        space = problem.space
        near = space.contains(y, LOST)[..., None]
        seen = torch.where(near, y, space.project(y)).requires_grad_()
        values = values_of(problem, space.retract(seen) if space.closed else seen, tau)
        check_has_gradient(problem, values)
        (slope,) = torch.autograd.grad(Given.apply(values, _constant(weight, values)), seen)
        squared, way = _apart(space, x, y)
        slope = torch.where(near, slope, _constant(0.0, slope))
        slope = slope.addcmul(lam[:, None, None].to(way), way, value=weight)
        value, pull = values.detach().mean(), (lam[:, None] * squared).mean() / 2
        return {"loss": value + pull, "value": value, "proximal": pull}, slope

    def weigh(self, slope, noisy, part):
        """Gradients of the usual length (a geometric mean), so that points on steep slopes and in
        flat valleys are learned alike; where slopes are noisy, only the longest are shortened. The
        minimizer of eq. (3) is found point by point: a weight on a point's loss does not move it.

        Points at rest in an image without boxes have no slope, and say nothing of how long one is.
        """
        norm = slope.norm(dim=-1, keepdim=True)
        there = norm.sign()
        logs = torch.xlogy(there, norm)  # 0 where there is none
        log, share = part.average(torch.stack((logs, there)).mean((1, 2, 3)))
        usual = (log / share.clamp(min=torch.finfo(share.dtype).tiny)).exp()
        if noisy:
            return slope * (STEEP * usual / norm).clamp(max=1.0)
        return slope / torch.hypot(norm / usual, _constant(FLAT, norm))


@dataclass(frozen=True)
class Gradient(Rule):
    """The paper's GOL, eq. (5): regression on the result of Q steps of gradient descent.
    A step is never longer than `longest`, a share of the space's diameter, so that a steep wall
    does not throw the target out of the space, and no gradient needs to be shortened."""

    rate: float  # the paper's eta
    descents: int = 10  # the paper's Q
    longest: float = 0.05
    lams: None = None  # it has no weight to draw

    @property
    def lam(self) -> float:
        """The proximal weight whose step is as long: 1 / (Q eta)."""
        return 1 / (self.descents * self.rate)

    def slope(self, problem, y, x, tau, lam, weight):
        target, longest = x.detach(), self.longest * problem.space.diameter
        for _ in range(self.descents):
            target.requires_grad_()
            values = values_of(problem, target, tau)
            check_has_gradient(problem, values)
            (gradient,) = torch.autograd.grad(values.sum(), target)
            step = self.rate * gradient
            step = step * (longest / step.norm(dim=-1, keepdim=True).clamp(min=longest))
            target = problem.space.retract(target.detach() - step)
        squared, way = _apart(problem.space, target, y)
        return {"loss": squared.mean()}, 2 * weight * way


class Given(torch.autograd.Function):
    """A function of (y, slope): a number whose gradient in y is the slope; it has no value.
    (`backward(y, slope)` does the same, but takes a second to import what it needs.)"""

    @staticmethod
    def forward(ctx: Any, y: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(slope)
        return y.new_empty(())

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return ctx.saved_tensors[0], None


def _apart(space: Space, x: Points, y: Points) -> tuple[Values, Points]:
    """The squared distance, and half its gradient in y."""
    if type(space).squared_distance is Space.squared_distance:
        way = y - x
        return way.square().sum(-1), way
    y = y.detach().requires_grad_()
    squared = space.squared_distance(x, y)
    (twice,) = torch.autograd.grad(squared.sum(), y)
    return squared.detach(), twice / 2


def _constant(value: float, like: Tensor) -> Tensor:
    """A number as a tensor that can stand for one of any shape."""
    return constant((value,), like).expand(like.shape)


class Loss:
    """A function of (y, x, tau, lam): the terms of the loss of going from x to y, and its gradient
    in y. Where y is only `part` of a step, the terms are means over that part, and the gradient is
    that of the mean over all."""

    def __init__(self, rule: Rule, problem: Problem, part: Part = WHOLE):
        self.rule, self.problem, self.part = rule, problem, part

    def __call__(
        self, y: Points, x: Points, tau: Batch, lam: Float[Tensor, " i"]
    ) -> tuple[Terms, Points]:
        weight = self.part.weight / math.prod(y.shape[:-1])
        terms, slope = self.rule.slope(self.problem, y.detach(), x, tau, lam, weight)
        return terms, self.rule.weigh(slope, self.problem.noisy, self.part)


def of_ratings(
    problem: Problem, ratings: Values, x: Points, tau: Batch, part: Part = WHOLE
) -> tuple[Tensor, Values]:
    """How far a network's ratings (logits) are from how good the points are: the cross entropy, and
    its gradient, of a part of a step as above."""
    quality = problem.quality(x.detach(), tau)
    if quality is None:
        raise InputError(
            f"This network learns how good a point is, and problem {problem.name!r} does not say: "
            "define quality(x, tau), from 0 to 1, or take the architecture with rates=False."
        )
    ratings = ratings.detach()
    off = binary_cross_entropy_with_logits(ratings, quality.to(ratings.dtype))
    return off, (ratings.sigmoid() - quality) * (part.weight / ratings.numel())
