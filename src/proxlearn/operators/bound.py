"""An operator bound to the instances it is to solve, and the loops that apply it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.answers.starts import UNSEEN_LEVEL, from_starts
from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch
from proxlearn.common.checks import check_steps
from proxlearn.common.precision import products_in
from proxlearn.common.splitting import pieces
from proxlearn.errors import InputError
from proxlearn.networks.arrival import DOWN, Judged, one_more
from proxlearn.networks.base import Prepared
from proxlearn.operators.stopping import until_arrived
from proxlearn.problems.base import Problem
from proxlearn.spaces import Space

if TYPE_CHECKING:
    from proxlearn.operators.operator import Lam, Operator

ON_GPU = 1 << 19  # points in flight at once while solving: about 1 GiB at width 128
IN_CACHE = 1 << 12  # of them at once through the network on a CPU, so that layers stay in cache
USUAL_DIM = 16  # coordinates of a point; of points with more there are fewer at once
MOST_APPLICATIONS = 100  # where an operator knows when a point has arrived


def points_at_once(x: Tensor | None = None) -> int:
    """How many points go through the network together, where x is and with as many coordinates."""
    if x is None:
        return ON_GPU
    most = ON_GPU if x.is_cuda else IN_CACHE
    return max(1, most * USUAL_DIM // max(USUAL_DIM, x.shape[-1]))


@dataclass(frozen=True)
class Bound:
    """An operator, the instances as it observes them, and the space these have; `tau` is the whole
    of the instances, None where only what is observed is known, and with it no values are."""

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
        run: Callable[[Float[Tensor, "i n d"]], Solutions],
        starts: int | str | Tensor,
        seed: int = 0,
        unseen_level: float = UNSEEN_LEVEL,
    ) -> Solutions:
        """What `run(points)` finds from these starts, with values where the objective is at hand,
        and with doubts."""

        def judged(points: Tensor) -> Solutions:
            found = replace(run(points), problem=self.problem)  # for its symmetries
            if self.problem is not None and self.tau is not None:
                found = found.valued(self.problem, self.tau)
            return found.doubted(self.operator.instances.knows(self.observed))

        device, count = self.operator.device, len(self)
        return from_starts(judged, self.space, count, starts, seed, device, unseen_level)

    def run(self, points: Float[Tensor, "i n d"], steps: int | None, lam: "Lam") -> Solutions:
        """So many applications, or until every point has arrived."""
        operator = self.operator
        if steps is None and operator.arrival is not None and not isinstance(lam, Sequence):
            return self.arrive(points, MOST_APPLICATIONS, lam)
        steps = operator.applications if steps is None else steps
        found = self.iterate(points, steps, lam)
        return Solutions.of(self.space, found, points, applications=steps)

    @torch.no_grad()
    def iterate(self, x: Float[Tensor, "i n d"], steps: int, lam: "Lam" = None) -> Tensor:
        """`Phi^steps(x)`, a bounded number of points at a time."""
        check_steps(steps)
        operator, schedule = self.operator, self.operator.schedule(lam, steps)
        most, done = points_at_once(x), []
        how = {
            "precision": operator.precision,
            "space": self.space,
            "weights": next(operator.parameters()).data_ptr(),  # a graph reads them from there
        }
        some = max(1, most // x.shape[1])
        for first in range(0, len(x), some):
            chunk = slice(first, first + some)
            with products_in(operator.precision):
                code = operator.encode(batches.select(self.observed, chunk))
                parts = list(x[chunk].split(most, 1))
                for each, count in schedule:
                    prepared = operator.prepare(code, each)
                    parts = [operator.repeated(y, prepared, steps=count, **how) for y in parts]
            done.append(torch.cat(parts, 1))
        return torch.cat(done)

    @torch.no_grad()
    def arrive(self, x: Float[Tensor, "i n d"], steps: int, lam: "Lam" = None) -> Solutions:
        """Apply the operator to every point until it has arrived, at most `steps` times; some
        points at a time. One that left the space has not arrived and is where it went."""
        if isinstance(lam, Sequence):
            raise InputError("Points arrive with one lam, not with a schedule of several.")
        check_steps(steps)
        self.operator.schedule(lam, steps)  # for its checks
        found, used = x.clone(), torch.empty_like(x[..., 0], dtype=torch.int32)
        arrived = torch.empty_like(used, dtype=torch.bool)
        for rows, columns, some, at in pieces(self.observed, x, points_at_once(x)):
            judged = replace(self, observed=some).judged_by(lam)
            with products_in(self.operator.precision):
                y, level, error = judged(at)
                best, waited = found[rows, columns], torch.zeros_like(level)
                state = (best, level, error, y, y - at, level.clone(), waited)
                done = until_arrived(state, steps, partial(one_more, judged, self.space))
            best, level, _, last, *_ = state
            left = (done[0] > 0) & (level > DOWN) & ~self.space.contains(last)
            found[rows, columns] = torch.where(left[..., None], last, best)
            used[rows, columns], arrived[rows, columns] = done[0], done[1] & ~left
        return replace(Solutions.of(self.space, found, x, used), arrived=arrived)

    def judged_by(self, lam: float | None = None) -> Judged:
        """A function of points: where they go next, their levels and the errors of these."""
        operator, arrival, to_unit = self.operator, self.operator.arrival, self.space.to_unit
        if arrival is None:
            raise InputError(
                "This operator does not know when a point has arrived: use the method 'operator', "
                "which applies it a number of times, or train one without applications=."
            )
        prepared = self.prepare(lam)
        known = arrival.prepare(prepared["code"])

        def judged(x: Float[Tensor, "i n d"]) -> tuple[Tensor, Tensor, Tensor]:
            y = operator(x, prepared, self.space)
            level, log_error = arrival(to_unit(x), to_unit(y), known)
            return y, level, log_error.exp()

        return judged

    def prepare(self, lam: float | None = None) -> Prepared:
        """What is prepared of these instances for one lam."""
        return self.operator.prepare(self.operator.encode(self.observed), lam)
