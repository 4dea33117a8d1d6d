"""L-BFGS, for many points at once."""

from dataclasses import dataclass
from typing import NamedTuple

import torch

from proxlearn.calculus.derivatives import Held, gradient, held_back
from proxlearn.calculus.loop import Method
from proxlearn.common.batch import Points, Values
from proxlearn.problems.objectives import values_of

Pair = tuple[Points, Points]  # a step and its change of gradient


def downhill(slope: Points, pairs: list[Pair], held: Held | None = None) -> Points:
    """`-B slope` by the two-loop recursion, where B estimates the inverse Hessian from the last
    steps; `-slope` where that would lead uphill. Pairs without positive curvature are left out, and
    so are coordinates that bounds hold, in which the direction is 0."""
    if held is not None:
        slope = slope.masked_fill(held, 0.0)
        pairs = [(s.masked_fill(held, 0.0), y.masked_fill(held, 0.0)) for s, y in pairs]
    q, stack = slope, []
    scale = torch.ones_like(slope[..., :1])
    for step, change in reversed(pairs):
        product = (step * change).sum(-1, keepdim=True)
        curved = product > 1e-10
        if not stack:  # the last step
            scale = torch.where(curved, product / change.square().sum(-1, keepdim=True), scale)
        rho = torch.where(curved, 1 / product, 0.0)
        alpha = rho * (step * q).sum(-1, keepdim=True)
        q = q - alpha * change
        stack.append((step, change, rho, alpha))
    r = scale * q
    for step, change, rho, alpha in reversed(stack):
        r = r + step * (alpha - rho * (change * r).sum(-1, keepdim=True))
    uphill = (r * slope).sum(-1, keepdim=True) <= 0
    return -torch.where(uphill, slope, r)


class State(NamedTuple):
    """Where the points are, the objective there, and the last steps with their changes of slope."""

    x: Points
    value: Values
    slope: Points
    pairs: list[Pair]


@dataclass(frozen=True)
class QuasiNewton(Method):
    """L-BFGS with a backtracking line search of its own for every start, projected where there are
    bounds: coordinates that downhill would lead out of the space stay on the edge."""

    history: int = 8
    halvings: int = 20  # of the step length, before a start stays where it is

    def init(self, prepared, x):
        problem, tau = prepared
        return State(x, *gradient(problem, x, tau), [])

    def one_step(self, prepared, state):
        (problem, tau), (x, value, slope, pairs) = prepared, state
        held = held_back(problem.space, x, slope) if problem.space.closed else None
        direction = downhill(slope, pairs, held)
        if not pairs:  # no curvature known yet: a careful first step
            longest = 0.01 * problem.space.diameter
            norm = direction.norm(dim=-1, keepdim=True)
            direction = direction * (longest / norm.clamp(min=longest))
        new_x = self._search(problem, tau, x, value, slope, direction)
        new_value, new_slope = gradient(problem, new_x, tau)
        pairs = [*pairs, (new_x - x, new_slope - slope)][-self.history :]
        return State(new_x, new_value, new_slope, pairs)

    def _search(self, problem, tau, x, value, slope, direction):
        """The first of 1, 1/2, 1/4, ... of `direction` that lowers the value enough (Armijo)."""
        length, accepted = torch.ones_like(value), torch.zeros_like(value, dtype=torch.bool)
        best = x
        for _ in range(self.halvings):
            trial = problem.space.retract(x + length[..., None] * direction)
            expected = ((trial - x) * slope).sum(-1).clamp(max=0.0)  # less where an edge is met
            lower = values_of(problem, trial, tau) <= value + 1e-4 * expected
            best = torch.where((lower & ~accepted)[..., None], trial, best)
            accepted |= lower
            if accepted.all():
                break
            length = length / 2
        return best
