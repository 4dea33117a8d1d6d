"""Sixty families to be honest about: the literature's functions, random landscapes, arms, minima on
edges and in corners, and families that are too hard for a short training, on purpose.

A family is a `Problem` with the kind it is of; the same seed gives the same families.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from proxlearn.common.seeds import generator_for
from proxlearn.experiments import _classics as classics
from proxlearn.problems.base import Problem
from proxlearn.spaces import Box, Circles

KINDS = ("literature", "landscape", "arm", "edge", "too hard")
LINKS = (1.0, 0.8, 0.6)  # of an arm
HILLS, WAVES = 6, 8  # in a random landscape
MOVES = 3  # numbers in its tau
COUNTS = {"rastrigin-8d": 11**8, "styblinski-tang-8d": 2**8, "egg-box": 24, "rastrigin": 25}

Function = Callable[..., Tensor]  # of x (i n d), and of tau (i 1 p) where there is one


class Family(NamedTuple):
    kind: str
    problem: Problem
    optima: int  # how many an instance has at least, by its formula; 0 where that is not known

    @property
    def name(self) -> str:
        return self.problem.name


def families(seed: int = 0) -> list[Family]:
    """All of them, kind by kind."""
    makers = (literature, landscapes, arms, edges, too_hard)
    return [
        Family(kind, Problem.from_function(function, space, parameters, name), COUNTS.get(name, 0))
        for kind, maker in zip(KINDS, makers, strict=True)
        for name, function, space, parameters in maker(seed)
    ]


Made = Iterator[tuple[str, Function, Box | Circles, Box | None]]  # name, function, space, taus


def _square(half: float, dim: int = 2) -> Box:
    return Box(-half, half, dim)


def literature(seed: int) -> Made:
    """Twenty functions of the plane, on their usual boxes."""
    for name, (function, space) in CLASSICS.items():
        yield name, function, space, None


def landscapes(seed: int) -> Made:
    """Sums of Gaussian hills and random Fourier series in 1 to 4 dimensions: single objectives, and
    families in which tau moves the hills or shifts the waves."""
    taus = _square(1.0, MOVES)
    for d, again in ((1, 0), (2, 0), (2, 1), (3, 0), (4, 0)):
        hills, waves = _hills(d, seed + again), _waves(d, 2.0, seed + again)
        for name, function in (("hills", hills), ("waves", waves)):
            yield f"{name}-{d}d-{again}", function, _square(1.0, d), None
            yield f"moving-{name}-{d}d-{again}", function, _square(1.0, d), taus


def arms(seed: int) -> Made:
    """Three links that reach for a target, tau, and prefer a posture by a little."""
    for weight in (0.1, 0.03, 0.01):
        yield f"arm-{weight:g}", arm(weight), Circles(3), _square(2.0)
    yield "arm-of-two", arm(0.03, LINKS[:2]), Circles(2), _square(1.5)


def edges(seed: int) -> Made:
    """Minima where bounds hold them: on edges and in corners, alone or beside others inside."""
    yield "bowl-outside", lambda x: (x - 2).square().sum(-1), _square(1.0), None
    yield "egg-box", _egg_box, _square(3.0), None
    yield "dome", lambda x, tau: -(x - tau).square().sum(-1), _square(1.0), _square(0.8)
    yield "dome-3d", lambda x, tau: -(x - tau).square().sum(-1), _square(1.0, 3), _square(0.8, 3)
    yield "slope", lambda x, tau: (x * tau).sum(-1), _square(1.0), Box(0.2, 1.0, dim=2)
    yield "pringle", lambda x, tau: (x - tau).prod(-1), _square(1.0), _square(0.6)
    for name, d in (("tilted-plane", 2), ("tilted-line", 1)):
        yield (
            name,
            lambda x, tau: ((6 * x + tau).cos() + x).sum(-1),
            _square(1.0, d),
            _square(2.0, d),
        )


def too_hard(seed: int) -> Made:
    """Far too many minima, or too narrow ones, for a few seconds of training."""
    yield "fast-line", lambda x: (90 * x).cos().sum(-1) + x.sum(-1), _square(1.0, 1), None
    yield "fast-plane", lambda x, t: ((40 * x + t).cos()).sum(-1), _square(1.0), _square(3.0)
    yield "rastrigin-8d", classics.rastrigin, _square(5.12, 8), None
    yield "styblinski-tang-8d", classics.styblinski_tang, _square(5.0, 8), None
    yield "waves-10d", _waves(10, 3.0, seed), _square(1.0, 10), None
    yield "needle", _needle, _square(1.0), _square(0.8)
    yield "scales", _scales, _square(1.0), _square(0.5, 1)
    yield "moving-hills-8d", _hills(8, seed), _square(1.0, 8), _square(1.0, MOVES)


def arm(weight: float, links: tuple[float, ...] = LINKS) -> Function:
    """`|tip - target|^2 + weight sum_k (1 - cos q_k)` of the angles q between links, as points of
    `Circles`: every joint would rather be straight."""

    def function(x: Tensor, target: Tensor) -> Tensor:
        turns = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
        tip = torch.view_as_real(turns.cumprod(-1) @ turns.new_tensor(links))
        return (tip - target).square().sum(-1) + weight * (1 - turns.real).sum(-1)

    return function


def _hills(d: int, seed: int) -> Function:
    """`-sum_k h_k exp(-|x - c_k - tau drift_k|^2 / (2 w_k^2))`."""
    g = generator_for(seed, f"hills {d}")
    center, height = _uniform(g, 0.8, HILLS, d), 1 + _uniform(g, 0.5, HILLS)
    width, drift = d**0.5 * (0.2 + _uniform(g, 0.07, HILLS)), _uniform(g, 0.3, MOVES, HILLS * d)

    def function(x: Tensor, tau: Tensor | None = None) -> Tensor:
        away = x[..., None, :] - center.to(x)
        if tau is not None:
            away = away - (tau @ drift.to(x)).unflatten(-1, (HILLS, d))
        return -(height.to(x) * (-(away / width.to(x)[:, None]).square().sum(-1) / 2).exp()).sum(-1)

    return function


def _waves(d: int, frequency: float, seed: int) -> Function:
    """`sum_k a_k cos(w_k x + shift_k + tau drift_k) + |x|^2`."""
    g = generator_for(seed, f"waves {d} {frequency}")
    wave, size = _uniform(g, 2 * frequency * math.pi / d**0.5, d, WAVES), _uniform(g, 1.0, WAVES)
    shift, drift = _uniform(g, math.pi, WAVES), _uniform(g, 1.5, MOVES, WAVES)

    def function(x: Tensor, tau: Tensor | None = None) -> Tensor:
        phase = x @ wave.to(x) + shift.to(x) + (0 if tau is None else tau @ drift.to(x))
        return (size.to(x) * phase.cos()).sum(-1) + x.square().sum(-1)

    return function


def _uniform(generator: Generator, half: float, *shape: int) -> Tensor:
    return half * (2 * torch.rand(*shape, generator=generator) - 1)


def _egg_box(x: Tensor) -> Tensor:
    return (3 * x).cos().prod(-1) + 0.05 * x.square().sum(-1)


def _needle(x: Tensor, tau: Tensor) -> Tensor:
    """A wide bowl, and a deep well of 1% of its width in it."""
    away = (x - tau).square().sum(-1)
    return x.square().sum(-1) - 3 * (-away / (2 * 0.01**2)).exp()


def _scales(x: Tensor, tau: Tensor) -> Tensor:
    """Four wells, in which one direction is ten million times steeper than the other."""
    u, v = x.unbind(-1)
    return 1e4 * (u.square() - 0.25).square() + 1e-3 * ((v - tau[..., 0]).square() - 0.09).square()


CLASSICS: dict[str, tuple[Function, Box]] = {  # on their usual boxes
    "himmelblau": (classics.himmelblau, _square(6.0)),
    "six-hump-camel": (classics.six_hump_camel, Box([-1.9, -1.1], [1.9, 1.1])),
    "three-hump-camel": (classics.three_hump_camel, _square(2.2)),
    "branin": (classics.branin, Box([-5.0, 0.0], [10.0, 15.0])),
    "goldstein-price": (lambda x: classics.goldstein_price(x).log(), _square(2.0)),
    "mccormick": (classics.mccormick, Box([-1.5, -3.0], [4.0, 4.0])),
    "styblinski-tang": (classics.styblinski_tang, _square(5.0)),
    "levy": (classics.levy, _square(10.0)),
    "rastrigin": (classics.rastrigin, _square(2.5)),
    "griewank": (classics.griewank, _square(10.0)),
    "ackley": (classics.ackley, _square(2.5)),
    "bird": (classics.bird, _square(2 * math.pi)),
    "holder-table": (classics.holder_table, _square(10.0)),
    "deb": (classics.deb, Box(0.0, 1.0, dim=2)),
    "michalewicz": (classics.michalewicz, Box(0.0, math.pi, dim=2)),
    "schwefel": (classics.schwefel, _square(500.0)),
    "shubert": (classics.shubert, _square(5.0)),
    "vincent": (classics.vincent, Box(0.25, 10.0, dim=2)),
    "easom": (classics.easom, Box(0.0, 6.0, dim=2)),
    "rosenbrock": (classics.rosenbrock, _square(2.0)),
}
