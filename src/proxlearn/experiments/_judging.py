"""What is true of an instance, found without an operator, and whether claims hold beside it."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

from proxlearn.calculus.certify import SADDLE, UNCONVERGED, certify
from proxlearn.calculus.derivatives import Expansion, eigh, in_double
from proxlearn.calculus.polish import polish
from proxlearn.common.batch import Batch
from proxlearn.common.seeds import generator_for
from proxlearn.problems.base import Problem
from proxlearn.solvers.solve import solve
from proxlearn.spaces import Space

# Lengths are shares of the diameter.
SAME = 1e-3  # two polished points nearer than this are the same optimum
RADII = (1e-4, 2e-4, 5e-4, 1e-3)  # of the spheres that are searched for a lower value
DIRECTIONS = 64  # random ones on each of them
FEWEST = 4  # starts that end at every optimum, if all of them are to be known
CHECKED_AT_ONCE = 256  # points
ROUNDING = 1e-12  # of a value, relative


class Truth(NamedTuple):
    """The optima of one instance."""

    optima: Float[Tensor, "k d"]
    known: bool  # whether these are surely all; else there are at least these
    reachable: int  # of them, those to which as many starts lead as an operator is given


def true_optima(problem: Problem, tau: Batch, starts: int, few: int, seed: int = 0) -> Truth:
    """The distinct, isolated minima that multistart L-BFGS finds, polished and checked. They count
    as all if each was found by several starts; `few` of the starts tell how many are `reachable`.
    """
    begun = solve(problem, tau, "lbfgs", starts, seed=seed + 1, device="cpu").points
    found = polish(problem, tau, problem.space.project(begun))
    codes = certify(problem, tau, found)[0]
    converged = (codes != UNCONVERGED) & (codes != SADDLE)
    first = torch.arange(starts) < few
    values = problem.objective(found, tau)[0]
    order = values.argsort()[converged[values.argsort()]]
    optima, members = distinct(problem.space, found[0][order])
    right = are_isolated(problem, tau, optima).tolist()
    kept = [each for each, good in zip(members, right) if good]
    known = bool(kept) and all(len(each) >= FEWEST for each in kept)
    reachable = sum(bool(first[order[each]].any()) for each in kept)
    return Truth(optima[torch.tensor(right, dtype=torch.bool)], known, reachable)


def distinct(
    space: Space, points: Float[Tensor, "n d"], same: float = SAME
) -> tuple[Tensor, list[Tensor]]:
    """Points of which no two are within `same`, a share of the diameter, the first ones first; and
    which points each stands for."""
    left, chosen, members = torch.arange(len(points)), [], []
    while len(left):
        far = space.pairwise(points[left[:1]], points[left])[0] > same * space.diameter
        chosen.append(int(left[0]))
        members.append(left[~far])
        left = left[far]
    return points[chosen], members


def are_optima(problem: Problem, tau: Any, points: Float[Tensor, "k d"]) -> Bool[Tensor, " k"]:
    """Whether each point is a minimum, by values alone and in double precision: on some small
    sphere around it, within the space, no value is lower. A slope or a saddle has lower ones on
    every sphere."""
    value, around = lowest_around(problem, tau, points)
    return (around >= value - ROUNDING * value.abs()).any(0)


def are_isolated(problem: Problem, tau: Any, points: Float[Tensor, "k d"]) -> Bool[Tensor, " k"]:
    """Whether each is one by itself: on some small sphere all values are higher, which none is on
    a plateau."""
    value, around = lowest_around(problem, tau, points)
    return (around > value + ROUNDING * value.abs()).any(0)


@torch.no_grad()
def lowest_around(
    problem: Problem, tau: Any, points: Float[Tensor, "k d"]
) -> tuple[Float[Tensor, " k"], Float[Tensor, "r k"]]:
    """The value of each point, and the lowest one on each of some spheres around it."""
    if not len(points):
        none = torch.zeros(0, dtype=torch.float64)
        return none, none.expand(len(RADII), 0)
    some = [_lowest_around(problem, tau, each) for each in points.split(CHECKED_AT_ONCE)]
    values, around = zip(*some)
    return torch.cat(values), torch.cat(around, 1)


def _lowest_around(problem: Problem, tau: Any, points: Tensor) -> tuple[Tensor, Tensor]:
    """Directions are random ones, downhill, and those in which the objective curves."""
    space = problem.space
    x, tau = in_double(problem, space.project(points)[None], tau)
    basis = space.tangent(x)
    expansion = Expansion(problem, x, tau, basis)
    _, axes = eigh(expansion.hessian().nan_to_num(0, 0, 0))
    noise = torch.randn(*axes.shape[:-1], DIRECTIONS, generator=generator_for(0, "directions"))
    along = torch.cat((axes, -axes, -expansion.slope[..., None], noise.to(x)), -1)
    ways, lowest = (basis @ normalize(along, dim=-2)).mT, []  # (1 k m d)
    for radius in RADII:
        step = radius * space.diameter
        tried = space.project(x[..., None, :] + step * ways)
        values = problem.objective(tried.flatten(1, 2), tau).unflatten(1, tried.shape[1:3])
        moved = (tried - x[..., None, :]).norm(dim=-1) > step / 2  # and not held by a bound
        lowest.append(torch.where(moved, values, torch.inf).amin(-1)[0])
    return expansion.value[0], torch.stack(lowest)
