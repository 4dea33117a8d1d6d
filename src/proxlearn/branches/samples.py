"""The optima at samples along a path, and which of them belong to one branch: they are solved for,
and followed from each sample to the next and back, until nothing new is found."""

import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers.clusters import TOLERANCE
from proxlearn.answers.solutions import DOUBTS, Solutions
from proxlearn.branches.follow import WIDTH, Way, followed
from proxlearn.branches.path import Path, Stations, corrected, joined, settled
from proxlearn.calculus.certify import BOUNDARY, FLAT, MINIMUM, certify
from proxlearn.common.batch import Batch
from proxlearn.errors import OutsideWarning, RangeWarning

LOOKS = 1_001  # values of s at which tangents of optima that ended are followed further
BESIDE = 0.01  # of the diameter: how near to a tangent an optimum has to be to belong to it
SAME = 1e-4  # of the diameter: optima as near to each other are one
ROUGH = 1e-3  # of s: how exactly ends of branches are known while samples are still added
REFINED = 2  # how often intervals in which something ends are halved and solved in the middle

FORWARD, BACKWARD = 0, 1  # directions, and the side of an interval that each begins at

Solve = Callable[[Batch], list[Solutions]]  # a batch of taus, by every method
Pair = tuple[float, float]  # neighbouring samples
# By the number of an optimum where following begins: the number of the one it leads to at the other
# side, or None if it ends on the way.
Ways = dict[int, tuple[int | None, Way]]


@dataclass
class Interval:
    """From one sample to the next: where optima lead, in both directions."""

    ways: tuple[Ways, Ways] = field(default_factory=lambda: ({}, {}))

    def linked(self) -> set[int]:
        """The optima of the right side that one of the left side leads to."""
        return {k for k, _ in self.ways[FORWARD].values() if k is not None}

    def ends(self) -> bool:
        """Whether an optimum ends here, in either direction."""
        return any(k is None for ways in self.ways for k, _ in ways.values())


class Samples:
    """The optima at every sample, and the intervals between samples."""

    def __init__(self, path: Path, solve: Solve):
        self.path, self.solve = path, solve
        self.optima: dict[float, Stations] = {}
        self.between: dict[Pair, Interval] = {}
        self.doubts: list[str] = []
        self.not_followed: defaultdict[str, list[float]] = defaultdict(list)  # why, and at which s
        self.width = ROUGH

    @property
    def s(self) -> list[float]:
        return sorted(self.optima)

    def add(self, s: list[float]) -> None:
        """Solve at more samples, and follow the optima there."""
        self.optima |= dict(zip(s, self._solved(torch.tensor(s, dtype=torch.double))))
        self._set_intervals()
        self._follow_all()

    def refine(self) -> None:
        """Solve again where optima appear or vanish, since others may be there only briefly; then
        follow those that end to exactly where they do."""
        for _ in range(REFINED):
            some = [(a + b) / 2 for (a, b), each in self.between.items() if each.ends()]
            if some:
                self.add(some)
        self._look_again()
        self.width = WIDTH
        self._follow_all()

    def _look_again(self) -> None:
        """Look for optima that ended farther along their tangents: one that is covered for a while
        may come back between samples, in a basin too narrow to be hit by chance."""
        dense = torch.linspace(0, 1, LOOKS, dtype=torch.double).tolist()
        every = sorted({*self.s, *dense})
        more: dict[float, list[Stations]] = {}
        for run in self._seen_again(every):
            known = [k for k, s in enumerate(run.s.tolist()) if s in self.optima]
            for k in known or [len(run) // 2]:
                more.setdefault(float(run.s[k]), []).append(run[[k]])
        for s, found in more.items():
            found += [self.optima[s]] if s in self.optima else []
            self.optima[s] = self._distinct(joined(found[::-1]))
        self._set_intervals()
        self._follow_all()

    def _seen_again(self, s: list[float]) -> list[Stations]:
        """Runs of neighbouring s at which there is an optimum where an end's tangent leads."""
        ends = [
            (way.end, pair[1 - direction], direction)
            for pair, each in self.between.items()
            for direction in (FORWARD, BACKWARD)
            for to, way in each.ways[direction].values()
            if to is None
        ]
        beyond = [
            torch.tensor(
                [k for k in s if (k <= side if direction == BACKWARD else k >= side)]
            ).double()
            for _, side, direction in ends
        ]
        if not ends:
            return []
        space = self.path.problem.space
        leads = [e.points + (at - e.s)[:, None] * e.slopes for (e, *_), at in zip(ends, beyond)]
        x = space.retract(torch.cat(leads))
        found = corrected(self.path, torch.cat(beyond), x)
        near = space.squared_distance(x, found.points) <= (BESIDE * space.diameter) ** 2
        runs = []
        seen_at = near & found.optimal
        for which in torch.arange(len(found)).split([*map(len, beyond)]):
            some, seen = found[which], seen_at[which]
            breaks = (seen[1:] != seen[:-1]).nonzero()[:, 0] + 1
            for piece in torch.arange(len(some)).tensor_split(breaks.tolist()):
                if len(piece) and seen[piece[0]]:
                    runs.append(some[piece])
        return runs

    def _solved(self, s: Float[Tensor, " k"]) -> list[Stations]:
        """The optima at each s, as solving finds them."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RangeWarning)  # said of the ends of the path
            warnings.simplefilter("ignore", OutsideWarning)  # optima may all leave an open box
            every = self.solve(self.path.at(s))
        seeds, at = [], []
        for k, one in enumerate(s.tolist()):
            some = torch.cat([self._places(each, k) for each in every])
            seeds.append(some)
            at.append(torch.full((len(some),), one, dtype=s.dtype))
        found = settled(self.path, torch.cat(at), torch.cat(seeds))
        self._note(found, every)
        found = found[found.optimal]
        return [self._distinct(found[found.s == one]) for one in s.tolist()]

    def _places(self, found: Solutions, k: int) -> Float[Tensor, "n d"]:
        """The best of an instance's solutions at every place, with its equivalents."""
        x = found.points[k][found.inside[k]].to("cpu", torch.double)
        if found.values is not None:
            x = x[found.values[k][found.inside[k]].cpu().argsort()]
        x = x[self._apart(x, TOLERANCE)]
        return self.path.problem.images(x).flatten(0, 1)

    def _apart(self, x: Float[Tensor, "n d"], tolerance: float) -> list[int]:
        """Which points to keep, earlier ones first, so that every other is near one of them."""
        near = self._near(x, x, tolerance)
        kept: list[int] = []
        covered = torch.zeros(len(x), dtype=torch.bool)
        for k in range(len(x)):
            if not covered[k]:
                kept.append(k)
                covered |= near[k]
        return kept

    def _near(self, x: Tensor, y: Tensor, tolerance: float = SAME) -> Tensor:
        space = self.path.problem.space
        return space.pairwise(x, y) <= tolerance * space.diameter

    def _distinct(self, found: Stations) -> Stations:
        return found[self._apart(found.points, SAME)]

    def _note(self, found: Stations, solutions: list[Solutions]) -> None:
        """Note what solving found that cannot be followed."""
        problem, rest = self.path.problem, found[~found.optimal]
        for each in solutions:
            codes = [] if each.doubts is None else each.doubts.tolist()
            self.doubt(*(f"The operator: {DOUBTS[code]}." for code in codes if code))
        if not len(rest):
            return
        codes = certify(problem, self.path.at(rest.s), rest.points[:, None])[:, 0]
        self.not_followed["part of a continuum, or flat"] += rest.s[codes == FLAT].tolist()
        kinks = (codes == MINIMUM) | (codes == BOUNDARY)
        self.not_followed["at kinks"] += rest.s[kinks].tolist()

    def said(self) -> list[str]:
        """All doubts, as sentences."""
        for what, s in self.not_followed.items():
            if s:
                where = f"between s = {min(s):.3g} and {max(s):.3g}"
                self.doubt(f"Some optima, {where}, are {what}: they were not followed.")
        return self.doubts

    def doubt(self, *sentences: str) -> None:
        """Say something against the result, each sentence once."""
        self.doubts += [each for each in dict.fromkeys(sentences) if each not in self.doubts]

    def _set_intervals(self) -> None:
        pairs = list(pairwise(self.s))
        self.between = {pair: self.between.get(pair, Interval()) for pair in pairs}

    def _follow_all(self) -> None:
        while self._follow(FORWARD) or self._follow(BACKWARD):
            pass

    def _follow(self, direction: int) -> bool:
        """Follow all that is still open, in one direction; whether there was any."""
        todo = [(pair, k) for pair in self.between for k in self._open(pair, direction)]
        if not todo:
            return False
        before = [self.between[pair].ways[direction].get(k) for pair, k in todo]
        begun = [
            known[1].end if known else self.optima[pair[direction]][[k]]
            for (pair, k), known in zip(todo, before)
        ]
        goals = torch.tensor([pair[1 - direction] for pair, _ in todo], dtype=torch.double)
        ways = followed(self.path, joined(begun), goals, self.width)
        for (pair, k), way, known in zip(todo, ways, before):
            if way.gave_up:
                s = float(way.end.s)
                self.doubt(f"An optimum could not be followed on at s = {s:.4g}: too many steps.")
            whole = way.after(known[1]) if known else way
            self.between[pair].ways[direction][k] = self._led(pair, direction, k, whole)
        return True

    def _open(self, pair: Pair, direction: int) -> list[int]:
        """The optima still to be followed: forwards all, backwards those that nothing led to; and
        again those whose end is known less exactly than it is to be."""
        interval = self.between[pair]
        ways = interval.ways[direction].items()
        done = {k for k, (to, way) in ways if to is not None or way.width <= self.width}
        done |= interval.linked() if direction == BACKWARD else set()
        return [k for k in range(len(self.optima[pair[direction]])) if k not in done]

    def _led(self, pair: Pair, direction: int, k: int, way: Way) -> tuple[int | None, Way]:
        """Which optimum of the other side a way led to, perhaps one that solving missed."""
        if not way.reached:
            return None, way
        interval, side = self.between[pair], pair[1 - direction]
        near = self._near(way.end.points, self.optima[side].points)[0].nonzero()[:, 0].tolist()
        if not near:
            self.optima[side] = joined([self.optima[side], way.end])
            near = [len(self.optima[side]) - 1]
        if direction == FORWARD:
            taken = near[0] in interval.linked()
        else:
            forward = interval.ways[FORWARD]
            taken = forward.get(near[0], (None,))[0] is not None
            if not taken:
                forward[near[0]] = (k, way.back())
        if taken:
            self.doubt(
                f"Two optima that were followed became one between s = {pair[0]:.4g} and "
                f"{pair[1]:.4g}, where neither was seen to end."
            )
        return None if taken else near[0], way
