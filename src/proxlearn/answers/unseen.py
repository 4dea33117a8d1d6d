"""How many optima were missed: estimates from how often each of the found ones was hit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from proxlearn.answers.optima import Optima
from proxlearn.answers.solutions import Solutions
from proxlearn.common.checks import floats
from proxlearn.errors import InputError

SLACK = 0.05  # an upper end this little above a whole number is rounded down to it
NORMAL = 1.96  # 95% of a normal distribution lies within so many standard deviations
DESCENTS = ("lbfgs", "descent", "multistart", "proximal_gradient")  # they pass over no basin


@dataclass(frozen=True)
class Estimate:
    """What the hits of the optima that were found say of those that were not."""

    starts: int  # that ended at an optimum
    seen: int  # distinct optima
    singletons: int  # of them, hit by one start
    doubletons: int  # and by two
    unseen_mass: float  # Good-Turing: the chance that one more start ends at a new optimum
    unseen_most: float  # with 95% confidence that chance is no larger
    total: float  # Chao1: how many optima there are
    low: int  # of a 95% interval for that number
    high: int
    of_optima: bool = True  # of the objective; else of the places where an operator leads
    of_all: bool = True  # whether there is a way to every optimum; an operator may pass over some

    def __repr__(self) -> str:
        if not self.seen:
            return "No optimum was found, so the number missed cannot be estimated."
        what = "optima" if self.of_all else "optima that this operator leads to"
        what = what if self.of_optima else "places where this operator leads"
        said = (
            f"Found {self.seen} of an estimated {self.total:.1f} {what} (95% interval: {self.low} "
            f"to {self.high}). The chance that another start finds a new one is "
            f"{self.unseen_mass:.2%} (with 95% confidence at most {self.unseen_most:.2%})."
        )
        if not self.of_optima:
            return f"{said} Whether these are optima was not checked."
        if not self.of_all:
            return f"{said} It may pass over others: to count all optima, solve by L-BFGS."
        return said


def unseen(hits: "Sequence[int] | Optima | Solutions") -> Estimate:
    """Estimate the number of optima from how many starts ended at each (zeros do not count); given
    `Optima`, or the `Solutions` of one instance, from theirs.

    Where neither a certificate nor the objective says that these are optima, the estimate is of
    the places where an operator leads, and says so (`of_optima` is False). Where they are optima,
    but of a method that may pass over some from every start, as an operator does that goes far in
    one step, it is of those that the method leads to, and there may be more (`of_all` is False).

    With n starts, f1 optima hit once and f2 hit twice, Good and Turing's unseen mass is `f1 / n`,
    and `unseen_most` what it would have to be for so few hits to have a chance of 5% (3 / n for
    none); Chao's bias-corrected number of optima is `seen + (n - 1)/n f1 (f1 - 1) / (2 (f2 + 1))`.
    Basins so small that none of their kind was hit leave no trace: total and interval do not count
    optima to which fewer of the starts lead, all together, than `unseen_most`.
    """
    if isinstance(hits, Solutions):
        hits = hits.unique(smallest_share=0.0)
    if isinstance(hits, Optima):
        whose = {"of_optima": hits.verified, "of_all": hits.method in DESCENTS}
        return replace(unseen(hits.hits.tolist()), **whose)
    given = floats("hits", hits, "numbers of starts").flatten()
    if (given < 0).any():
        raise InputError(f"Hits are numbers of starts, 0 or more, but there is {given.min():g}.")
    hits = [int(each) for each in given if each >= 1]
    starts, seen, once, twice = sum(hits), len(hits), hits.count(1), hits.count(2)
    if not hits:
        return Estimate(0, 0, 0, 0, 1.0, 1.0, 0.0, 0, 0)
    extra = (starts - 1) / starts * once * (once - 1) / (2 * (twice + 1))
    low, high = _log_normal(hits, extra) if extra else _all_seen_twice(hits)
    low, high = max(seen, math.floor(low)), math.ceil(high - SLACK)
    most = min(1.0, poisson_at_most(once) / starts)
    return Estimate(
        starts, seen, once, twice, once / starts, most, seen + extra, low, max(low, high)
    )


def poisson_at_most(count: int) -> float:
    """The mean of a Poisson variable that is this small or smaller with a chance of 5%."""
    from scipy.special import gammaincinv

    return float(gammaincinv(count + 1, 0.95))


def _log_normal(hits: list[int], extra: float) -> tuple[float, float]:
    """Chao's interval (1987): the logarithm of the unseen number, taken as normal."""
    starts, seen, once, twice = sum(hits), len(hits), hits.count(1), hits.count(2)
    share, more = (starts - 1) / starts, twice + 1
    variance = extra + share**2 * once * (2 * once - 1) ** 2 / (4 * more**2)
    if twice:
        variance += share**2 * once**2 * twice * (once - 1) ** 2 / (4 * more**4)
    else:
        variance -= share**2 * once**4 / (4 * (seen + extra))
    factor = math.exp(NORMAL * math.sqrt(math.log1p(max(variance, 0.0) / extra**2)))
    return seen + extra / factor, seen + extra * factor


def _all_seen_twice(hits: list[int]) -> tuple[float, float]:
    """The interval where at most one optimum was hit once and Chao's formula sees none missing: an
    optimum hit k times could have been missed with probability `exp(-k)`."""
    missed = [math.exp(-each) for each in hits]
    chance = sum(missed) / len(hits)
    variance = sum(p - p * p for p in missed)
    variance -= sum(k * p for k, p in zip(hits, missed)) ** 2 / sum(hits)
    spread = NORMAL * math.sqrt(max(variance, 0.0))
    return (len(hits) - spread) / (1 - chance), (len(hits) + spread) / (1 - chance)


def unseen_mass(solutions: Solutions) -> float:
    """The largest unseen mass of all instances; of a relaxation, of what its solutions mean."""
    meant = solutions.rounded()
    return max(unseen(meant[k]).unseen_mass for k in range(len(meant)))
