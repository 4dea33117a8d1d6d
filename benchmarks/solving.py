"""Solving conics with the shipped operator against classical methods at equal objective value.

    python benchmarks/solving.py

Equal value: every other method makes just as many steps as it needs for the median value of its
solutions to come down to that of the operator's on the same test conics from the same starts. A
solution outside the space counts as infinitely bad. The classical methods use the objective and
its gradient, the operator neither. SciPy runs on the CPU, from one start after the other.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from _shared import Benchmark, options, show
from _timing import interleaved, peak_memory
from jaxtyping import Float
from torch import Tensor

import proxlearn as px
from proxlearn.gpu.devices import pick_device
from proxlearn.problems.base import held_out

OPERATOR, APPLICATIONS = "operator", 5
Shape = tuple[int, int]  # conics, starts for each


class Method(NamedTuple):
    """A classical method and the settings it may choose the quickest of."""

    label: str
    name: str  # for px.solve
    settings: list[dict[str, Any]]
    most: int  # steps tried before giving up
    sought: Shape  # on which its number of steps is found
    timed: Shape
    on_cpu: bool = False


class Sizes(NamedTuple):
    operator: Shape
    methods: list[Method]


RATES = [{"rate": rate} for rate in (0.03, 0.1, 0.3)]
FULL = Sizes(
    (10_000, 1024),
    [
        Method("particle descent", "descent", RATES, 4000, (64, 256), (1024, 1024)),
        Method("batched L-BFGS", "lbfgs", [{}], 200, (64, 256), (1024, 1024)),
        Method("SciPy multistart", "multistart", [{}], 200, (32, 8), (32, 8), on_cpu=True),
    ],
)
QUICK = Sizes(
    (20, 16),
    [
        Method("particle descent", "descent", RATES[1:2], 256, (4, 8), (4, 8)),
        Method("batched L-BFGS", "lbfgs", [{}], 32, (4, 8), (4, 8)),
        Method("SciPy multistart", "multistart", [{}], 32, (2, 2), (2, 2), on_cpu=True),
    ],
)


def fewest_steps(value_after: Callable[[int], float], goal: float, most: int) -> int | None:
    """The smallest number of steps whose value is at most `goal`, up to `most`; else None."""
    high = 1
    while value_after(high) > goal:
        if high >= most:
            return None
        high = min(2 * high, most)
    low = high // 2  # too few
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if value_after(middle) <= goal else (middle, high)
    return high


def values_of(solutions: px.Solutions) -> Float[Tensor, "i n"]:
    """The values, infinite outside the space."""
    assert solutions.values is not None
    return solutions.values.masked_fill(~solutions.inside, torch.inf)


def quickest(operator: px.Operator, method: Method, device: str) -> dict[str, Any] | None:
    """The settings with which a method is as good as the operator in the fewest steps."""
    conic, (conics, starts) = px.problem("conic"), method.sought
    tau = held_out(conic, conics)
    goal = values_of(operator.solve(tau, starts, APPLICATIONS)).median().item()
    found = []
    for settings in method.settings:

        def value_after(steps: int, settings: dict[str, Any] = settings) -> float:
            asked = {**settings, "steps": steps}
            solutions = px.solve(conic, tau, method.name, starts, 0, device, **asked)
            return values_of(solutions).median().item()

        steps = fewest_steps(value_after, goal, method.most)
        if steps is not None:
            found.append({**settings, "steps": steps})
    return min(found, key=lambda each: each["steps"], default=None)


class Contestant(NamedTuple):
    """A method ready to be timed."""

    solve: Callable[[], Iterable[px.Solutions]]
    shape: Shape
    settings: dict[str, Any]
    device: torch.device

    @property
    def solutions(self) -> int:
        return self.shape[0] * self.shape[1]

    def go(self) -> None:
        for _ in self.solve():
            pass

    def value(self) -> float:
        """The median value of all solutions."""
        return torch.cat([values_of(each).flatten().cpu() for each in self.solve()]).median().item()


def the_operator(operator: px.Operator, shape: Shape) -> Contestant:
    tau, starts = held_out(px.problem("conic"), shape[0]), shape[1]
    settings = {"steps": APPLICATIONS}
    return Contestant(
        lambda: operator.stream(tau, starts=starts, **settings), shape, settings, operator.device
    )


def classical(method: Method, settings: dict[str, Any], device: str) -> Contestant:
    conic, starts = px.problem("conic"), method.timed[1]
    tau = held_out(conic, method.timed[0])

    def solve() -> list[px.Solutions]:
        return [px.solve(conic, tau, method.name, starts, 0, device, **settings)]

    return Contestant(solve, method.timed, settings, pick_device(device))


def contestants(run: Benchmark, sizes: Sizes) -> dict[str, Contestant]:
    """The operator, and every method that comes to be as good."""
    operator = px.pretrained("conic", str(run.device))
    every = {OPERATOR: the_operator(operator, sizes.operator)}
    for method in sizes.methods:
        device = "cpu" if method.on_cpu else str(run.device)
        settings = quickest(operator, method, device)
        if settings is None:
            print(f"{method.label} does not reach the operator's value in {method.most} steps.")
        else:
            every[method.label] = classical(method, settings, device)
    return every


def main(arguments: list[str] | None = None) -> None:
    run = Benchmark("solving", options(__doc__).parse_args(arguments))
    every = contestants(run, QUICK if run.quick else FULL)
    calls = {label: each.go for label, each in every.items()}
    rounds, seconds = (2, 0.0) if run.quick else (5, 0.3)
    timings = interleaved(calls, run.device, rounds, seconds)
    for label, each in every.items():
        timing, share = timings[label], every[OPERATOR].solutions / each.solutions
        with peak_memory(each.device) as peak:
            value = each.value()
        run.add(
            each.device,
            method=label,
            conics=each.shape[0],
            starts=each.shape[1],
            solutions=each.solutions,
            **each.settings,
            value=value,
            **timing.fields(),
            solutions_per_second=each.solutions / timing.median,
            operator_is_faster=timing.over(timings[OPERATOR]) * share,
            peak_mib=peak.mib,
        )
    keys = ("method", "steps", "value", "solutions_per_second", "operator_is_faster", "peak_mib")
    header = ("method", "steps", "value", "solutions/s", "operator is faster", "peak MiB")
    show("Solving conics", header, [[each[key] for key in keys] for each in run.rows])
    run.save()


if __name__ == "__main__":
    main()
