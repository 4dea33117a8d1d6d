"""What comes out of a solver: every start's solution, and the distinct optima among them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from proxlearn.batch import Batch, move
from proxlearn.errors import InputError
from proxlearn.problem import Problem
from proxlearn.spaces import Space

MAX_DISTANCES = 1 << 25  # held at once: 128 MiB
TOLERANCE = 0.005  # solutions nearer than this share of the diameter are one optimum


@dataclass(frozen=True)
class Optima:
    """The distinct optima of one instance, best (or most reached) first."""

    points: Float[Tensor, "k d"]
    values: Float[Tensor, "k"] | None
    share: Float[Tensor, "k"]  # of the starts, how many ended there
    kind: list[str]  # "point", or "continuum" where the solutions spread along a set

    def __len__(self) -> int:
        return len(self.points)


@dataclass(frozen=True)
class Solutions:
    """The solutions of a batch of instances, one for each start."""

    space: Space
    points: Float[Tensor, "i n d"]
    starts: Float[Tensor, "i n d"]
    inside: Bool[Tensor, "i n"]
    values: Float[Tensor, "i n"] | None = None  # None where there is no objective
    applications: int | None = None

    @staticmethod
    def of(space: Space, points: Tensor, starts: Tensor, applications: int | None = None):
        """Solutions without values yet."""
        inside = space.contains(points) & points.isfinite().all(-1)
        return Solutions(space, points, starts, inside, None, applications)

    @torch.no_grad()
    def valued(self, problem: Problem, tau: Batch) -> "Solutions":
        """The same with objective values."""
        return replace(self, values=problem.objective(self.points, move(tau, self.points.device)))

    def __len__(self) -> int:
        """How many instances."""
        return len(self.points)

    def __getitem__(self, index: int | slice) -> "Solutions":
        """Some of the instances."""
        if isinstance(index, int) and not -len(self) <= index < len(self):
            raise IndexError(f"There are {len(self)} instances, and no number {index}.")
        keep = slice(index, index + 1 or None) if isinstance(index, int) else index
        picked: dict[str, Any] = {
            name: None if value is None else value[keep]
            for name in ("points", "starts", "inside", "values")
            for value in (getattr(self, name),)
        }
        return replace(self, **picked)

    def __repr__(self) -> str:
        i, n, d = self.points.shape
        best = "" if self.values is None else f", best value {self.values.min():.4g}"
        inside = f"{self.inside.float().mean():.1%} inside"
        return f"Solutions({i} instances x {n} points in {d}-D, {inside}{best})"

    def unique(self, tolerance: float | None = None, smallest_share: float = 0.001) -> Optima:
        """The distinct optima of one instance: clusters of solutions that lie inside the space.

        Solutions within `tolerance` of each other (in the space's distance) are one optimum;
        clusters reached by less than `smallest_share` of the starts are left out.
        """
        if len(self) != 1:
            raise InputError(f"unique() is of one instance, not of {len(self)}: use solutions[0].")
        tolerance = TOLERANCE * self.space.diameter if tolerance is None else tolerance
        inside = self.inside[0].cpu()
        points = self.points[0].cpu()[inside]
        values = None if self.values is None else self.values[0].cpu()[inside]
        count, label = connected_components(_near(self.space, points, tolerance), directed=False)
        clusters = [np.flatnonzero(label == k) for k in range(count)]
        needed = max(1.0, smallest_share * inside.numel())
        kept = [members for members in clusters if len(members) >= needed]
        return _optima(self.space, points, values, kept, inside.numel(), tolerance)


def _near(space: Space, points: Float[Tensor, "n d"], tolerance: float) -> csr_array:
    """Which points are within `tolerance` of each other, some rows of the matrix at a time."""
    rows = max(1, MAX_DISTANCES // max(1, len(points)))
    near = (space.pairwise(some, points) <= tolerance for some in points.split(rows))
    return csr_array(vstack([csr_array(each.numpy()) for each in near]))  # dense one at a time


def _optima(
    space: Space,
    points: Tensor,
    values: Tensor | None,
    clusters: list[np.ndarray],
    starts: int,
    tolerance: float,
) -> Optima:
    """One representative for each cluster: its best point, or its most central without values."""
    chosen, kinds = [], []
    for members in clusters:
        distance = space.pairwise(points[members], points[members])
        best = distance.sum(1).argmin() if values is None else values[members].argmin()
        chosen.append(int(members[best]))
        kinds.append("continuum" if float(distance.max()) > 10 * tolerance else "point")
    share = torch.tensor([len(members) / starts for members in clusters])
    key = -share if values is None else values[chosen]
    order = key.argsort(stable=True).tolist()
    index = [chosen[k] for k in order]
    return Optima(
        points[index],
        None if values is None else values[index],
        share[order],
        [kinds[k] for k in order],
    )
