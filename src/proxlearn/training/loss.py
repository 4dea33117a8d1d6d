"""Rules: the loss an operator is trained with, given points x and instances tau."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from proxlearn.common.batch import Batch, Points, Values
from proxlearn.errors import InputError
from proxlearn.gpu.parallel import WHOLE, Part
from proxlearn.problems.base import Problem
from proxlearn.problems.objectives import check_has_gradient, values_of

LOST = 100.0  # diameters outside the space, where an objective may overflow and is not asked for
STEEP = 10.0  # where slopes are noisy, one counts at most this many times the usual one
FLAT = 1e-4  # where they are not, one this many times the usual one, and less, is taken for none
Terms = dict[str, Tensor]  # what the loss is made of, for the progress bar; "loss" is their sum


class Rule(ABC):
    """What every rule promises."""

    lam: float
    lams: tuple[float, float] | None = None  # the range that it is drawn from, for every instance

    @abstractmethod
    def terms(
        self, problem: Problem, y: Points, x: Points, tau: Batch, lam: Float[Tensor, " i"]
    ) -> Terms:
        """The loss of going from x to y."""

    def usual(self, slope: Points) -> Float[Tensor, "2"]:
        """Of what the logarithm of a gradient's usual length is the ratio, where `weigh` compares
        with that: two means over all points."""
        return slope.new_zeros(2)

    def weigh(self, slope: Points, usual: Float[Tensor, ""], noisy: bool) -> Points:
        """Every point's gradient as it is to count."""
        return slope


@dataclass(frozen=True)
class Proximal(Rule):
    """The paper's POL, eq. (3): `f(Phi(x)) + lam/2 |Phi(x) - x|^2`.

    Where bounds bind, y may lie beyond them, and f is that of the point of the edge it becomes;
    the pull is that of y itself, so that the least of both is on the edge, and never outside."""

    lam: float
    lams: tuple[float, float] | None = None

    def terms(self, problem, y, x, tau, lam):
        near = problem.space.contains(y.detach(), LOST)[..., None]
        seen = torch.where(near, y, problem.space.project(y.detach()))
        if problem.space.closed:
            seen = problem.space.retract(seen)
        values = values_of(problem, seen, tau)
        check_has_gradient(problem, values)
        value = values.mean()
        pull = (lam[:, None] / 2 * problem.space.squared_distance(x, y)).mean()
        return {"loss": value + pull, "value": value, "proximal": pull}

    def usual(self, slope):
        """The logarithms of the lengths, and which points have a slope: at rest in an image without
        boxes, they have none, and say nothing of how long one is."""
        norm = slope.norm(dim=-1)
        there = norm != 0
        logs = torch.where(there, norm.clamp(min=1e-30), 1.0).log()
        return torch.stack((logs.mean(), there.to(logs).mean()))

    def weigh(self, slope, usual, noisy):
        """Gradients of the usual length (a geometric mean), so that points on steep slopes and in
        flat valleys are learned alike; where slopes are noisy, only the longest are shortened. The
        minimizer of eq. (3) is found point by point: a weight on a point's loss does not move it.
        """
        norm, usual = slope.norm(dim=-1, keepdim=True).clamp(min=1e-30), usual.exp()
        if noisy:
            return slope * (STEEP * usual / norm).clamp(max=1.0)
        return slope * (usual / torch.hypot(norm, FLAT * usual))


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

    def terms(self, problem, y, x, tau, lam):
        target, longest = x.detach(), self.longest * problem.space.diameter
        for _ in range(self.descents):
            target.requires_grad_()
            values = values_of(problem, target, tau)
            check_has_gradient(problem, values)
            (gradient,) = torch.autograd.grad(values.sum(), target)
            step = self.rate * gradient
            step = step * (longest / step.norm(dim=-1, keepdim=True).clamp(min=longest))
            target = problem.space.retract(target.detach() - step)
        return {"loss": problem.space.squared_distance(y, target).mean()}


class Loss:
    """A function of (y, x, tau, lam): the terms of the loss of going from x to y, and its gradient
    in y. Where y is only `part` of a step, the terms are means over that part, and the gradient is
    that of the mean over all."""

    def __init__(self, rule: Rule, problem: Problem, part: Part = WHOLE):
        self.rule, self.problem, self.part = rule, problem, part

    def __call__(
        self, y: Points, x: Points, tau: Batch, lam: Float[Tensor, " i"]
    ) -> tuple[Terms, Points]:
        y = y.detach().requires_grad_()
        terms = self.rule.terms(self.problem, y, x, tau, lam)
        (slope,) = torch.autograd.grad(self.part.weight * terms["loss"], y)
        logs, there = self.part.average(self.rule.usual(slope))
        usual = logs / there.clamp(min=torch.finfo(there.dtype).tiny)
        slope = self.rule.weigh(slope, usual, self.problem.noisy)
        return {name: term.detach() for name, term in terms.items()}, slope


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
