"""From samples to branches: links become chains, and ends at one place become one event."""

from typing import NamedTuple

from proxlearn.branches.answer import Branch, Event, tau_numbers
from proxlearn.branches.path import Path, Stations, joined
from proxlearn.branches.samples import BACKWARD, FORWARD, Samples

# Ends are one event if they are as near to each other as this,
TOGETHER = 1e-4  # of s, and
NEARBY = 0.01  # of the diameter.
FLATTER = 0.1  # a fold: the curvature there, as a share of the largest on the branch, at most
OUT = 1e-3  # of s: an optimum left over the edge if it is outside after so short a way

Node = tuple[float, int]  # an optimum of a sample


class End(NamedTuple):
    """Where a branch begins (`birth`) or ends."""

    birth: bool
    branch: int
    place: Stations  # one


def assembled(samples: Samples) -> tuple[list[Branch], list[Event]]:
    """All branches, and all events by s."""
    chains = _chains(samples)
    chains.sort(key=lambda c: (float(c.s[0]), float(c.values[0])))
    chains, groups = _mended(samples.path, chains)
    events = [_event(samples.path, chains, group) for group in groups]
    events = sorted((each for some in events for each in some), key=lambda e: e.s)
    names = ("s", "points", "values", "curvature", "slopes")
    return [Branch(**{name: getattr(c, name) for name in names}) for c in chains], events


def _chains(samples: Samples) -> list[Stations]:
    """The places of every branch, from where it was first seen to where it was last."""
    after: dict[Node, tuple[Node, Stations]] = {}
    tails: dict[Node, Stations] = {}  # what was followed before a branch ended, or had begun
    heads: dict[Node, Stations] = {}
    for (left, right), each in samples.between.items():
        for k, (other, way) in each.ways[FORWARD].items():
            if other is None:
                tails[left, k] = way.trail
            else:
                after[left, k] = (right, other), way.trail
        for k, (other, way) in each.ways[BACKWARD].items():
            if other is None:
                heads[right, k] = way.back().trail
    led_to = {node for node, _ in after.values()}
    chains = []
    for s in samples.s:
        for k in range(len(samples.optima[s])):
            node = (s, k)
            if node in led_to:
                continue
            parts = [heads[node]] if node in heads else [samples.optima[s][[k]]]
            while node in after:
                node, trail = after[node]
                parts.append(trail[1:])
            parts += [tails[node][1:]] if node in tails else []
            chains.append(joined(parts))
    return chains


def _mended(path: Path, chains: list[Stations]) -> tuple[list[Stations], list[list[End]]]:
    """The branches, and their ends by the events they belong to. Where one branch ends and another
    begins at the same place, the two are one; one that begins and ends within a single event, where
    a pitchfork is flat, is left out."""
    while True:
        groups = _together(path, chains)
        brief = {e.branch for g in groups for e in g if len(g) > 2 and _brief(chains[e.branch])}
        if brief:
            chains = [c for k, c in enumerate(chains) if k not in brief]
            continue
        pair = next((g for g in groups if [e.birth for e in g] in ([0, 1], [1, 0])), None)
        if pair is None or pair[0].branch == pair[1].branch:
            return chains, groups
        ended, begun = sorted(pair, key=lambda e: e.birth)
        both = joined([chains[ended.branch], chains[begun.branch]])
        chains = [c for k, c in enumerate(chains) if k not in (ended.branch, begun.branch)]
        chains.append(both[both.s.argsort(stable=True)])
        chains.sort(key=lambda c: (float(c.s[0]), float(c.values[0])))


def _brief(chain: Stations) -> bool:
    begin, end = float(chain.s[0]), float(chain.s[-1])
    return begin > 0 and end < 1 and end - begin <= TOGETHER


def _together(path: Path, chains: list[Stations]) -> list[list[End]]:
    ends = [End(True, k, c[:1]) for k, c in enumerate(chains) if float(c.s[0]) > 0]
    ends += [End(False, k, c[-1:]) for k, c in enumerate(chains) if float(c.s[-1]) < 1]
    ends.sort(key=lambda e: float(e.place.s))
    space, groups = path.problem.space, []
    for end in ends:
        for group in groups:
            first = group[0].place
            way = float(space.squared_distance(first.points, end.place.points)) ** 0.5
            close = way <= NEARBY * space.diameter
            if close and abs(float(first.s - end.place.s)) <= TOGETHER:
                group.append(end)
                break
        else:
            groups.append([end])
    return groups


def _event(path: Path, chains: list[Stations], group: list[End]) -> list[Event]:
    """A merge of several into one, a split of one into several, or births and deaths by
    themselves."""
    births, deaths = (tuple(e.branch for e in group if e.birth == b) for b in (True, False))
    kinds = {(False, True): "split", (True, False): "merge"}
    kind = kinds.get((len(deaths) > 1, len(births) > 1)) if births and deaths else None
    if kind:
        one = next(e for e in group if e.birth == (kind == "merge"))
        return [_made(path, kind, "pitchfork", one.place, (*deaths, *births))]
    made = []
    for end in group:
        how = _how(path, chains[end.branch], end)
        made.append(_made(path, "birth" if end.birth else "death", how, end.place, (end.branch,)))
    return made


def _how(path: Path, chain: Stations, end: End) -> str:
    place, space = end.place, path.problem.space
    if float(place.curvature) <= FLATTER * float(chain.curvature.max()):
        return "fold"
    on = OUT * (-1 if end.birth else 1) * place.slopes
    return "sudden" if bool(space.contains(space.retract(place.points + on))) else "edge"


def _made(path: Path, kind: str, how: str, place: Stations, branches: tuple[int, ...]) -> Event:
    s = float(place.s)
    point, value = place.points[0].tolist(), float(place.values)
    return Event(kind, s, tau_numbers(path, s), point, value, how, branches)
