"""Objectives as users may write them, on all spaces, trained with all settings or solved: good ones
in odd precision or scale, and those that do what no objective may."""

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import proxlearn as px
from fuzzing.frame import Act, WrongAnswerError, finite
from proxlearn.errors import PoorOperatorWarning

WHAT = "objectives, spaces and settings"
CASES, QUICK = 2_000, 4
SECONDS = 60.0  # a whole training, where other work takes the processor's time

Objective = Callable[[Tensor, Tensor], Any]


def far(x: Tensor, tau: Tensor) -> Tensor:
    """The squared distance to tau, or to 0.1 where there is none."""
    return (x - (tau[..., :1] if tau.shape[-1] else 0.1)).square().sum(-1)


def wells(x: Tensor, tau: Tensor) -> Tensor:
    return far(x, tau) + (3 * x).cos().sum(-1)


class Cubes(torch.autograd.Function):
    """Computed by NumPy, with its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.from_numpy(np.abs(x.detach().numpy()) ** 3).to(x)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (x,) = ctx.saved_tensors
        return slope * 3 * x * x.abs()


GOOD: dict[str, Objective] = {
    "a bowl": far,
    "wells": wells,
    "in double precision": lambda x, tau: wells(x.double(), tau.double()),
    "in half precision": lambda x, tau: wells(x, tau).half(),
    "in bfloat16": lambda x, tau: wells(x, tau).bfloat16(),
    "huge": lambda x, tau: 1e20 * wells(x, tau),
    "tiny": lambda x, tau: 1e-20 * wells(x, tau),
    "far from 0": lambda x, tau: 1e6 + wells(x, tau),
    "with kinks": lambda x, tau: x.abs().sum(-1) + far(x, tau).sqrt(),
    "with steep kinks": lambda x, tau: (x.abs() + 1e-12).sqrt().sum(-1),
    "linear": lambda x, tau: x.sum(-1) + 0 * far(x, tau),
    "flat in places": lambda x, tau: far(x, tau).clamp(min=0.5),
    "constant": lambda x, tau: 0 * x.sum(-1) + 1,
    "steps": lambda x, tau: x.round().sum(-1) + 0 * x.sum(-1),
    "by NumPy": lambda x, tau: Cubes.apply(x).sum(-1),  # pyright: ignore[reportOptionalMemberAccess]
    "a view": lambda x, tau: (x * x).sum(-1, keepdim=True)[..., 0],
    "expanded": lambda x, tau: far(x, tau)[..., None].expand(*x.shape[:2], 3)[..., 1],
    "with a seed": lambda x, tau: (torch.manual_seed(0), wells(x, tau))[1],
    "with its own steps in place": lambda x, tau: x.clone().mul_(2).square_().sum(-1),
}
ODD: dict[str, Objective] = {
    "a logarithm": lambda x, tau: (x + 0.5).log().sum(-1) + far(x, tau),
    "a square root": lambda x, tau: x.sqrt().sum(-1) + far(x, tau),
    "no number in a small region": lambda x, tau: torch.where(
        (x > 0.9).all(-1), torch.nan, wells(x, tau)
    ),
    "infinite in a small region": lambda x, tau: torch.where(
        (x > 0.9).all(-1), torch.inf, wells(x, tau)
    ),
    "minus infinity in a small region": lambda x, tau: torch.where(
        (x.abs() < 0.05).all(-1), -torch.inf, wells(x, tau)
    ),
    "no slope in a small region": lambda x, tau: (
        far(x, tau) + (x.square().sum(-1) - 0.01).relu().sqrt()
    ),
    "a pole": lambda x, tau: 1 / x.sum(-1),
    "overflowing": lambda x, tau: (80 * x).exp().sum(-1),
    "unbounded below": lambda x, tau: -(x.square().sum(-1) ** 4),
    "no number outside": lambda x, tau: torch.where(
        (x.abs() <= 1).all(-1), wells(x, tau), torch.nan
    ),
    "failing outside": lambda x, tau: _failing_where(bool((x.abs() > 1.5).any()), x, tau),
    "failing in a small region": lambda x, tau: _failing_where(
        bool((x > 0.95).all(-1).any()), x, tau
    ),
}


def _failing_where(wrong: bool, x: Tensor, tau: Tensor) -> Tensor:
    if wrong:
        raise ValueError("x is out of range")
    return wells(x, tau)


def _no_grad(x: Tensor, tau: Tensor) -> Tensor:
    with torch.no_grad():
        x.mul_(0.9)
    return far(x, tau)


def _endless(x: Tensor, tau: Tensor) -> Tensor:
    return _endless(x, tau)


BAD: dict[str, Callable[..., Any]] = {
    "complex": lambda x, tau: far(x, tau) * 1j,
    "sparse": lambda x, tau: far(x, tau).to_sparse(),
    "meta": lambda x, tau: far(x, tau).to("meta"),
    "None": lambda x, tau: None,
    "a number": lambda x, tau: 1.0,
    "an array": lambda x, tau: far(x, tau).detach().numpy(),
    "a list": lambda x, tau: [far(x, tau)],
    "a scalar": lambda x, tau: far(x, tau).sum(),
    "a value for each instance": lambda x, tau: far(x, tau).sum(1),
    "a dimension more": lambda x, tau: far(x, tau)[..., None],
    "turned round": lambda x, tau: far(x, tau).T,
    "whole numbers": lambda x, tau: far(x, tau).long(),
    "booleans": lambda x, tau: far(x, tau) > 1,
    "detached": lambda x, tau: far(x, tau).detach(),
    "of tau alone": lambda x, tau: tau.sum(-1).expand(x.shape[:2]),
    "softmax": lambda x, tau: far(x, tau).softmax(1),
    "less the mean": lambda x, tau: far(x, tau) - far(x, tau).mean(),
    "less the mean of instances": lambda x, tau: far(x, tau) - far(x, tau).mean(0),
    "sorted": lambda x, tau: far(x, tau).sort(1).values,
    "summed up": lambda x, tau: far(x, tau).cumsum(1),
    "the first": lambda x, tau: far(x, tau)[:, :1].expand(x.shape[:2]) + 0 * far(x, tau),
    "random": lambda x, tau: far(x, tau) + torch.rand_like(x[..., 0]),
    "by dropout": lambda x, tau: far(torch.nn.functional.dropout(x), tau),
    "in place": lambda x, tau: far(x.mul_(2), tau),
    "in place without gradient": _no_grad,
    "in place by data": lambda x, tau: (x.data.add_(0.1), far(x, tau))[1],
    "in place, clamped": lambda x, tau: (x.data.clamp_(-0.9, 0.9), far(x, tau))[1],
    "in place of tau": lambda x, tau: far(x, tau.add_(0.1)),
    "of the wrong type": lambda x, tau: (x @ torch.eye(x.shape[-1], dtype=torch.long)).sum(-1),
    "failing": lambda x, tau: {}["weights"],
    "failing without a word": lambda x, tau: next(iter(())),
    "failing at length": lambda x, tau: _failing_at_length(),
    "endless": _endless,
    "no number": lambda x, tau: far(x, tau) * math.nan,
    "infinite": lambda x, tau: far(x, tau) + math.inf,
}


def _failing_at_length() -> Tensor:
    raise RuntimeError("a" * 100_000)


class Turning:
    """A good one until it has been called so often, then a bad one."""

    def __init__(self, bad: Objective, calls: int):
        self.bad, self.left = bad, calls

    def __call__(self, x: Tensor, tau: Tensor) -> Tensor:
        self.left -= 1
        return wells(x, tau) if self.left >= 0 else self.bad(x, tau)


SPACES: dict[str, Callable[[], px.Space]] = {
    "a box": lambda: px.Box(-1, 1, dim=2),
    "an interval": lambda: px.Box(-1, 1, dim=1),
    "an open box": lambda: px.Box(-1, 1, dim=2, open=True),
    "a box of 12 dimensions": lambda: px.Box(-1, 1, dim=12),
    "a tiny box": lambda: px.Box(-1e-6, 1e-6, dim=2),
    "a huge box": lambda: px.Box(-1e6, 1e6, dim=2),
    "a box far away": lambda: px.Box(1e4, 1e4 + 1, dim=2),
    "a long box": lambda: px.Box([-1, -1e4], [1, 1e4]),
    "a box without width": lambda: px.Box(1, 1 + 1e-12, dim=2),
    "circles": lambda: px.Circles(2),
    "a sphere": lambda: px.Sphere(3),
    "two points": lambda: px.Sphere(1),
    "planes": lambda: px.Planes(1.0),
    "lines": lambda: px.Lines(1.0),
    "a product": lambda: px.Product(px.Sphere(2), px.Box(-1, 1, dim=1)),
}
SETTINGS: dict[str, tuple[Any, ...]] = {
    "steps": (1, 3, 12),
    "lam": (None, 0, 1e-6, 1.0, 1e6, 1e30, (0.1, 10.0), (1e-30, 1e30)),
    "rule": ("proximal", "gradient"),
    "sampling": ("pool", "unfold"),
    "depth": (1, 2, 7),
    "instances": (1, 2, 9),
    "points": (1, 3, 16),
    "rate": (None, 1e-30, 0.01, 10.0, 1e30),
    "precision": (None, "fp32", "tf32", "bf16"),
    "applications": (1, 2, 3, None),
    "encodes": (None, 1),
    "seed": (0, -1, 2**40),
}
SIZES = {"blocks": 1, "width": 8, "shared": 8}
METHODS = ("lbfgs", "descent", "multistart", "safeguarded")


def prepare(folder: Path) -> px.Operator:
    torch.set_num_threads(1)
    simple = px.Problem.from_function(lambda x: x.square().sum(-1), px.Box(-1, 1, dim=2))
    settings: dict[str, Any] = {"steps": 1, "points": 2, "progress": False, "architecture": SIZES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is poor, and there to import what a training needs
        return px.learn(simple, device="cpu", **settings)


def case(draw: np.random.Generator, prepared: px.Operator, folder: Path) -> tuple[str, Act]:
    kinds = {"good": GOOD, "odd": ODD, "bad": BAD, "turning": BAD | ODD}
    kind = str(draw.choice(list(kinds)))
    name = str(draw.choice(list(kinds[kind])))
    function, space = kinds[kind][name], str(draw.choice(list(SPACES)))
    calls = int(draw.integers(1, 150))
    function = Turning(function, calls) if kind == "turning" else function
    told = f"from call {calls} on {name}" if kind == "turning" else name
    parameters = px.Box(-0.5, 0.5, dim=2) if draw.integers(2) else None
    family = "a family" if parameters else "one"
    made, use = SPACES[space], str(draw.choice(("learn", "learn", "solve")))
    how = _settings(draw) if use == "learn" else {"method": str(draw.choice(METHODS[:3]))}

    def act() -> None:
        own = function if parameters else lambda x: function(x, x[..., :0])
        problem = px.Problem.from_function(own, made(), parameters)
        tau = None if parameters is None else [0.1, -0.2]
        (_learned if use == "learn" else _solved)(problem, tau, how)

    return f"{use} {told}, {family}, on {space}, with {how}", act


def _settings(draw: np.random.Generator) -> dict[str, Any]:
    """Small ones, of which a few are odd."""
    usual: dict[str, Any] = {"steps": 3, "instances": 2, "points": 3, "depth": 1, "applications": 1}
    for name in draw.choice(list(SETTINGS), 3, replace=False):
        every = SETTINGS[str(name)]
        usual[str(name)] = every[draw.integers(len(every))]
    if draw.integers(4) == 0:
        usual["out"] = "out"
    return usual


def _learned(problem: px.Problem, tau: Any, how: dict[str, Any]) -> None:
    warnings.simplefilter("ignore", PoorOperatorWarning)  # no excuse for what is not finite
    operator = px.learn(problem, progress=False, device="cpu", architecture=SIZES, **how)
    if not operator.finite:
        raise WrongAnswerError("an operator whose weights are not finite")
    if "out" in how:
        px.load(how["out"], "cpu")
    _seen(operator.solve(tau, starts=4, steps=2))
    _seen(px.solve(problem, tau, "safeguarded", starts=4, operator=operator, steps=2))


def _solved(problem: px.Problem, tau: Any, how: dict[str, Any]) -> None:
    found = px.solve(problem, tau, starts=8, device="cpu", **how, steps=5)
    _seen(found)
    _seen(found.polished())


def _seen(found: px.Solutions) -> None:
    """What is inside has to be finite, and so is what is listed."""
    finite(found.points[found.inside])
    if found.values is not None:
        finite(found.values[found.inside])
    optima = found.unique()
    finite(optima.points, [] if optima.values is None else optima.values)
