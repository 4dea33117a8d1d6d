"""A training that judges itself: on instances that it has not seen, and with the objective at hand,
how many starts does the operator take to an optimum, and which of the optima does it miss?"""

import copy
import time
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers.distinct import are_optima
from proxlearn.answers.metrics import witnessed
from proxlearn.answers.optima import Optima
from proxlearn.answers.solutions import Solutions
from proxlearn.answers.starts import starting_points
from proxlearn.calculus.lbfgs import QuasiNewton
from proxlearn.calculus.loop import Loop
from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch, Flags
from proxlearn.common.seeds import generator_for
from proxlearn.common.words import counted
from proxlearn.errors import ObjectiveError
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import Problem, held_out
from proxlearn.training.session import JUDGING

MOST, STARTS = 8, 64  # instances, and starts of each
LEAST, PATIENCE = 3, 30.0  # instances, where they take no more than so many seconds
FEW, BRIEF = 16, 20  # starts and steps of L-BFGS, where even these take long
NEAR = 0.01  # as near to an optimum as this share of the diameter is there
WITNESSES = 256  # of the precision, where the truth is known
DESCENT = 100  # steps of multistart L-BFGS, which the operator is compared with
POOR = 0.6  # an operator that finds, reaches or rightly rates less than this is not to be trusted
GOOD = 0.5  # quality of a point that is good
USUAL_STEPS = 3_000  # that families in a few dimensions take
GLANCING = 0.02  # of the time, for looks in between
FIRST_GLANCE = 3.0  # seconds, before which there is none
GLANCE, GLANCE_STARTS, APPLICATIONS = 4, 32, 10  # of a look in between
SEED = 77  # of the instances, whatever that of the training

Card = dict[str, Any]


def judge(
    operator: Operator,
    problem: Problem,
    seconds: float,
    interrupted: Callable[[], bool] = lambda: False,
    show: Callable[[int, int], None] = lambda done, count: None,
) -> Card | None:
    """The card of an operator that took so many seconds to train; None where the objective has no
    gradient to judge by. A KeyboardInterrupt between two instances when `interrupted` says so;
    `show` is told how many of how many are done."""
    for each in (operator,) if problem.costly else (on_cpu(operator), operator):
        try:
            counts = _counts(each, problem, seconds, interrupted, show)
        except (RuntimeError, ObjectiveError):  # autograd does not see through the objective, or
            continue  # instances of the problem stay on the GPU
        means = {name: sum(each[name] for each in counts) / len(counts) for name in counts[0]}
        if "rightly" in means:  # so far, of all points
            means["rightly"] /= max(means["called_good"], 1e-9)
        card = {"instances": len(counts), "starts": effort(problem)[0], **means}
        return card | {"doubtful": _doubt(card, operator, problem)}
    return None


def effort(problem: Problem) -> tuple[int, int]:
    """How many starts, and how many steps of L-BFGS."""
    return (FEW, BRIEF) if problem.costly else (STARTS, DESCENT)


def on_cpu(operator: Operator) -> Operator:
    """The operator, or a copy of it: few points are followed faster there than on a GPU."""
    return operator if operator.device.type == "cpu" else copy.deepcopy(operator).to("cpu")


def _counts(
    operator: Operator,
    problem: Problem,
    seconds: float,
    interrupted: Callable[[], bool],
    show: Callable[[int, int], None],
) -> list[dict[str, float]]:
    """Of one instance, and of as many more as there is time for."""
    began = time.monotonic()
    first = _one(operator, problem, held_out(problem, 1, SEED, operator.device))
    took = time.monotonic() - began
    if not problem.family:
        return [first]
    least = min(LEAST, int(PATIENCE / took))
    count = min(MOST, max(1 + int(JUDGING * seconds / took), least))
    if count == 1:
        return [first]
    tau = held_out(problem, count - 1, SEED + 1, operator.device)
    every = [first]
    for k in range(count - 1):
        if interrupted():
            raise KeyboardInterrupt
        show(len(every), count)
        every.append(_one(operator, problem, batches.select(tau, slice(k, k + 1))))
    return every


def _one(operator: Operator, problem: Problem, tau: Batch) -> dict[str, float]:
    """What is counted of one instance."""
    problem = problem.sized(tau)
    count, steps = effort(problem)
    starts = starting_points(problem.space, count, 1, SEED, operator.device)
    bound = operator.bound(problem, tau)
    found = bound.run(starts, None, None).with_values(problem, tau)
    polished = found.polished()
    descended = Loop(QuasiNewton(), problem, tau, starts).run(steps).x
    usual = Solutions.of(problem.space, descended, starts)
    usual = usual.with_values(problem, tau).polished()
    known, limit = usual.unique(), NEAR * problem.space.diameter
    arrived, ratings = _optimal(polished), {}
    if (rated := _rated(problem, found, tau)) is not None:
        called, good = rated
        arrived = arrived & good  # those that are bad by far have found nothing
        ratings = {"called_good": _share(called), "rightly": _share(called & good)}
    ours = polished.points[arrived]
    every = torch.cat((ours, usual.points[_optimal(usual)]))
    listed = found.unique(verify=False)
    wrong = _far(problem, listed.points.to(every), every, 2 * limit)
    precision = _precision(problem, found, problem.truth(tau))
    return (
        precision
        | ratings
        | {
            "at_optimum": _share(at_optimum(found, polished)),
            "at_optimum_polished": _share(_optimal(polished)),
            "at_optimum_lbfgs": _share(_optimal(usual)),
            "found": _covered(problem, known, ours, limit),
            "known": float(len(known)),
            "false": float(wrong.sum()),
        }
    )


def _precision(
    problem: Problem, found: Solutions, truth: list[Float[Tensor, "k d"]] | None
) -> dict[str, float]:
    """The witnessed precision within twice as far as is near, where the truth is known."""
    if not truth or not len(truth[0]):
        return {}
    witnesses = problem.space.sample(WITNESSES, generator=generator_for(SEED, "witnesses"))
    near, points = 2 * NEAR * problem.space.diameter, found.points
    true = truth[0].to(points)[None]
    seen = witnessed(points, true, witnesses.to(points), (near,), space=problem.space)
    return {"wp": seen.precision.item()}


def _rated(problem: Problem, found: Solutions, tau: Batch) -> tuple[Flags, Flags] | None:
    """Which points the operator calls good, and which are; None where it does not say."""
    quality = problem.quality(found.points, tau)
    if found.quality is None or quality is None:
        return None
    return found.quality >= GOOD, quality >= GOOD


def at_optimum(found: Solutions, polished: Solutions) -> Flags:
    """Which solutions are near the optimum that they lead to when they are polished."""
    far = found.space.squared_distance(found.points, polished.points).sqrt()
    return _optimal(polished) & (far <= NEAR * found.space.diameter)


def _optimal(polished: Solutions) -> Flags:
    assert polished.certificates is not None
    return are_optima(polished.certificates)


def _share(flags: Tensor) -> float:
    return flags.float().mean().item()


def _covered(problem: Problem, known: Optima, ours: Float[Tensor, "n d"], limit: float) -> float:
    """Of the known optima, the share that has a point of ours nearby; 1 where none is known. A
    continuum is as wide as the gaps that L-BFGS left in it."""
    if not len(known):
        return 1.0
    reach = torch.maximum(known.gap.to(ours), torch.tensor(limit).to(ours))
    return 1 - _share(_far(problem, known.points.to(ours), ours, reach))


def _far(problem: Problem, some: Tensor, others: Tensor, limit: "float | Tensor") -> Tensor:
    """Which points have none of the others within the limit, up to the problem's symmetries."""
    if not len(some) or not len(others):
        return torch.ones(len(some), dtype=torch.bool, device=some.device)
    alike = [
        problem.space.pairwise(some, each) for each in problem.images(problem.canonical(others))
    ]
    return torch.stack(alike).amin((0, 2)) > limit


def _doubt(card: Card, operator: Operator, problem: Problem) -> str | None:
    """What speaks against an operator, and what to do; None where nothing does."""
    steps = operator.provenance.get("steps", 0)
    otherwise = ", try another lam, or solve by the method lbfgs"
    if problem.observes_part:  # of a picture alone, there is no objective to go down
        otherwise = " or try another lam"
    if "rightly" in card:  # it is not told what L-BFGS is, but says how good its points are
        poor = min(card["rightly"], card["found"]) < POOR
        said = (
            f"it calls {card['called_good']:.0%} of its points good, {card['rightly']:.0%} of "
            f"these are, and {card['found']:.0%} of the optima have a good one"
        )
    else:
        reached = card["at_optimum"] / max(card["at_optimum_lbfgs"], 1e-9)
        poor = min(card["found"], reached) < POOR
        said = (
            f"{card['at_optimum']:.0%} of the starts end at an optimum "
            f"({card['at_optimum_lbfgs']:.0%} by multistart L-BFGS), and {card['found']:.0%} of "
            "the optima that L-BFGS finds are found"
        )
    if not poor:
        return None
    return (
        f"on {counted(card['instances'], 'held-out instance')}, {said}. It was "
        f"trained for {steps:,} steps, where families in a few dimensions usually take "
        f"{USUAL_STEPS:,} or more. Train longer (resume with more seconds or steps){otherwise}"
    )


class Glances:
    """Looks in between at how many held-out starts end at an optimum, as often as they cost next to
    nothing."""

    def __init__(self, operator: Operator, problem: Problem):
        self.operator, self.problem, self.spent = operator, problem, GLANCING * FIRST_GLANCE
        self.seen_by, self.off = on_cpu(operator), problem.costly

    @torch.no_grad()
    def look(self, elapsed: float) -> float | None:
        """The share of starts; None where a look now would cost too much of the time elapsed."""
        if self.off or self.spent > GLANCING * elapsed:
            return None
        began = time.monotonic()
        try:
            share = self._seen()
        except (RuntimeError, ObjectiveError):  # see `judge`
            self.off, share = True, None
        self.spent += time.monotonic() - began
        return share

    def _seen(self) -> float:
        if self.seen_by is not self.operator:
            self.seen_by.load_state_dict(self.operator.state_dict())
        tau = held_out(self.problem, GLANCE if self.problem.family else 1, SEED)
        problem = self.problem.sized(tau)
        starts = starting_points(problem.space, GLANCE_STARTS, batches.size(tau), SEED, "cpu")
        found = self.seen_by.bound(problem, tau).apply(starts, (APPLICATIONS,))[0]
        found = found.with_values(problem, tau)
        return _share(at_optimum(found, found.polished()))
