"""Following optima along a path: the tangent predicts, Newton steps correct, the step adapts."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from proxlearn.branches.path import Path, Stations, corrected, joined

WIDTH = 1e-5  # of s: where a step as short fails, the branch has ended
LEAP = 0.05  # the farthest that one step may lead, of the diameter
MISS = 0.25  # a step fits if both ends predict each other up to this share of it,
SLACK = 1e-5  # or of the diameter
MOST_STEPS = 400  # of one following


class Way(NamedTuple):
    """Where following an optimum led: every place on its way, itself first."""

    trail: Stations
    reached: bool  # as far as it was to be followed
    gave_up: bool  # after too many steps, neither there nor at an end
    width: float  # of s: how exactly an end is known

    @property
    def end(self) -> Stations:
        """The last place, alone."""
        return self.trail[-1:]

    def back(self) -> "Way":
        """The same from its end to its beginning."""
        return self._replace(trail=self.trail[list(range(len(self.trail)))[::-1]])

    def after(self, earlier: "Way") -> "Way":
        """The same with what came before it."""
        return self._replace(trail=joined([earlier.trail, self.trail[1:]]))


@torch.no_grad()
def followed(
    path: Path, begun: Stations, goals: Float[Tensor, " p"], width: float = WIDTH
) -> list[Way]:
    """Follow optima, all at once, each to the s that is its goal, forwards or backwards.

    A step fits if the optimum it leads to is where the tangent at its beginning says, and its
    beginning is where the tangent at its end says. So a step over a fold, or into another basin,
    is none; it is halved, down to `width`.
    """
    now, trails = begun, [[begun[k : k + 1]] for k in range(len(begun))]
    step, fitted = goals - begun.s, torch.ones_like(begun.optimal)
    moving = step != 0
    for _ in range(MOST_STEPS):
        some = moving.nonzero()[:, 0]
        if not len(some):
            break
        here = now[some]
        stride = _stride(path, here, step[some], goals[some])
        s = torch.where(stride == goals[some] - here.s, goals[some], here.s + stride)
        ahead = here.points + here.slopes * stride[:, None]
        there = corrected(path, s, path.problem.space.retract(ahead))
        good = there.optimal & _fits(path, here, there, stride)
        for k, one in zip(some[good].tolist(), good.nonzero()[:, 0].tolist()):
            trails[k].append(there[one : one + 1])
        now = _replaced(now, some[good], there[good])
        grown = torch.where(fitted[some], 2 * stride, stride)
        step[some] = torch.where(good, grown, stride / 2)
        fitted[some] = good
        moving[some] = torch.where(good, there.s != goals[some], stride.abs() > width)
    arrived = (now.s == goals).tolist()
    return [Way(joined(t), a, m, width) for t, a, m in zip(trails, arrived, moving.tolist())]


def _stride(path: Path, here: Stations, step: Tensor, goals: Tensor) -> Tensor:
    """The step of s: no farther than the goal, and x moves by no leap."""
    speed = here.slopes.norm(dim=-1).clamp(min=torch.finfo(step.dtype).tiny)
    most = torch.minimum(step.abs(), LEAP * path.problem.space.diameter / speed)
    left = goals - here.s
    return torch.where(most >= left.abs(), left, left.sign() * most)


def _fits(path: Path, here: Stations, there: Stations, stride: Tensor) -> Bool[Tensor, " p"]:
    space = path.problem.space
    moved = space.squared_distance(here.points, there.points).sqrt()
    ahead = space.retract(here.points + here.slopes * stride[:, None])
    behind = space.retract(there.points - there.slopes * stride[:, None])
    miss = torch.maximum(
        space.squared_distance(ahead, there.points), space.squared_distance(behind, here.points)
    ).sqrt()
    return miss <= MISS * moved + SLACK * space.diameter


def _replaced(all_of_them: Stations, which: Tensor, by: Stations) -> Stations:
    pairs = zip(all_of_them.tensors(), by.tensors())
    return Stations(*(old.index_copy(0, which, new) for old, new in pairs))
