"""The distinct optima of one instance: isolated points, and sets along which they spread."""

import html
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from rich.console import Console, ConsoleOptions
from rich.table import Table
from torch import Tensor

from proxlearn.answers.clusters import Cluster, Distance
from proxlearn.answers.frames import as_array, coordinates, frame_of
from proxlearn.answers.table import SHOWN, Written, html_of_optima, table_of_optima
from proxlearn.common import checks
from proxlearn.common.printed import printed
from proxlearn.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from scipy.optimize import OptimizeResult

LOOKED_AT = 512  # members of a cluster by which its most central one is found, at most
# The fields of all optima together.
OF_ALL = ("starts", "verified", "unconverged", "method", "solutions")


@dataclass(frozen=True)
class Optima:
    """The distinct optima of one instance, best (or most reached) first."""

    points: Float[Tensor, "k d"]  # of each, its best solution, or its most central without values
    values: Float[Tensor, "k"] | None
    share: Float[Tensor, "k"]  # of the starts, how many ended there
    hits: Int[Tensor, "k"]  # the same as a number of starts
    spread: Float[Tensor, "k"]  # how far its solutions lie from that point, root mean square
    gap: Float[Tensor, "k"]  # the widest between neighbouring solutions: how well it is covered
    dimension: Int[Tensor, "k"]  # 0 for a point, 1 for a curve, 2 for a surface, ...
    kind: list[str]  # "point", or "continuum" where solutions spread along a set
    starts: int  # how many there were, of which some may have led nowhere
    certificates: list[str] | None = None  # what is known of each point, see CERTIFICATES
    verified: bool = False  # whether each leads to a certified optimum, by the objective
    unconverged: float = 0.0  # of the starts, the share that ended inside, but at no optimum
    method: str | None = None  # by which they were found, if known
    solutions: Any = None  # the `Solutions` of one instance that they were found among

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        sets = self.kind.count("continuum")
        best = "" if self.values is None or not len(self) else f", best value {self.values[0]:.4g}"
        kinds = f"{len(self) - sets} points and {sets} continua"
        rest = f"; {self.said_of_the_rest}" if self.said_of_the_rest else ""
        return f"Optima({kinds} from {self.share.sum():.1%} of {self.starts:,} starts{best}{rest})"

    def __str__(self) -> str:
        return printed(self)

    @property
    def said_of_the_rest(self) -> str:
        """How many starts did not converge, in words; empty where all did."""
        return f"{self.unconverged:.1%} of the starts did not converge" if self.unconverged else ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        """The first of them as a table, with as many coordinates as fit, and what it leaves out."""
        yield self.table(options.max_width)
        yield from self._left_out()

    def table(self, width: int) -> Table:
        """The first of them, no wider than so many characters."""
        return table_of_optima(self.rows(), width, self._written)

    def _repr_html_(self) -> str:
        """The same in a notebook."""
        notes = "".join(f"<p>{html.escape(each)}</p>\n" for each in self._left_out())
        said = f"<p>{html.escape(repr(self))}</p>\n"
        return said + html_of_optima(self.rows(), self._written) + notes

    def _left_out(self) -> list[str]:
        """What the table does not show, a sentence each."""
        more = len(self) - SHOWN
        return [
            *([f"... and {more} more of {len(self)}"] if more > 0 else []),
            *([self.said_of_the_rest] if self.said_of_the_rest else []),
        ]

    @property
    def _written(self) -> Written:
        """How the problem writes a point, where it is known."""
        problem = getattr(self.solutions, "problem", None)
        return problem.written if problem is not None else lambda *_: {}

    @property
    def best(self) -> "OptimizeResult":
        """The best of them as SciPy has results: `x`, `fun`, `success`, `status`, `message`."""
        from proxlearn.answers.scipy_result import best_of

        return best_of(self)

    def plot(self, path: str | Path | None = None) -> "Path | Figure":
        """Draw them among their solutions, into a file (png, svg or pdf) or as a figure."""
        if self.solutions is None:
            raise InputError(
                "These optima do not know their solutions, which are drawn with them: make them by "
                "solutions.unique()."
            )
        return self.solutions.plot(path, self)

    def to_frame(self) -> "DataFrame":
        """A DataFrame of pandas: a row for each, with its coordinates as x1, x2, ..."""
        columns = {k: each for k, each in self._columns().items() if each is not None}
        return frame_of(coordinates(columns.pop("points")) | columns)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """Their points (k, d), for NumPy."""
        return as_array(self.points, dtype, copy)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """One after the other, as `rows` gives them."""
        return iter(self.rows())

    def __getitem__(self, index: int | slice) -> "dict[str, Any] | Optima":
        """One of them, as `rows` gives it, or some as `Optima`."""
        if isinstance(index, slice):
            return self._some(list(range(len(self)))[index])
        return self.rows()[index]

    def reached_by(self, smallest_share: float) -> "Optima":
        """Those that at least this share of the starts reached."""
        smallest_share = checks.share("smallest_share", smallest_share, "a share")
        return self._some((self.hits >= smallest_share * self.starts).nonzero()[:, 0].tolist())

    def _some(self, kept: list[int]) -> "Optima":
        """Those of these numbers: of every field that has an entry for each."""
        some: dict[str, Any] = {
            name: each[kept] if isinstance(each, Tensor) else [each[k] for k in kept]
            for name, each in vars(self).items()
            if isinstance(each, Tensor | list)
        }
        return replace(self, **some)

    def rows(self) -> list[dict[str, Any]]:
        """One dict for each optimum, ready for JSON."""
        columns: dict[str, list[Any]] = {"point": self.points.tolist()}
        for name, each in self._columns().items():
            if name != "points":
                every = each.tolist() if isinstance(each, Tensor) else each
                columns[name] = [None] * len(self) if every is None else every
        return [dict(zip(columns, each)) for each in zip(*columns.values())]

    def _columns(self) -> dict[str, Any]:
        """What there is of each, by the name it has for one of them; the points come first."""
        one = {"values": "value", "certificates": "certificate"}
        return {one.get(k, k): each for k, each in vars(self).items() if k not in OF_ALL}


def optima_of(
    clusters: list[Cluster],
    points: Float[Tensor, "n d"],
    values: Float[Tensor, " n"] | None,
    certificates: list[str] | None,
    distance: Distance,
    tolerance: float,
    starts: int,
    **of_all: Any,
) -> Optima:
    """The optima that clusters of points stand for, of so many starts; `of_all`: the fields of all
    of them together."""
    chosen = [_representative(points, values, each, distance) for each in clusters]
    hits = torch.tensor([len(each.members) for each in clusters], dtype=torch.long)
    far = [distance(points[[one]], points[c.members]) for one, c in zip(chosen, clusters)]
    spread = [float(each.square().mean().sqrt()) for each in far]
    extended = [s > tolerance and c.dimension > 0 for s, c in zip(spread, clusters)]
    found = Optima(
        points=points[chosen],
        values=None if values is None else values[chosen],
        share=hits / starts,
        hits=hits,
        spread=torch.tensor(spread),
        gap=torch.tensor([each.gap for each in clusters]),
        dimension=torch.tensor([e * c.dimension for e, c in zip(extended, clusters)]).long(),
        kind=["continuum" if each else "point" for each in extended],
        starts=starts,
        certificates=None if certificates is None else [certificates[k] for k in chosen],
        **of_all,
    )
    key = -hits if found.values is None else found.values
    return found._some(key.argsort(stable=True).tolist())


def _representative(
    points: Float[Tensor, "n d"], values: Tensor | None, cluster: Cluster, distance: Distance
) -> int:
    """The best point of a cluster, or its most central without values."""
    if values is not None:
        return cluster.lowest(values)
    members, some = cluster.members, cluster.some(LOOKED_AT)
    return int(members[int(distance(points[members], points[some]).sum(1).argmin())])
