"""The test parts of the experiment on symmetries: solved in their own pose and in random ones."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.calculus.loop import now
from proxlearn.common.batch import Batch, select
from proxlearn.experiments._shared import Folder
from proxlearn.meshes.folder import Meshes
from proxlearn.problems.symmetry.of_surfaces import rotations, turned
from proxlearn.problems.symmetry.symmetry import Symmetry
from proxlearn.show import terminal
from proxlearn.solvers.solve import solve

VALUES_AT_ONCE = 8  # instances
Known = dict[str, Any]  # meshes, as `Symmetry` takes them


def meshes_of(folder: Folder) -> Known:
    """The training and the test parts of the data folder, with a line on those that cannot be used;
    none, where they are to be generated."""
    if folder.data is None:
        return {}
    known: Known = {}
    for name, split in (("meshes", "train"), ("test", "test")):
        meshes = Meshes(folder.data, split)
        known[name] = [mesh for _, mesh in meshes]
        if folder.progress:
            terminal.say(f"To {split}: {meshes.report()}")
    return known


@dataclass(frozen=True)
class Timed:
    """What a method found, and the seconds it took for a part, of many together."""

    solutions: Solutions
    seconds: float


@dataclass(frozen=True)
class Parts:
    """Test parts in one pose. Slopes are those of `problem`, values those of `exact`."""

    problem: Symmetry
    exact: Symmetry
    tau: Batch
    starts: int

    @staticmethod
    def of(
        problem: Symmetry, known: Known, count: int | None, starts: int, generator: Generator
    ) -> "Parts":
        """So many of the problem's test parts, or all, in their own pose."""
        device = generator.device
        problem.on(device)
        every = range(problem.trained, len(problem.meshes))
        which = torch.tensor(every[:count], device=device)
        tau = problem.posed(turned=False).instances_of(which, generator)
        return Parts(problem, Symmetry(**known, exact=True), tau, starts)

    def turned(self, turn: Float[Tensor, "i 3 3"]) -> "Parts":
        """The same clouds of the same parts, each turned by a rotation."""
        tau = self.tau | {"turn": turn, "cloud": turned(turn, self.tau["cloud"])}
        return replace(self, tau=tau)

    def started(self, starts: int) -> "Parts":
        """The same parts from so many starts each."""
        return replace(self, starts=starts)

    def some(self, rows: Tensor) -> "Parts":
        return replace(self, tau=select(self.tau, rows))

    def __len__(self) -> int:
        return len(self.tau["which"])

    def poses(self, generator: Generator) -> Float[Tensor, "i 3 3"]:
        """A random rotation of each."""
        return rotations(len(self), generator)

    def solved(self, method: str, seed: int, **settings: Any) -> Timed:
        device = self.tau["cloud"].device
        began = now(device)
        found = solve(self.problem, self.tau, method, self.starts, seed, str(device), **settings)
        return Timed(self.valued(found), (now(device) - began) / len(self))

    def valued(self, found: Solutions) -> Solutions:
        """With exact values."""
        first = range(0, len(self), VALUES_AT_ONCE)
        values = [
            self.exact.objective(x, select(self.tau, slice(k, k + len(x))))
            for k, x in zip(first, found.points.split(VALUES_AT_ONCE))
        ]
        return replace(found, values=torch.cat(values))


def turned_with(turn: Float[Tensor, "i 3 3"], found: Timed) -> Timed:
    """What was found, where it lies when the parts are turned: values stay as they are."""
    points = turned(turn, found.solutions.points)
    return replace(found, solutions=replace(found.solutions, points=points))
