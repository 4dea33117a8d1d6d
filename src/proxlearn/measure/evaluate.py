"""The paper's protocol: methods from the same starts, measured against a reference, as rows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers import metrics
from proxlearn.answers.solutions import Solutions
from proxlearn.calculus.loop import now
from proxlearn.common.batch import Batch, Values, size
from proxlearn.common.checks import count, listed, number, positive, said, seed_of
from proxlearn.common.memory import afford
from proxlearn.common.provenance import Row, row
from proxlearn.common.seeds import generator_for
from proxlearn.errors import InputError
from proxlearn.gpu.devices import pick_device
from proxlearn.operators.shipped import pretrained
from proxlearn.problems.base import Problem, check_problem, held_out
from proxlearn.solvers.base import solver
from proxlearn.solvers.solve import solve

DELTAS = (0.05, 0.1, 0.2)
Settings = Mapping[str, Any]  # of a method, as `px.solve` takes them
Reference = tuple[str, Settings]


class Candidate(NamedTuple):
    """A method to be measured: how it is called in tables, its name, its settings."""

    label: str
    method: str
    settings: Settings


class Solved(NamedTuple):
    """A candidate with what it found and how long that took."""

    candidate: Candidate
    solutions: Solutions
    seconds: float


def evaluate(
    problem: Problem,
    candidates: Iterable[tuple[str, str, Settings]],
    *,
    reference: Reference = ("descent", {}),
    instances: int = 256,
    starts: int = 1024,
    witnesses: int = 1024,
    trials: int = 10,
    thresholds: Sequence[float | None] = (None,),
    relative: bool = False,
    deltas: Sequence[float] = DELTAS,
    seed: int = 0,
    device: str = "auto",
) -> list[Row]:
    """The witnessed metrics (section 4) on test instances: one row per candidate and threshold.

    A candidate is (label, method, settings), such as ("POL", "operator", {"steps": 5}). All of them
    begin at the same starts. The reference, taken as the truth, begins at others: as a candidate,
    too, it shows the best that can be reached. With `relative`, thresholds are multiples of the
    reference's best value of each instance. A single objective is one instance, whatever
    `instances` says.

    Columns: problem, label, method, settings, applications, threshold, wd, wd_std, wp@delta and
    wp_std@delta, rho, rho_gt, value (the mean over solutions inside), seconds, found and known
    (minimizers, where the problem knows its truth), then the protocol, versions and machine.
    """
    check_problem(problem)
    instances, seed = count("instances", instances), seed_of(seed)
    candidates, deltas = _candidates(candidates), listed("deltas", deltas, "distances")
    deltas = [positive("a delta", each) for each in deltas]
    thresholds = listed("thresholds", thresholds, "numbers, or None")
    thresholds = [None if each is None else number("a threshold", each) for each in thresholds]
    counts = {"starts": starts, "witnesses": witnesses, "trials": trials}
    counts = {name: count(name, each) for name, each in counts.items()}
    tau, rows = _test_instances(problem, instances, seed, device), []
    truth, watching, protocol = _judges(problem, tau, reference, counts, seed, device)
    for each in candidates:
        solved = solve_timed(problem, each, tau, counts["starts"], seed, device)
        about, outcome = _about(problem, solved.candidate), _outcome(problem, solved, tau)
        for threshold in thresholds:
            limit = metrics.limits(truth, threshold, relative)
            seen = over_trials(solved.solutions, truth, watching, limit, deltas)
            rows.append({**about, "threshold": threshold, **seen, **outcome, **protocol})
    return rows


def compare(
    problem: Problem,
    candidates: Iterable[tuple[str, str, Settings]],
    *,
    tau: Any = None,
    reference: Reference = ("descent", {}),
    instances: int = 8,
    starts: int = 1024,
    witnesses: int = 1024,
    deltas: Sequence[float] = DELTAS,
    seed: int = 0,
    device: str = "auto",
) -> tuple[list[Row], list[Solved]]:
    """Several methods from the same starts: a row for each, and its solutions for a picture.

    `tau`: one instance or many, as for `px.solve`; without it, `instances` test instances.

    Columns: problem, label, method, settings, applications, best and optima (the best value and the
    number of distinct optima, means over instances), wd, wp@delta, rho, rho_gt, value, seconds,
    found and known, then the protocol, versions and machine.
    """
    check_problem(problem)
    instances, seed = count("instances", instances), seed_of(seed)
    candidates, starts = _candidates(candidates), count("starts", starts)
    witnesses = count("witnesses", witnesses)
    deltas = [positive("a delta", each) for each in listed("deltas", deltas, "distances")]
    for each in candidates:
        solver(each.method, problem, **each.settings)  # says what is wrong before any work is done
    tau = _test_instances(problem, instances, seed, device) if tau is None else problem.batch(tau)
    problem = problem.sized(tau)
    counts = {"starts": starts, "witnesses": witnesses, "trials": 1}
    truth, watching, protocol = _judges(problem, tau, reference, counts, seed, device)
    every = [solve_timed(problem, each, tau, starts, seed, device) for each in candidates]
    rows = []
    for each in every:
        about, best = _about(problem, each.candidate), _best(each.solutions)
        seen = over_trials(each.solutions, truth, watching, None, deltas)
        fields = {**about, **best, **seen, **_outcome(problem, each, tau), **protocol}
        rows.append({k: v for k, v in fields.items() if k != "trials" and "_std" not in k})
    return rows, every


def solve_timed(
    problem: Problem, candidate: Candidate, tau: Batch, starts: int, seed: int, device: str
) -> Solved:
    """Solve with the clock running until the device is done."""
    picked, (_, method, settings) = pick_device(device), candidate
    started = now(picked)
    solutions = solve(problem, tau, method, starts, seed, device, **settings)
    return Solved(candidate, solutions, now(picked) - started)


def over_trials(
    found: Solutions,
    truth: Solutions,
    witnesses: Float[Tensor, "trials w d"],
    threshold: metrics.Threshold,
    deltas: Sequence[float],
) -> Row:
    """The witnessed metrics, means over instances: their mean and std over draws of witnesses."""
    fields = means(gaps(found, truth, witnesses, threshold), deltas)
    fields["rho"] = metrics.counted(found, threshold).float().mean().item()
    fields["rho_gt"] = metrics.counted(truth, threshold).float().mean().item()
    return fields


def gaps(
    found: Solutions,
    truth: Solutions,
    witnesses: Float[Tensor, "trials w d"],
    threshold: metrics.Threshold,
) -> Float[Tensor, "i trials w"]:
    """The gap between both sets at every witness."""
    every = metrics.gaps(found, truth, witnesses.flatten(0, 1), threshold)
    return every.unflatten(1, (len(witnesses), -1))


def means(gap: Float[Tensor, "i trials w"], deltas: Sequence[float]) -> Row:
    """WD, and WP within each delta: mean and std over the draws of witnesses."""
    seen = {"wd": "wd_std"} | {f"wp@{d:.4g}": f"wp_std@{d:.4g}" for d in deltas}
    every = [gap.mean((0, 2))] + [(gap < d).float().mean((0, 2)) for d in deltas]
    fields: Row = {}
    for (name, spread), mean in zip(seen.items(), every, strict=True):
        fields[name] = mean.mean().item()
        fields[spread] = mean.std().item() if gap.shape[1] > 1 else 0.0
    return fields


def _candidates(given: Any) -> list[Candidate]:
    every = listed("candidates", given, "(label, method, settings)")
    for each in every:
        if not (isinstance(each, tuple | list) and len(each) == 3 and isinstance(each[2], dict)):
            raise InputError(
                f"A candidate is (label, method, settings), such as ('POL', 'operator', "
                f"{{'steps': 5}}), not {said(each)}."
            )
    return [Candidate(*each) for each in every]


def _test_instances(problem: Problem, count: int, seed: int, device: str) -> Batch:
    return held_out(problem, count if problem.family else 1, seed, pick_device(device))


def _judges(
    problem: Problem, tau: Batch, reference: Reference, counts: Row, seed: int, device: str
) -> tuple[Solutions, Float[Tensor, "trials w d"], Row]:
    """What the reference found, the witnesses, and the columns of a row that tell of both."""
    if not (isinstance(reference, tuple | list) and len(reference) == 2):
        raise InputError(f"reference= is (method, settings), not {said(reference)}.")
    method, settings = reference
    if not isinstance(settings, dict):
        raise InputError(f"The settings of reference= are a dictionary, not {said(settings)}.")
    truth = solve(problem, tau, method, counts["starts"], seed + 1, device, **settings)
    seen = counts["trials"] * counts["witnesses"]
    needed = 4 * seen * (problem.space.dim + 2 * size(tau))  # they, and gaps to two sets
    afford(needed, f"{seen:,} witnesses of each instance (tau)", "give fewer")
    generator = generator_for(seed, "witnesses")
    watching = problem.space.sample(counts["trials"], counts["witnesses"], generator=generator)
    about = {"reference": _said(method, settings), "instances": size(tau), **counts}
    return truth, watching, row(pick_device(device), **about, seed=seed)


def _about(problem: Problem, candidate: Candidate) -> Row:
    """Which problem, which method, and how an operator was trained."""
    label, method, settings = candidate
    fields: Row = {"problem": problem.name, "label": label, "method": method}
    fields["settings"] = _said(method, settings)
    if method != "operator":
        return fields | dict.fromkeys(("applications", "trained_steps", "trained_seconds"))
    operator, steps = settings.get("operator") or pretrained(problem.name), settings.get("steps")
    usual = None if operator.stops else operator.applications  # None: until points have arrived
    trained = {f"trained_{k}": operator.provenance.get(k) for k in ("steps", "seconds")}
    return fields | {"applications": usual if steps is None else steps} | trained


def _outcome(problem: Problem, solved: Solved, tau: Batch) -> Row:
    """What does not depend on the reference: values, seconds, known minimizers found."""
    value, known = _number(_inside_values(solved.solutions).nanmean()), problem.truth(tau)
    hits, total = (None, None) if known is None else metrics.recall(solved.solutions, known)
    return {"value": value, "seconds": solved.seconds, "found": hits, "known": total}


def _best(solutions: Solutions) -> Row:
    """The best value and the number of distinct optima, means over instances."""
    optima = [len(solutions[k].unique()) for k in range(len(solutions))]
    return {"best": _number(solutions.lowest().mean()), "optima": sum(optima) / len(optima)}


def _inside_values(solutions: Solutions) -> Values:
    """Values, NaN for solutions outside the space."""
    assert solutions.values is not None  # `solve` computes them
    return solutions.values.masked_fill(~solutions.inside, torch.nan)


def _number(value: Tensor) -> float | None:
    """A number for a row; None where there is none, as JSON knows neither NaN nor infinity."""
    return value.item() if math.isfinite(value.item()) else None


def _said(method: str, settings: Settings) -> str:
    """A method and its settings in words, such as `descent(steps=50000, rate=0.001)`."""
    parts = (f"{name}={value}" for name, value in settings.items() if name != "operator")
    return f"{method}({', '.join(parts)})"
