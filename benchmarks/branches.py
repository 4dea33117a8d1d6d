"""Branches: are the optima at the end of a path reached from those at its beginning, or seen to be
born, and is every death reported where it is?

    python benchmarks/branches.py [--quick]

The paths are between random landscapes of `peaks`, whose optima are known: the summits that no
other peak covers. Which these are is worked out at 4,001 taus along each path and bisected where it
changes, by the formula and without the tracer. An optimum at the far end is reached if a branch
ends there that begins where its summit was uncovered, at the near end or at a birth within 2% of
the path. A death or birth is reported if there is one of that summit within 2% of the path.
"""

import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from _shared import Benchmark, options, show
from torch import Tensor

import proxlearn as px
from proxlearn.branches.answer import Branch, Event
from proxlearn.branches.trace import SAMPLES, STARTS
from proxlearn.common.provenance import Row
from proxlearn.common.seeds import generator_for

OUT = Path("results/branches")
PATHS, QUICK_PATHS = 100, 1
SIZES, QUICK_SIZES = (SAMPLES, STARTS), (3, 16)  # taus that are solved, and starts at each
DENSE = 4_001
WITHIN = 0.02  # of the path: a birth or death as near is reported
NEAR = 0.005  # of the diameter: a place as near is that of a summit
METHODS = {"operator and L-BFGS": None, "operator": "operator", "L-BFGS": "lbfgs"}
TIMES = ("seconds", "cpu_seconds", "most_cpu_seconds")
COUNTS = ("far", "reached", "births", "births_reported", "deaths", "deaths_reported", "false")


class Life(NamedTuple):
    """From where to where a summit is uncovered; 0 and 1 are the ends of the path."""

    peak: int
    begin: float
    end: float


class Truth:
    """The summits along the straight path from one landscape to another."""

    def __init__(self, begin: Tensor, end: Tensor):
        self.begin, self.end = begin.double(), end.double()
        s = torch.linspace(0, 1, DENSE, dtype=torch.double)
        there = self.uncovered(s)
        self.lives = [
            life for k in range(there.shape[1]) for life in self._lives(k, s, there[:, k])
        ]

    def summits(self, s: Tensor) -> Tensor:
        """(s peaks 2)"""
        return self._peaks(s)[..., :2]

    def uncovered(self, s: Tensor) -> Tensor:
        """Which summits no other peak covers (s peaks): Peaks' formula, written anew."""
        x, y, strength, first, second, angle = self._peaks(s).unbind(-1)
        height = torch.where(strength > 0, (1 + strength) / 2, 0.0)
        right, up = x[:, :, None] - x[:, None], y[:, :, None] - y[:, None]  # (s at of)
        along = angle.cos()[:, None] * right + angle.sin()[:, None] * up
        across = angle.cos()[:, None] * up - angle.sin()[:, None] * right
        away = (along / first[:, None]) ** 2 + (across / second[:, None]) ** 2
        return (height > 0) & ((height[:, None] / (1 + away)).amax(-1) <= height * (1 + 1e-9))

    def _peaks(self, s: Tensor) -> Tensor:
        return (self.begin + s[:, None] * (self.end - self.begin)).unflatten(-1, (-1, 6))

    def _lives(self, peak: int, s: Tensor, there: Tensor) -> list[Life]:
        changes = (there[1:] != there[:-1]).nonzero()[:, 0].tolist()
        at = [self._bisected(peak, float(s[k]), float(s[k + 1])) for k in changes]
        at = [0.0] * bool(there[0]) + at + [1.0] * bool(there[-1])
        return [Life(peak, a, b) for a, b in zip(at[::2], at[1::2], strict=True)]

    def _bisected(self, peak: int, a: float, b: float) -> float:
        """Where a summit is covered or uncovered, between two s of which one is either."""
        first = self._there(peak, a)
        for _ in range(30):
            middle = (a + b) / 2
            a, b = (middle, b) if self._there(peak, middle) == first else (a, middle)
        return (a + b) / 2

    def _there(self, peak: int, s: float) -> bool:
        return bool(self.uncovered(torch.tensor([s], dtype=torch.double))[0, peak])

    def is_at(self, peak: int, s: float, point: Any) -> bool:
        """Whether a point is that summit's place at s."""
        summit = self.summits(torch.tensor([s], dtype=torch.double))[0, peak]
        return float((summit - torch.as_tensor(point)).norm()) <= NEAR * 2**0.5


def reached(truth: Truth, life: Life, branches: list[Branch]) -> bool:
    """Whether a branch ends at the summit that is uncovered in the end, and begins where it was."""
    for each in branches:
        begin, end = float(each.s[0]), float(each.s[-1])
        right = end == 1 and truth.is_at(life.peak, 1.0, each.points[-1])
        right = right and abs(begin - life.begin) <= WITHIN and (begin == 0) == (life.begin == 0)
        if right and truth.is_at(life.peak, begin, each.points[0]):
            return True
    return False


def reported(truth: Truth, peak: int, s: float, events: list[Event], kinds: tuple) -> bool:
    """Whether an event of these kinds is where a summit is covered or uncovered."""
    some = [each for each in events if each.kind in kinds and abs(each.s - s) <= WITHIN]
    return any(truth.is_at(peak, each.s, each.point) for each in some)


def judged(truth: Truth, found: px.Branches) -> dict[str, int]:
    """The counts of one path."""
    births = [life for life in truth.lives if life.begin > 0]
    deaths = [life for life in truth.lives if life.end < 1]
    far = [life for life in truth.lives if life.end == 1]
    begins = [(life.peak, life.begin) for life in births]
    ends = [(life.peak, life.end) for life in deaths]
    born = [reported(truth, *each, found.events, ("birth", "split")) for each in begins]
    died = [reported(truth, *each, found.events, ("death", "merge")) for each in ends]
    true = [*begins, *ends]
    false = [e for e in found.events if not any(reported(truth, *t, [e], (e.kind,)) for t in true)]
    counts = (len(far), sum(reached(truth, life, found.branches) for life in far))
    counts += (len(births), sum(born), len(deaths), sum(died), len(false))
    return dict(zip(COUNTS, counts))


def measure(
    label: str, method: str | None, paths: int, sizes: tuple[int, int], seed: int, device: Any
) -> Row:
    """All paths by one way of solving at samples."""
    problem = px.problem("peaks")
    ends = problem.sample(2 * paths, "test", generator_for(seed, "paths")).unflatten(0, (-1, 2))
    total: dict[str, int] = dict.fromkeys(COUNTS, 0)
    seconds, spent = [], []
    for begin, end in ends:
        began, busy = time.perf_counter(), time.process_time()
        found = px.trace(problem, begin, end, method, *sizes, device=device)
        seconds.append(time.perf_counter() - began)
        spent.append(time.process_time() - busy)
        for name, count in judged(Truth(begin, end), found).items():
            total[name] += count
    about: dict[str, Any] = {"label": label, "problem": "peaks", "paths": paths, "seed": seed}
    about |= {"samples": sizes[0], "starts": sizes[1], "seconds": statistics.median(seconds)}
    about |= {"cpu_seconds": statistics.median(spent), "most_cpu_seconds": max(spent)}
    shares = {"share_reached": total["reached"] / max(1, total["far"])}
    shares["share_deaths"] = total["deaths_reported"] / max(1, total["deaths"])
    return about | total | shares


def main(given: list[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="*", choices=[*METHODS], default=[*METHODS])
    asked = parser.parse_args(given)
    asked.out = asked.out or (None if asked.quick else OUT)
    run = Benchmark("branches", asked)
    paths, sizes = (QUICK_PATHS, QUICK_SIZES) if run.quick else (PATHS, SIZES)
    for label in asked.methods:
        run.add(**measure(label, METHODS[label], paths, sizes, asked.seed, run.device.type))
    for each in run.rows:
        names = (*COUNTS, "share_reached", "share_deaths", *TIMES)
        lines = [[name, each[name]] for name in names]
        show(
            f"{paths} path{'s' * (paths > 1)} through peaks, by {each['label']}",
            ("what", ""),
            lines,
        )
    run.save()


if __name__ == "__main__":
    main()
