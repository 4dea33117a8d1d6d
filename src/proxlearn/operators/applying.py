"""How an operator is applied: a number of times, or until points have arrived. Both are methods of
the one loop (`calculus.loop`), and need no objective."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from proxlearn.calculus.loop import Method
from proxlearn.common.batch import Batch, Flags, Points, Values
from proxlearn.common.checks import array, is_number, said
from proxlearn.errors import InputError
from proxlearn.networks.arrival import DOWN, falls
from proxlearn.operators.cores import on_cores
from proxlearn.spaces import Space

if TYPE_CHECKING:
    from proxlearn.operators.operator import Operator

ON_GPU = 1 << 19  # points in flight at once while solving: about 1 GiB at width 128
ON_CPU = 1 << 14  # of more, many would wait for the last to arrive
USUAL_DIM = 16  # coordinates of a point; fewer points at once, if they have more

Lam = float | Sequence[float] | None  # for all applications, for each of them, or the usual one


def several(lam: Any) -> bool:
    """Whether it is a schedule, one for each application."""
    return lam is not None and not is_number(lam)


def lams_of(lam: Any) -> list[float]:
    """The lam or lams that are given, each a positive number."""
    each = [lam] if is_number(lam) else array("lam", lam, "a positive number, or several").tolist()
    if not isinstance(each, list) or not each or not all(is_number(e) and e > 0 for e in each):
        raise InputError(f"lam must be a positive number, or several, not {said(lam)}.")
    return [float(e) for e in each]


def points_at_once(x: Tensor | None = None) -> int:
    """How many points go through the network together: as many as suit the device of x and its
    number of coordinates; without x, those of a GPU."""
    if x is None:
        return ON_GPU
    most = ON_GPU if x.is_cuda else ON_CPU
    return max(1, most * USUAL_DIM // max(USUAL_DIM, x.shape[-1]))


@dataclass(frozen=True)
class Applying(Method):
    """A number of applications, with a lam for each, or the operator's usual one."""

    operator: "Operator"
    space: Space
    lams: Sequence[float]  # of every application there may be

    def prepare(self, problem, tau, starts):
        """`tau` is what the operator observes."""
        return lru_cache(maxsize=1)(partial(self.operator.prepare, self.operator.encode(tau)))

    def init(self, prepared, x):
        return Applied(x, 0)

    def one_step(self, prepared, state):
        return self.many_steps(prepared, state, 1)

    def many_steps(self, prepared, state, count):
        """As one graph on a GPU, where it is the same again and again."""
        x, done = state
        key = {"precision": self.operator.precision, "space": self.space}
        key["kernels"] = self.operator.network.kernels
        key["weights"] = next(self.operator.parameters()).data_ptr()  # a graph reads them there
        for lam, some in groupby(self.lams[done : done + count]):
            steps = len(list(some))
            x = self.operator.repeated(x, prepared(lam), steps=steps, **key)
        return Applied(x, done + count)

    def rated(self, prepared, x):
        operator = self.operator
        if not operator.network.rates:
            return None
        return operator.rating(x, prepared(operator.lam), self.space)

    def at_once(self, x):
        return points_at_once(x)


class Applied(NamedTuple):
    """Where points are after so many applications."""

    x: Points
    done: int


@dataclass(frozen=True)
class Arriving(Method):
    """Applications until every point has arrived, as far as the operator can tell."""

    operator: "Operator"
    space: Space
    lam: float | None = None

    def prepare(self, problem, tau, starts):
        """A function of points: where they go next, their levels, and the errors of these."""
        operator, arrival = self.operator, self.operator.arrival
        if arrival is None:
            raise InputError(
                f"This operator does not know when a point has arrived: {_why_not(operator)}. Or "
                "use the method 'operator', which applies it a number of times."
            )
        prepared = operator.prepare(operator.encode(tau), self.lam)
        known = prepared, arrival.prepare(prepared["code"])

        def judged(x: Points, known: Batch) -> tuple[Tensor, Tensor, Tensor]:
            y, told = operator.watched_step(x, known[0], self.space)
            level, log_error = arrival(told, known[1])
            return y, level, log_error.exp()

        return lambda x: on_cores(judged, x, known, operator.network.widest(x.shape[-1]))

    def init(self, prepared, x):
        y, level, _ = prepared(x)
        none = torch.zeros_like(level)
        return OnTheWay(x, level, y, none, none < 0, none >= 0)

    def one_step(self, prepared, state):
        best, level, x, waited, _, _ = state
        y, new, error = prepared(x)
        fell = falls(level, new, error)
        best = torch.where(fell[..., None], x, best)
        level, waited = torch.where(fell, new, level), torch.where(fell, 0, waited + 1)
        assert self.operator.arrival is not None
        goes = (level > DOWN) & (waited < self.operator.arrival.patience)
        left = (level > DOWN) & ~self.space.contains(y)
        return OnTheWay(best, level, y, waited, left, goes)

    def moving(self, state):
        return state.goes

    def found(self, prepared, state):
        """The best place of each point; of one that left the space, where it went."""
        return torch.where(state.left[..., None], state.x, state.best)

    def at_once(self, x):
        return points_at_once(x)


def _why_not(operator: "Operator") -> str:
    """Why an operator was not taught to stop, and what to do."""
    if operator.network.code_size is None:
        return "its network has no code of tau that this could be learned from"
    if operator.provenance.get("training", {}).get("applications") is not None:
        return "it was trained with applications=, which leaves that out; train one without"
    return (
        "it was taught to stop, but points would have stopped too early, so it was left out; train "
        "it for longer"
    )


class OnTheWay(NamedTuple):
    """Points that are at x, and were at `best` when their level fell for the last time, `waited`
    applications ago. A level that is lower by less than its error does not count as fallen: else a
    point that has arrived would drift along a curve of optima in search of the lowest."""

    best: Points
    level: Values
    x: Points
    waited: Values
    left: Flags  # has it left the space?
    goes: Flags  # does it go on?
