"""What the page is told of a problem: how tau is moved, where points live, what is drawn."""

import base64
import gzip
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from proxlearn.instances import Vectors
from proxlearn.instances.graph import Graphs
from proxlearn.instances.set import Sets
from proxlearn.operators.operator import Operator, words_of
from proxlearn.problems.base import Problem
from proxlearn.spaces import Box, Circles, Planes, Space

VERTICES = 8  # of the graph to cut


@dataclass(frozen=True)
class Playable:
    """An operator with what the page says and does beside it."""

    operator: Operator
    name: str
    title: str
    words: str
    hint: str = ""
    labels: tuple[str, ...] = ()  # of the numbers of tau
    starts: int = 1024
    presets: Callable[[], dict[str, list[float]]] = field(default=dict)
    first: str = ""  # of them
    known: Problem | None = None  # whose objective the page knows
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def space(self) -> Space:
        if isinstance(self.operator.space, Circles):
            return Circles(VERTICES)
        return self.operator.space if self.known is None else self.known.space

    @property
    def tau(self) -> Tensor:
        """The first one that is shown, as a batch of one."""
        return self.operator.instances.batch(torch.tensor(self.start).reshape(self.shape))

    @property
    def start(self) -> list[float]:
        presets, instances = self.presets(), self.operator.instances
        if presets:
            return presets.get(self.first, next(iter(presets.values())))
        assert isinstance(instances, Vectors)
        return [(a + b) / 2 for a, b in zip(instances.low, instances.high)]

    @property
    def applications(self) -> int:
        """How often the operator is applied."""
        return self.operator.applications

    @property
    def how_often(self) -> str:
        """The same in words."""
        return f"{self.applications} times"

    @property
    def shape(self) -> list[int]:
        """That of what the operator sees of a tau."""
        if isinstance(self.operator.instances, Graphs):
            return [1, VERTICES, VERTICES]
        return [1, len(self.start)]

    @property
    def view(self) -> str:
        """How it is drawn."""
        if isinstance(self.space, Circles):
            return "graph"
        return "plane" if self.space.dim == 2 else "strands"

    def files(self) -> dict[str, Any]:
        """What the page loads with the operator, as JSON."""
        return {}

    def about(self) -> dict[str, Any]:
        """All of it as JSON."""
        space, card = self.space, self.operator.card
        judged = "" if card is None else f" Its training found: {words_of(card)}."
        return {
            "name": self.name,
            "title": self.title,
            "words": self.words,
            "hint": self.hint,
            "dim": space.dim,
            "space": _described(space),
            "view": self.view,
            "tau": self.tau_range() | {"shape": self.shape},
            "start": self.start,
            "presets": self.presets(),
            "applications": self.applications,
            "lam": self.operator.lam,
            "starts": self.starts,
            "objective": None if self.known is None else self.known.name,
            "card": f"The operator is applied {self.how_often}.{judged}",
            "warning": self.operator.doubtful and f"Poor: {self.operator.doubtful}.",
        } | self.more

    def tau_range(self) -> dict[str, Any]:
        instances = self.operator.instances
        if isinstance(instances, Graphs):
            return {"kind": "graph", "low": [], "high": [], "labels": []}
        if isinstance(instances, Sets):
            low, high = instances.low * instances.most, instances.high * instances.most
            return {"kind": "set", "low": low, "high": high, "labels": []}
        assert isinstance(instances, Vectors)
        labels = self.labels or tuple(f"tau {k + 1}" for k in range(len(instances.low)))
        kind = "vector" if instances.low else "none"
        return {"kind": kind, "low": instances.low, "high": instances.high, "labels": labels}


def _described(space: Space) -> dict[str, Any]:
    always = {"kind": space.kind, "dim": space.dim, "diameter": space.diameter}
    if isinstance(space, Planes):
        return always | {"reach": space.reach}
    if not isinstance(space, Box):
        return always
    return always | {"low": space.low, "high": space.high, "open": space.open}


def packed(content: bytes) -> str:
    """Compressed, as text: `Assets.bytes` in the page takes it apart."""
    return in_text(gzip.compress(content, 9, mtime=0))


def in_text(content: bytes) -> str:
    return base64.b64encode(content).decode()
