"""How to train: the settings, their checks, and the choices for a problem where none is given."""

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Generator

from proxlearn.calculus.curvature import sampled_curvatures
from proxlearn.common import checks
from proxlearn.errors import InputError, UnknownNameError
from proxlearn.gpu.precision import PRECISIONS
from proxlearn.networks import Architecture, architecture_from
from proxlearn.networks.coupling import Coupling
from proxlearn.operators.operator import LARGEST_COUNT
from proxlearn.problems.base import Problem, sampled
from proxlearn.training.loss import Gradient, Proximal
from proxlearn.training.sampling import SAMPLINGS

LONGEST = 600  # seconds that a training takes on a CPU unless told otherwise
SLOWEST = 1e-30  # the smallest step size, so that none is 0
STRAIGHT = 1e-6  # curvature: with less, an objective is straight there
SHORT = 0.005  # of the diameter: a step of gradient descent where an objective is straight
P = ParamSpec("P")
Result = TypeVar("Result")


def setting(default: Any, help: str) -> Any:
    """A field of `Training`, which is also an option of `proxlearn train` with this help."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class Training:
    """How to train. What is None is chosen from the problem."""

    steps: int | None = setting(
        None,
        "length in steps (default: 20,000 on a GPU, one to ten minutes on a CPU, by the problem)",
    )
    seconds: float | None = setting(None, "length in seconds, in place of steps")
    lam: float | tuple[float, float] | None = setting(
        None, "proximal weight, or the two ends of a range (default: the problem's, or estimated)"
    )
    rule: str = setting("proximal", "proximal (the paper's POL) or gradient (its baseline GOL)")
    descents: int | None = setting(
        None, "gradient steps that an application learns where rule=gradient (default: 10)"
    )
    sampling: str = setting("pool", "pool (points kept from step to step) or unfold (the paper's)")
    depth: int = setting(
        5, "most times the operator is applied to a training point (the paper's K)"
    )
    instances: int | None = setting(None, "instances (taus) in a step")
    points: int | None = setting(None, "points for each instance in a step")
    rate: float | None = setting(
        None,
        "the largest learning rate, which falls to 0 along a cosine (default: 4e-3 on a GPU, 6e-3 "
        "on a CPU)",
    )
    architecture: Any = setting(  # noqa: RUF009
        None,
        "the network: default, paper, cut_circles (graphs), attending (sets), boxes (images), or "
        "in Python an Architecture or a dict of its fields",
    )
    precision: str | None = setting(
        None, "of matrix products: fp32, tf32 (default on a GPU, except for graphs) or bf16"
    )
    applications: int | None = setting(
        None, "how often solving applies the operator (default: measured, and it learns to stop)"
    )
    encodes: int | None = setting(
        None, "instances of a step that are encoded anew, others keep their codes (default: all)"
    )
    near: float | None = setting(
        None, "share of fresh points that begin near known solutions (default: the problem's, or 0)"
    )
    seed: int = setting(0, "fixes the weights, the instances and the points")
    save_every: float | None = setting(
        None, "seconds between checkpoints (default: few at first, then 30)"
    )


def checked_settings(learn: Callable[P, Result]) -> Callable[P, Result]:
    """A function whose keywords are checked before it is called: a name that it does not have, or
    a value that `Training` cannot have, is an error in a sentence."""
    known = inspect.signature(learn).parameters

    @wraps(learn)
    def checked(*problem: P.args, **given: P.kwargs) -> Result:
        for name in given:
            if name not in known:
                raise UnknownNameError("training setting", name, list(known)[1:])
        settings = {k: v for k, v in given.items() if k in Training.__dataclass_fields__}
        return learn(*problem, **given | vars(training_from(settings)))  # pyright: ignore[reportCallIssue]

    return checked


def training_from(settings: dict[str, Any]) -> Training:
    """Checked settings."""
    for name in settings:
        if name not in Training.__dataclass_fields__:
            raise UnknownNameError("training setting", name, Training.__dataclass_fields__)
    training = Training(**{name: _checked(name, value) for name, value in settings.items()})
    if (training.applications or 0) > LARGEST_COUNT:
        raise InputError(
            f"applications = {training.applications:,} is more than the {LARGEST_COUNT:,} that an "
            "operator may be made for: give fewer, or leave it out."
        )
    if training.steps and training.seconds:
        raise InputError("Give steps or seconds, not both: each is the length of the training.")
    if training.sampling != "pool" and training.encodes is not None:
        raise InputError("encodes applies only to sampling='pool': leave it out.")
    if training.rule == "gradient" and training.lam is not None:
        raise InputError("lam applies only to rule='proximal': leave it out.")
    if training.rule != "gradient" and training.descents is not None:
        raise InputError("descents applies only to rule='gradient': leave it out.")
    return training


def _checked(name: str, value: Any) -> Any:
    """A setting, checked and converted; one that is None by default may be None."""
    if value is None and getattr(Training, name) is None:
        return None
    return CHECKED[name](name, value) if name in CHECKED else value


def _one_of(known: Iterable[str]) -> Callable[[str, Any], str]:
    return lambda name, value: checks.one_of(name, value, known)


def _lam(name: str, value: Any) -> float | tuple[float, float]:
    """One, or the two ends of a range."""
    if checks.is_number(value) and 0 <= value <= checks.LARGEST:
        return float(value)
    expected = f"a number from 0 to {checks.LARGEST:g}, or a range (low, high)"
    ends = checks.array(name, value, expected).double().tolist()
    if not isinstance(ends, list):
        raise InputError(f"{name} must be {expected}, not {checks.said(value)}.")
    if len(ends) != 2 or not 0 < ends[0] < ends[1] <= checks.LARGEST:  # NaN is none of that
        raise InputError(
            f"A range of lam is (low, high) with 0 < low < high, {checks.LARGEST:g} at most, not "
            f"{checks.said(value)}."
        )
    return ends[0], ends[1]


CHECKED: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("steps", "descents", "instances", "points"), checks.count),
    **dict.fromkeys(("depth", "applications", "encodes"), checks.count),
    **dict.fromkeys(("seconds", "save_every"), checks.positive),
    "rate": checks.rate_of,
    "rule": _one_of(("proximal", "gradient")),
    "sampling": _one_of(SAMPLINGS),
    "precision": _one_of(PRECISIONS),
    "lam": _lam,
    "seed": lambda _, value: checks.seed_of(value),
    "near": lambda name, value: checks.share(name, value, "a share of the points"),
}


def make_rule(problem: Problem, training: Training, device: torch.device) -> Proximal | Gradient:
    """The rule asked for, its weight or step size estimated from the objective where not given."""
    if training.rule == "gradient":
        rate = estimate_rate(problem, device, training.seed)
        return Gradient(rate, training.descents or Gradient.descents)
    if isinstance(training.lam, tuple):
        low, high = training.lam
        usual = math.sqrt(low * high) if problem.lam is None else problem.lam
        return Proximal(min(max(usual, low), high), training.lam)
    lam = problem.lam if training.lam is None else training.lam  # 0 is a lam, too
    lam = estimate_lam(problem, device, training.seed) if lam is None else lam
    return Proximal(float(lam))


def estimate_lam(problem: Problem, device: torch.device | str = "cpu", seed: int = 0) -> float:
    """A proximal weight: half the weak convexity constant, as far as sampling sees it.

    Above the most negative curvature the proximal step is unique (thm 3.1); half of it still
    keeps almost every basin apart and takes longer steps. An objective without negative curvature
    gets a step as long as the space.
    """
    curvature, slope = sampled_curvatures(problem, device, seed)
    negative = -curvature.quantile(0.01).item()
    as_long_as_the_space = slope.median().item() / problem.space.diameter
    return max(0.5 * negative, as_long_as_the_space, 1e-6)


def estimate_rate(problem: Problem, device: torch.device | str = "cpu", seed: int = 0) -> float:
    """A step size for gradient descent: one over the curvature that few points exceed. Where slopes
    change at kinks alone, as those of distances do, a step on the usual slope is short instead."""
    curvature, slope = sampled_curvatures(problem, device, seed)
    steepening = curvature.quantile(0.95).item()
    if steepening < STRAIGHT:
        steepening = slope.median().item() / (SHORT * problem.space.diameter)
    return max(1 / max(steepening, STRAIGHT), SLOWEST)


def batch_shape(problem: Problem, training: Training, device: torch.device) -> tuple[int, int]:
    """(instances, points) of a step, less of everything on a CPU. A family has many taus, which
    teach more than many points of one, but on a GPU kernels take 64 points of one at once, and a
    costly tau is worth many points; a single objective has a few copies of its one tau."""
    total, each = (8192, 64) if device.type == "cuda" else (1024, 4)
    if problem.costly:
        total, each = (5632, 256) if device.type == "cuda" else (64, 16)
    instances = training.instances or (
        total // each if problem.family else 2 * (training.depth + 1)
    )
    return instances, training.points or max(1, total // instances)


def pick_near(problem: Problem, training: Training) -> float:
    """The share asked for, or the problem's; an error where no solutions are known."""
    near = problem.near if training.near is None else training.near
    if near and problem.known(sampled(problem, 1, "train", Generator())) is None:
        raise InputError(
            f"near = {near} asks for points that begin near known solutions, but of "
            f"{problem.name!r} none are known: leave it out, or give the problem known(tau)."
        )
    return float(near)


def pick_precision(training: Training, architecture: Architecture, device: torch.device) -> str:
    """The one asked for; by default, what is fast on the device and costs no quality. For graphs
    the objective and its slope in the network are matrix products, too, and are to be exact."""
    fast = device.type == "cuda" and not architecture.exact
    return training.precision or ("tf32" if fast else "fp32")


def pick_length(
    problem: Problem, training: Training, device: torch.device
) -> tuple[int | None, float | None]:
    """(steps, seconds), of which one is None: as asked for; by default, 20,000 steps on a GPU, and
    on a CPU as many as there are in about two minutes, more where a family has more dimensions
    than the plane or longer taus than a conic, and a minute for a single objective there."""
    if training.steps or training.seconds:
        return training.steps, training.seconds
    if device.type == "cuda":
        return 20_000, None
    size = problem.parameters.dim if problem.parameters else 6
    wider = math.sqrt(max(1.0, problem.space.degrees / 2) * max(1.0, size / 6))
    return None, float(round(min(LONGEST, (110 if problem.family else 60) * wider)))


def pick_rate(training: Training, device: torch.device) -> float:
    """The one asked for; by default, a larger one on a CPU, where trainings have fewer steps."""
    return training.rate or (4e-3 if device.type == "cuda" else 6e-3)


def pick_architecture(problem: Problem, training: Training, device: torch.device) -> Architecture:
    """The one asked for, or else the problem's own; by default, a single objective in few
    dimensions gets sinusoids of x, since it may have many narrow wells, and all on a CPU get a
    narrower network, which learns more in the same time."""
    asked = problem.architecture if training.architecture is None else training.architecture
    if asked is not None:
        return architecture_from(asked)
    usual = Coupling() if device.type == "cuda" else Coupling(width=64, shared=128)
    if not problem.family and problem.space.dim <= 3:
        return replace(usual, gated=False, sinusoids=64)
    return usual
