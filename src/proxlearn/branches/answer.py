"""The result of a trace: branches of optima, and the events where they begin and end."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from rich.table import Table
from torch import Tensor

from proxlearn.branches.path import Path, corrected
from proxlearn.common.batch import vector_of
from proxlearn.common.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = ("birth", "death", "merge", "split")
COORDINATES = 4  # of a point in a table


@dataclass(frozen=True)
class Event:
    """Where optima appear, vanish, become one or part."""

    kind: str  # one of KINDS
    s: float  # from 0 at the path's beginning to 1 at its end
    tau: list[float] | None  # at s; None unless it is a vector
    point: list[float]
    value: float
    how: str  # "fold", "pitchfork", "edge" (of the space), or "sudden": a kink or a jump
    branches: tuple[int, ...]  # those that begin or end here; of merge and split also the one left

    def __str__(self) -> str:
        return f"{self.kind} ({self.how}) at s = {self.s:.4f}, x = ({self.place})"

    @property
    def place(self) -> str:
        """The first coordinates of its point, in words."""
        more = ", ..." * (len(self.point) > COORDINATES)
        return ", ".join(f"{x:.4g}" for x in self.point[:COORDINATES]) + more


@dataclass(frozen=True)
class Branch:
    """An optimum as tau moves: m places along the path, s ascending."""

    s: Float[Tensor, " m"]
    points: Float[Tensor, "m d"]
    values: Float[Tensor, " m"]
    curvature: Float[Tensor, " m"]  # the smallest eigenvalue of the Hessian
    slopes: Float[Tensor, "m d"]  # dx/ds, by the implicit function theorem

    def __len__(self) -> int:
        return len(self.s)

    def __repr__(self) -> str:
        return f"Branch(s = {self.s[0]:.4g} to {self.s[-1]:.4g}, {len(self)} places)"

    def row(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {name: each.tolist() for name, each in vars(self).items()}


@dataclass(frozen=True, repr=False)
class Branches:
    """The branches of all optima along a path of taus, in the order in which they begin."""

    path: Path
    branches: list[Branch]
    events: list[Event]  # by s
    samples: list[float]  # the s from one to the next of which optima were followed
    doubts: list[str]  # sentences: what was not followed, and why
    methods: tuple[str, ...]  # that solved
    starts: int  # at each sample, by each method

    def __len__(self) -> int:
        return len(self.branches)

    def __iter__(self) -> Iterator[Branch]:
        return iter(self.branches)

    def __getitem__(self, index: int) -> Branch:
        return self.branches[index]

    def __repr__(self) -> str:
        events = ", ".join(map(str, self.events)) or "no events"
        return f"Branches({self.summary()} {events})"

    def summary(self) -> str:
        """How many there are, in a sentence."""
        through = sum(float(b.s[0]) == 0 and float(b.s[-1]) == 1 for b in self)
        counts = {kind: sum(each.kind == kind for each in self.events) for kind in KINDS}
        said = [f"{n} {kind}{'s' * (n > 1)}" for kind, n in counts.items() if n]
        first, last = len(self.at(0.0)), len(self.at(1.0))
        return (
            f"{len(self)} {'branch' if len(self) == 1 else 'branches'}, {through} from end to end; "
            f"optima: {first} at s = 0, {last} at s = 1; {', '.join(said) or 'no events'}."
        )

    def at(self, s: float) -> Float[Tensor, "k d"]:
        """The optima at s, by Newton steps from the nearest places of the branches there."""
        alive = [b for b in self if b.s[0] <= s <= b.s[-1]]
        places = [int((b.s - s).abs().argmin()) for b in alive]
        if not alive:
            return torch.zeros(0, self.path.problem.space.dim, dtype=torch.double)
        near = [
            b.points[k] + (s - b.s[k]) * b.slopes[k] for b, k in zip(alive, places, strict=True)
        ]
        x = self.path.problem.space.retract(torch.stack(near))
        exact = torch.tensor([float(b.s[k]) == s for b, k in zip(alive, places, strict=True)])
        moved = corrected(self.path, torch.full((len(x),), s, dtype=x.dtype), x).points
        return torch.where(exact[:, None], x, moved)

    def table(self) -> Table:
        """The events, one a line."""
        table = Table("s", "event", "how", "x", "value", "branches")
        for each in self.events:
            numbers = ", ".join(map(str, each.branches))
            about = (f"{each.s:.4f}", each.kind, each.how, each.place)
            table.add_row(*about, f"{each.value:.4g}", numbers)
        return table

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        begin, end = (tau_numbers(self.path, s) for s in (0.0, 1.0))
        return {
            "problem": self.path.problem.name,
            "from": begin,
            "to": end,
            "methods": list(self.methods),
            "starts": self.starts,
            "samples": self.samples,
            "events": [vars(each) | {"branches": list(each.branches)} for each in self.events],
            "branches": [each.row() for each in self],
            "doubts": self.doubts,
        }

    def save(self, path: str | File) -> File:
        """Write it as JSON."""
        return write_atomically(path, json.dumps(self.to_json()))

    def plot(self, path: str | File | None = None) -> "File | Figure":
        """Draw the branches, into a file (png, svg or pdf) or as a figure of matplotlib."""
        from proxlearn.branches.picture import figure
        from proxlearn.figures.draw import save

        drawn = figure(self)
        return drawn if path is None else save(drawn, path)


def tau_numbers(path: Path, s: float) -> list[float] | None:
    """The tau at s, where it is a vector."""
    return vector_of(path.at(torch.tensor([s], dtype=torch.double)))
