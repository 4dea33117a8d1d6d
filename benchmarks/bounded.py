"""Bounded functions of the literature whose best point lies on an edge or in a corner: which
methods find it?

    python benchmarks/bounded.py --out results/bounded

Most are known with a minimum inside; here a smaller box cuts it off. The boxes of Ackley, Rastrigin
and the drop wave were made smaller still after a first run, in which descent missed the first and
the last (26 of 28; L-BFGS found all 28): hardly any of 1,024 starts began in the basin of their
corner, and the test is of bounds, not of luck. So read "28 of 28" by descent with that in mind.

Truth is a fine grid with the edges, and from its lowest places SciPy's L-BFGS-B in double
precision. A best point (there may be several equally good ones) is found if a solution is within 1%
of the diameter of it, and within 1e-3 of the way from the median value of the space down to it; it
is listed if that is true of an optimum of `solutions.polished().unique()` that is certified as a
minimum or as one on the boundary.
"""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from _shared import Benchmark, options, show
from scipy.optimize import minimize
from torch import Tensor

import proxlearn as px
from proxlearn.experiments._classics import (
    branin,
    goldstein_price,
    himmelblau,
    holder_table,
    keane,
    levy,
    mccormick,
    michalewicz,
    rosenbrock,
    schwefel,
    six_hump_camel,
    styblinski_tang,
    three_hump_camel,
)
from proxlearn.experiments._judging import distinct
from proxlearn.solvers.swarm.learn import learn_swarm

NEAR, LOW = 0.01, 1e-3  # of the diameter; of the way from the median value down to the best
GRID = 400_000  # points, about
POLISHED = 60  # of them, the lowest local ones
SCIPY_STARTS = 256  # one after the other
FUNCTIONS = ("linear", "rosenbrock")  # of the quick version


def linear(x: Tensor) -> Tensor:
    return x.sum(-1)


def sphere(x: Tensor) -> Tensor:
    return (x - 2).square().sum(-1)


def ackley(x: Tensor) -> Tensor:
    away = x - 5.1  # from a center outside the box
    far = -20 * (-0.2 * away.square().mean(-1).sqrt()).exp()
    return far - (2 * math.pi * away).cos().mean(-1).exp()


def rastrigin(x: Tensor) -> Tensor:
    away = x - 5.15
    return (away.square() + 10 * (1 - (2 * math.pi * away).cos())).sum(-1)


def eggholder(x: Tensor) -> Tensor:
    u, v = x.unbind(-1)
    w = v + 47
    return -w * (u / 2 + w).abs().sqrt().sin() - u * (u - w).abs().sqrt().sin()


def cross_in_tray(x: Tensor) -> Tensor:
    """The usual one up to the 1 beside 1e43, which single precision does not hold."""
    waves = x.sin().prod(-1).abs().clamp(min=1e-12).log()
    return -1e-4 * (0.1 * (waves + (100 - x.norm(dim=-1) / math.pi).abs())).exp()


def drop_wave(x: Tensor) -> Tensor:
    away = (x - 2.02).square().sum(-1)
    return -(1 + (12 * away.sqrt()).cos()) / (0.5 * away + 2)


def schaffer(x: Tensor) -> Tensor:
    u, v = x.square().unbind(-1)
    return 0.5 + ((u - v).sin().square() - 0.5) / (1 + 0.001 * (u + v)).square()


def bukin_2(x: Tensor) -> Tensor:
    u, v = x.unbind(-1)
    return 100 * (v - 0.01 * u * u + 1).square() + 0.01 * (u + 10).square()


def x_sin_x(x: Tensor) -> Tensor:
    return -(x * x.sin()).sum(-1)


def zakharov(x: Tensor) -> Tensor:
    k = torch.arange(1, x.shape[-1] + 1).to(x)
    along = (0.5 * k * x).sum(-1)
    return x.square().sum(-1) + along**2 + along**4


def booth(x: Tensor) -> Tensor:
    u, v = x.unbind(-1)
    return (u + 2 * v - 7).square() + (2 * u + v - 5).square()


def beale(x: Tensor) -> Tensor:
    u, v = x.unbind(-1)
    third = 2.625 - u + u * v**3
    return (1.5 - u + u * v).square() + (2.25 - u + u * v**2).square() + third.square()


def matyas(x: Tensor) -> Tensor:
    return 0.26 * x.square().sum(-1) - 0.48 * x.prod(-1)


def trid(x: Tensor) -> Tensor:
    return (x - 1).square().sum(-1) - (x[..., 1:] * x[..., :-1]).sum(-1)


class Bounded(NamedTuple):
    """A function and the box that cuts it off."""

    function: Callable[[Tensor], Tensor]
    low: list[float]
    high: list[float]

    @property
    def name(self) -> str:
        return self.function.__name__.replace("_", " ")

    @property
    def space(self) -> px.Box:
        return px.Box(self.low, self.high)

    @property
    def problem(self) -> px.Problem:
        return px.Problem.from_function(self.function, self.space, name=self.name)


BOUNDED = [
    Bounded(linear, [-1.0, -1.0], [1.0, 1.0]),
    Bounded(sphere, [-1.0, -1.0], [1.0, 1.0]),
    Bounded(schwefel, [-500.0, -500.0], [400.0, 400.0]),
    Bounded(rosenbrock, [-1.5, -1.5], [0.5, 1.5]),
    Bounded(styblinski_tang, [-2.5, -2.5], [4.0, 4.0]),
    Bounded(michalewicz, [0.0, 0.0], [2.0, math.pi]),
    Bounded(six_hump_camel, [-0.5, -0.5], [1.9, 0.5]),
    Bounded(branin, [-5.0, 0.0], [2.5, 10.0]),
    Bounded(goldstein_price, [-2.0, -0.3], [2.0, 2.0]),
    Bounded(mccormick, [-1.5, -1.0], [4.0, 4.0]),
    Bounded(ackley, [0.0, 0.0], [5.0, 5.0]),
    Bounded(rastrigin, [0.0, 0.0], [5.12, 5.12]),
    Bounded(eggholder, [-512.0, -512.0], [512.0, 512.0]),
    Bounded(holder_table, [-9.0, -9.0], [9.0, 9.0]),
    Bounded(keane, [0.0, 0.0], [10.0, 10.0]),
    Bounded(cross_in_tray, [2.0, 2.0], [10.0, 10.0]),
    Bounded(drop_wave, [-2.0, -2.0], [2.0, 2.0]),
    Bounded(schaffer, [1.0, 2.0], [10.0, 10.0]),
    Bounded(bukin_2, [-9.0, -3.0], [5.0, 3.0]),
    Bounded(x_sin_x, [0.0, 0.0], [7.0, 7.0]),
    Bounded(levy, [-10.0, -10.0, -10.0], [0.8, 10.0, 10.0]),
    Bounded(zakharov, [0.5, 0.5], [10.0, 10.0]),
    Bounded(booth, [-10.0, -10.0], [0.0, 10.0]),
    Bounded(beale, [-4.5, -4.5], [2.5, 4.5]),
    Bounded(matyas, [1.0, -10.0], [10.0, 10.0]),
    Bounded(himmelblau, [-3.0, -3.0], [2.5, 1.5]),
    Bounded(three_hump_camel, [0.3, -5.0], [5.0, 5.0]),
    Bounded(trid, [-16.0, -16.0, -16.0, -16.0], [3.0, 3.0, 3.0, 3.0]),
]


class Truth(NamedTuple):
    points: Tensor  # (k, d), all that are best
    value: float
    tolerance: float  # of values


def truth_of(bounded: Bounded) -> Truth:
    """The best points of all, on a grid with the edges, then by SciPy in double precision."""
    low, high, f = bounded.low, bounded.high, bounded.function
    each = round(GRID ** (1 / len(low)))
    axes = [torch.linspace(a, b, each, dtype=torch.float64) for a, b in zip(low, high)]
    grid = torch.cartesian_prod(*axes)
    values = f(grid)

    def with_slope(x: np.ndarray) -> tuple[float, np.ndarray]:
        at = torch.tensor(x, requires_grad=True)
        value = f(at)
        return value.item(), torch.autograd.grad(value, at)[0].nan_to_num().numpy()

    found = []
    for start in grid[_lowest(values.view([each] * len(low)))].numpy():
        ended = minimize(
            with_slope, start, jac=True, method="L-BFGS-B", bounds=list(zip(low, high))
        )
        x = ended.x if ended.fun <= f(torch.tensor(start)).item() else start
        found.append(torch.tensor(x))
    points = torch.stack(found)
    best = float(f(points).min())
    tolerance = LOW * float(values.median() - best)
    lowest = points[f(points) <= best + 1e-3 * tolerance]
    return Truth(distinct(bounded.space, lowest, NEAR)[0], best, tolerance)


def _lowest(values: Tensor) -> Tensor:
    """The places on a grid that are no higher than their neighbours, the lowest of them."""
    local = torch.ones_like(values, dtype=torch.bool)
    for dim in range(values.ndim):
        step = values.diff(dim=dim)
        first, last = (torch.zeros_like(step.narrow(dim, 0, 1)) for _ in range(2))
        local &= (torch.cat((first, step), dim) <= 0) & (torch.cat((step, last), dim) >= 0)
    places = local.flatten().nonzero()[:, 0]
    return places[values.flatten()[places].argsort()[:POLISHED]]


def reached(truth: Truth, bounded: Bounded, points: Tensor) -> bool:
    """Whether every best point has one of these points near enough and low enough."""
    points = points.double()
    low = points[bounded.function(points) <= truth.value + truth.tolerance]
    if not len(low):
        return False
    near = torch.cdist(truth.points, low).amin(1) <= NEAR * bounded.space.diameter
    return bool(near.all())


def solve_by(method: str, bounded: Bounded, starts: int, seconds: float) -> px.Solutions:
    """What a method finds; learned ones are trained for so many seconds first."""
    problem, settings = bounded.problem, {}
    if method in ("operator", "safeguarded"):
        settings["operator"] = trained(bounded.name, seconds)
    elif method == "swarm":
        settings["swarm"] = learn_swarm(problem, seconds=seconds, device="cpu", progress=False)
    count = min(starts, SCIPY_STARTS) if method == "multistart" else starts
    return px.solve(problem, None, method, starts=count, device="cpu", **settings)


_operators: dict[str, px.Operator] = {}


def trained(name: str, seconds: float) -> px.Operator:
    """The operator of a function, trained once."""
    if name not in _operators:
        problem = next(each.problem for each in BOUNDED if each.name == name)
        _operators[name] = px.learn(problem, seconds=seconds, device="cpu", progress=False)
    return _operators[name]


def measure(run: Benchmark, bounded: Bounded, truth: Truth, method: str) -> None:
    """A row for a function and a method."""
    starts, seconds = (64, 1.0) if run.quick else (run.asked.starts, run.asked.seconds)
    began = time.perf_counter()
    found = solve_by(method, bounded, starts, seconds)
    spent = time.perf_counter() - began
    optima = found.polished().unique(smallest_share=0.0)
    kinds = np.array(optima.certificates)
    sure = torch.from_numpy(np.isin(kinds, ("minimum", "boundary")))
    edge = torch.from_numpy(kinds == "boundary")
    run.add(
        function=bounded.name,
        method=method,
        best=truth.points.tolist(),
        best_value=truth.value,
        found=reached(truth, bounded, found.points[0][found.inside[0]]),
        listed=reached(truth, bounded, optima.points[sure]),
        as_boundary=reached(truth, bounded, optima.points[edge]),
        inside=found.inside.float().mean().item(),
        starts=found.points.shape[1],
        trained_seconds=seconds if method in LEARNED else None,
        seconds=spent,
    )


LEARNED = ("operator", "safeguarded", "swarm")
METHODS = ("descent", "lbfgs", "multistart", *LEARNED)


def table(rows: list[Any]) -> None:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    said = {(row["function"], row["method"]): row for row in rows}

    def cell(function: str, method: str) -> str:
        row = said[function, method]
        return ("found" if row["found"] else "-") + ("" if row["listed"] else ", not listed")

    names = list(dict.fromkeys(row["function"] for row in rows))
    lines = [[name, *(cell(name, method) for method in methods)] for name in names]
    counts = [sum(row["found"] for row in rows if row["method"] == each) for each in methods]
    lines.append(["all", *(f"{count} of {len(names)}" for count in counts)])
    show("best points on the edge", ["function", *methods], lines)


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__, on_cpu=True)
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated")
    parser.add_argument("--starts", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=20.0, help="of training, where there is")
    asked = parser.parse_args(arguments)
    run = Benchmark("bounded", asked)
    methods = ("lbfgs", "operator") if asked.quick else asked.methods.split(",")
    every = [each for each in BOUNDED if each.name in FUNCTIONS or not asked.quick]
    truths = [truth_of(each) for each in every]
    for method in methods:
        for bounded, truth in zip(every, truths):
            measure(run, bounded, truth, method)
        run.save()
    table(run.rows)


if __name__ == "__main__":
    main()
