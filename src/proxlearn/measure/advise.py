"""Advice on lam: what theorem 3.1 asks of it, what that costs, and what a trained operator keeps.

The theorem (proposition A.2): if every f_tau is differentiable and xi-weakly convex with xi < lam,
and the loss of an operator Phi on its training data is within eps of the smallest there is, then
the mean of `|Phi(x) - prox(x)|^2` over that data is at most `2 eps / (lam - xi)`.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.calculus.curvature import Curvature, survey
from proxlearn.calculus.derivatives import in_double
from proxlearn.calculus.polish import damped_descent
from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch, Points
from proxlearn.common.checks import at_least_zero, seed_of
from proxlearn.common.seeds import generator_for
from proxlearn.gpu.devices import pick_device
from proxlearn.operators.operator import Operator, check_operator
from proxlearn.problems.base import Problem, check_problem, held_out
from proxlearn.problems.objectives import check_objective, values_of
from proxlearn.training.settings import estimate_lam

INSTANCES, POINTS = 32, 32  # test taus, and points of each
STEPS = 100  # of Newton's method to an optimum or to a proximal point


@dataclass(frozen=True)
class Measured:
    """An operator's one application beside the true proximal step, on test taus and uniform points,
    where the theorem speaks of the training data."""

    lam: float  # that it was trained with, or that was asked for of its range
    gap: float  # eps: how far its loss is above the smallest
    error: float  # the mean squared distance to the true proximal points
    bound: float | None  # of that error, 2 eps / (lam - xi); None where lam <= xi

    def sentence(self) -> str:
        """What was measured, in words."""
        bound = "the theorem gives no bound for it, as lam <= xi"
        if self.bound is not None:
            bound = f"the theorem's bound 2 eps / (lam - xi) is {self.bound:.3g}"
        return (
            f"One application of the operator (lam = {self.lam:.4g}) has a loss {self.gap:.3g} "
            "above that of the true proximal step and a mean squared distance to it of "
            f"{self.error:.3g}; {bound}."
        )


@dataclass(frozen=True)
class Advice:
    """What is known of one lam for a problem."""

    problem: str
    lam: float
    curvature: Curvature
    distance: float  # from the median start to the optimum downhill of it
    operator: Measured | None = None

    @property
    def holds(self) -> bool:
        """Whether the theorem's condition does: lam above the weak convexity constant."""
        return not self.curvature.ridged and self.lam > self.curvature.weak_convexity

    def applications(self, lam: float) -> int:
        """Roughly how many it takes to cross a basin: a proximal step is `slope / lam` long, and
        the optimum is `distance` away."""
        return max(1, math.ceil(lam * self.distance / max(self.curvature.slope, 1e-30)))

    def sentences(self) -> list[str]:
        """The advice in words."""
        known = self.curvature
        smooth = f"The gradient has a Lipschitz constant of at least {known.lipschitz:.4g}."
        if known.kinked:
            smooth = "The gradient jumps somewhere, so it has no Lipschitz constant."
        said = [self._condition(), smooth]
        return said if self.operator is None else [*said, self.operator.sentence()]

    def as_dict(self) -> dict[str, Any]:
        """The advice as JSON."""
        return asdict(self) | {"holds": self.holds, "applications": self.applications(self.lam)}

    def _condition(self) -> str:
        xi = self.curvature.weak_convexity
        now = f"with lam = {self.lam:.4g} it takes {self._cost(self.lam)} to cross a basin"
        if self.curvature.ridged:
            return (
                "The objective has ridges where its gradient jumps, so it is not weakly convex and "
                f"no lam meets the condition of theorem 3.1; {now}."
            )
        if self.holds:
            return f"The condition of theorem 3.1 holds, as lam > xi = {xi:.4g}; {now}."
        return (
            f"The condition of theorem 3.1 does not hold: it asks for lam > xi = {xi:.4g}, with "
            f"which it would take {self._cost(xi)} to cross a basin; {now}, but a point may leap "
            "into another one."
        )

    def _cost(self, lam: float) -> str:
        count = self.applications(lam)
        return "about one application" if count == 1 else f"about {count:,} applications"


def advise(
    problem: Problem,
    operator: Operator | None = None,
    lam: float | None = None,
    seed: int = 0,
    device: str = "auto",
) -> Advice:
    """Survey the objective and say what a lam is worth: the one given, or the operator's, or the
    problem's own, or the one that training would estimate."""
    lam, seed = None if lam is None else at_least_zero("lam", lam), seed_of(seed)
    check_problem(problem)
    if operator is not None:
        check_operator(operator)
        operator.check_fits(problem)
    picked = pick_device(device)
    check_objective(problem, picked, seed)
    if lam is None:
        lam = problem.lam if operator is None else operator.lam
    lam = estimate_lam(problem, picked, seed) if lam is None else lam
    curvature = survey(problem, picked, seed)
    x, tau = in_double(problem, *_test_points(problem, picked, seed))
    found = damped_descent(problem, tau, x, STEPS)
    distance = problem.space.squared_distance(x, found).sqrt().median().item()
    measured = None
    if operator is not None:
        own = lam if operator.lams else operator.lam  # one of a range, or the only one there is
        measured = _measure(problem, operator.to(picked), own, curvature, seed)
    return Advice(problem.name, float(lam), curvature, distance, measured)


def _test_points(problem: Problem, device: torch.device, seed: int) -> tuple[Points, Batch]:
    """Uniform points, and the test instances that they are of."""
    tau = held_out(problem, INSTANCES, seed, device)
    generator = generator_for(seed, "advise")
    return problem.space.sample(batches.size(tau), POINTS, generator=generator).to(device), tau


def _measure(
    problem: Problem, operator: Operator, lam: float, curvature: Curvature, seed: int
) -> Measured:
    """Compare one application with the true proximal step of this lam, point by point."""
    x, tau = _test_points(problem, operator.device, seed)
    observed = problem.observe(tau)
    (once,) = operator.seeing(observed, None).apply(x, (1,), lam)
    x, tau = in_double(problem, x, tau)
    own = lam * operator.network.lam_scale(observed).to(x)
    gap, error = proximal_gap(problem, tau, x, once.points.to(x), own)
    room = own.min().item() - curvature.weak_convexity
    bound = 2 * gap / room if room > 0 and not curvature.ridged else None
    return Measured(lam, gap, error, bound)


class _Anchored(Problem):
    """`f(y) + lam/2 |y - x|^2`, with (tau, x, lam) as its tau: one instance for each x."""

    def __init__(self, problem: Problem):
        self.problem, self.space = problem, problem.space

    def objective(self, x, tau):
        inner, anchor, lam = tau
        away = self.space.squared_distance(anchor[:, None].expand_as(x), x)
        return values_of(self.problem, x, inner) + lam[:, None] / 2 * away


@torch.no_grad()
def proximal_gap(
    problem: Problem, tau: Batch, x: Points, y: Points, lam: Float[Tensor, " i"]
) -> tuple[float, float]:
    """The mean loss of going from x to y less that of the true proximal step, and the mean squared
    distance between the two. The true one is the better of what Newton's method finds from y and
    from x; for lam > xi there is but one."""
    anchored, (i, n, _) = _Anchored(problem), x.shape
    each = torch.arange(i, device=x.device).repeat_interleave(n)
    repeated, lams = batches.select((tau, lam), each)
    both = (repeated, x.flatten(0, 1), lams)
    begun = torch.stack((y.flatten(0, 1), x.flatten(0, 1)), 1)
    found = damped_descent(anchored, both, begun, STEPS)
    loss, best = anchored.objective(found, both).min(1, keepdim=True)
    true = found.take_along_dim(best[..., None], 1)
    gap = anchored.objective(begun[:, :1], both) - loss
    return gap.mean().item(), problem.space.squared_distance(begun[:, :1], true).mean().item()
