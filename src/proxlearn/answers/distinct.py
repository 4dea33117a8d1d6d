"""From the solutions of one instance to its distinct optima."""

from functools import reduce
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers.clusters import SMALLEST_SHARE, Cluster, Distance, clusters
from proxlearn.answers.optima import Optima, lowest, optima_of
from proxlearn.answers.verify import Ends, ends_of, joined, merged, some_of, stays_spread
from proxlearn.calculus.certify import BOUNDARY, CERTIFICATES, FLAT, MINIMUM
from proxlearn.calculus.derivatives import gradient
from proxlearn.errors import ObjectiveError
from proxlearn.problems.base import Problem

if TYPE_CHECKING:
    from proxlearn.answers.solutions import Solutions

OPTIMA = (MINIMUM, BOUNDARY, FLAT)  # the certificates of an optimum


def distinct_optima(
    found: "Solutions",
    tolerance: float,
    value_tolerance: float | None,
    smallest_share: float | None,
    verify: bool,
) -> Optima:
    """As `Solutions.unique`, which has checked what it was given."""
    kept, problem = found.inside[0], found.problem or Problem()
    if found.values is not None:
        kept = kept & found.values[0].isfinite()
    codes = None if found.certificates is None else found.certificates[0]
    if codes is not None:
        kept = kept & are_optima(codes)
    group = _Grouping(found, problem, kept, tolerance, value_tolerance)
    together = group.clusters()
    verified = codes is not None
    if verify and codes is None and can_verify(found):
        together, verified = group.verified(together), True
    starts = kept.numel()
    sure = verified or problem.discrete  # of which there is nothing in between
    least = (0.0 if sure else SMALLEST_SHARE) if smallest_share is None else smallest_share
    listed = [each for each in together if len(each.members) >= least * starts]
    counted = sum(len(each.members) for each in together)
    names = None if codes is None else [CERTIFICATES[code] for code in codes[kept].tolist()]
    return optima_of(
        listed,
        group.points,
        group.values,
        names,
        group.distance,
        tolerance,
        starts,
        verified=verified,
        unconverged=(int(found.inside.sum()) - counted) / starts,
        method=found.method,
        solutions=found,
    )


def are_optima(codes: Tensor) -> Tensor:
    """Which certificates are those of an optimum."""
    return torch.isin(codes, torch.tensor(OPTIMA, dtype=codes.dtype, device=codes.device))


def can_verify(found: "Solutions") -> bool:
    """Whether the objective is at hand to tell what solutions are, with its gradient."""
    problem, tau = found.problem, found.tau
    if problem is None or tau is None or found.values is None or problem.discrete:
        return False
    try:
        gradient(problem, found.points[:, :1], tau)
    except (RuntimeError, ObjectiveError):  # an objective that autograd does not see through
        return False
    return True


class _Grouping:
    """The solutions that are kept, and how they are grouped."""

    def __init__(
        self,
        found: "Solutions",
        problem: Problem,
        kept: Tensor,
        tolerance: float,
        value_tolerance: float | None,
    ):
        self.found, self.problem, self.space = found, problem, found.space
        self.points: Float[Tensor, "n d"] = problem.canonical(found.points[0][kept])
        self.values = None if found.values is None else found.values[0][kept]
        codes = found.certificates
        self.flat = None  # without certificates any point may be
        if codes is not None:
            self.flat = (codes[0][kept] == FLAT) | (codes[0][kept] == BOUNDARY)
        self.tolerance, self.value_tolerance = tolerance, value_tolerance

    @property
    def distance(self) -> Distance:
        """From every x to the nearest equivalent of every y."""
        space, problem = self.space, self.problem
        return lambda x, y: reduce(
            torch.minimum, (space.pairwise(x, each) for each in problem.images(y))
        )

    def clusters(self, members: Tensor | None = None) -> list[Cluster]:
        """Of all, or of some, among which there then is no continuum."""
        some = torch.arange(len(self.points)) if members is None else members
        flat = torch.zeros(len(some), dtype=torch.bool) if members is not None else self.flat
        made = clusters(
            self.points[some],
            None if self.values is None else self.values[some],
            self.distance,
            self.space.degrees,
            self.tolerance,
            self.value_tolerance,
            self.space.euclidean and type(self.problem).images is Problem.images,
            flat,
        )
        return [each._replace(members=some.numpy()[each.members]) for each in made]

    def verified(self, together: list[Cluster]) -> list[Cluster]:
        """Those that lead to optima: sets along which points rest, and places, one for every
        optimum that points of it lead to."""
        standing, places = [], []
        for each in together:
            if not self._is_set(each):
                places.append(each)
            elif stays_spread(self._ends(some_of(each)), self.distance, self.tolerance):
                standing.append(each)
            else:  # points on their way: each place on it by itself
                places += self.clusters(torch.from_numpy(each.members))
        ends = self._ends([self._best(each) for each in places])
        for k, one in enumerate(standing):  # what leads to a set is of it
            far = self.distance(ends.points, self.points[one.members]).amin(1)
            of_it = ends.flat & ends.optimal & (far <= max(one.gap, self.tolerance))
            more = [place for place, each in zip(places, of_it.tolist()) if each]
            standing[k] = joined([one, *more], one.dimension)._replace(gap=one.gap)
            ends = ends._replace(optimal=ends.optimal & ~of_it)
        return standing + merged(places, ends, self.distance, self.tolerance)

    def _ends(self, chosen: list[int]) -> Ends:
        return ends_of(self.problem, self.found.tau, self.points[chosen])

    def _is_set(self, cluster: Cluster) -> bool:
        if not cluster.dimension:
            return False
        one = self.points[[self._best(cluster)]]
        far = self.distance(one, self.points[cluster.members])
        return bool(far.square().mean().sqrt() > self.tolerance)

    def _best(self, cluster: Cluster) -> int:
        assert self.values is not None
        return lowest(cluster, self.values)
