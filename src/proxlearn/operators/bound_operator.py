"""An operator bound to the instances that it is to solve."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torch import Tensor

from proxlearn.answers.notices import warned
from proxlearn.answers.solutions import Solutions
from proxlearn.answers.starts import UNSEEN_LEVEL, from_starts
from proxlearn.calculus.loop import Loop, Method
from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch, Points
from proxlearn.common.checks import steps_of
from proxlearn.errors import InputError
from proxlearn.gpu.precision import products_in
from proxlearn.operators.applying import Applying, Arriving, Lam, several
from proxlearn.operators.rising import Rising
from proxlearn.operators.settling import Settling
from proxlearn.problems.base import Problem
from proxlearn.spaces import Space

if TYPE_CHECKING:
    from proxlearn.operators.operator import Operator

MOST_APPLICATIONS = 100  # where an operator knows when a point has arrived


@dataclass(frozen=True)
class Bound:
    """An operator, the instances as it observes them, and the space of their solutions. `tau` are
    the whole instances; None where only what is observed is known, which gives no values."""

    operator: "Operator"
    space: Space
    observed: Batch
    problem: Problem | None = None
    tau: Batch | None = None

    def __len__(self) -> int:
        """How many instances."""
        return batches.size(self.observed)

    def answer(
        self,
        run: Callable[[Points], Solutions],
        starts: int | str | Tensor,
        seed: int = 0,
        unseen_level: float = UNSEEN_LEVEL,
        mend: Callable[[Solutions], Solutions] | None = None,
    ) -> Solutions:
        """What `run(points)` finds from these starts, with values where there is an objective, and
        with doubts; `mend` may replace solutions that are in doubt."""

        def judged(points: Tensor) -> Solutions:
            found = replace(run(points), problem=self.problem, method="operator")
            if self.problem is not None and self.tau is not None:
                found = found.with_values(self.problem, self.tau)
            found = found.doubted(self.operator.instances.knows(self.observed))
            return mend(found) if mend else found

        device, count = self.operator.device, len(self)
        found = from_starts(judged, self.space, count, starts, seed, device, unseen_level)
        return warned(found)

    def run(self, starts: Points, steps: int | None, lam: Lam) -> Solutions:
        """So many applications; None: until every point has arrived, or the usual number."""
        operator, steps = self.operator, None if steps is None else steps_of(steps)
        if steps is None and operator.stops and not several(lam):
            return self.arrive(starts, (MOST_APPLICATIONS,), lam)[0]
        return self.apply(starts, (operator.applications if steps is None else steps,), lam)[0]

    def apply(self, starts: Points, at: Sequence[int], lam: Lam = None) -> list[Solutions]:
        """`Phi^k(starts)` for each k of `at`, ascending."""
        at = [steps_of(each) for each in at]
        lams = self.operator.lam_of_each(lam, max(at))
        return self.follow(Applying(self.operator, self.space, lams), self.observed, starts, at)

    def arrive(self, starts: Points, at: Sequence[int], lam: Lam = None) -> list[Solutions]:
        """Applied until every point has arrived, at most k times for each k of `at`; one that left
        the space has not arrived and is where it went."""
        at = [steps_of(each) for each in at]
        if several(lam):
            raise InputError("Points arrive with one lam, not with a schedule of several.")
        operator = self.operator
        lam = None if lam is None else operator.lam_of_each(lam, 1)[0]
        method = _stopping(operator)(operator, self.space, lam)
        found = self.follow(method, self.observed, starts, at)
        return [replace(e, arrived=e.arrived & e.inside) for e in found if e.arrived is not None]

    def follow(
        self, method: Method, tau: Batch, starts: Points, at: Sequence[int]
    ) -> list[Solutions]:
        """Where a method of the operator takes the starts, after each of so many steps."""
        with products_in(self.operator.precision):
            every = Loop(method, self.problem, tau, starts).curve(at)
        return [
            replace(
                Solutions.of(self.space, each.x, starts, k if each.steps is None else each.steps),
                arrived=each.arrived,
                quality=each.quality,
            )
            for k, each in zip(at, every)
        ]


def _stopping(operator: "Operator") -> type[Arriving] | type[Rising] | type[Settling]:
    """The method by which the operator's points stop by themselves."""
    if operator.arrival is None and operator.network.rates:
        return Rising
    if operator.arrival is None and operator.network.settles:
        return Settling
    return Arriving
