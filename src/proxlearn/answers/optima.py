"""The distinct optima of one instance: isolated points, and sets along which solutions spread."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

import torch
from jaxtyping import Float, Int
from rich.console import Console, ConsoleOptions
from torch import Tensor

from proxlearn.answers.clusters import Cluster, Distance
from proxlearn.answers.table import SHOWN, table_of_optima

LOOKED_AT = 512  # members that decide which one is the most central
OF_ALL = ("starts", "verified", "unconverged", "method")  # the fields of all optima together


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
    method: str | None = None  # that found them, where it is known

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        sets = self.kind.count("continuum")
        best = "" if self.values is None or not len(self) else f", best value {self.values[0]:.4g}"
        kinds = f"{len(self) - sets} points and {sets} continua"
        rest = f"; {self.said_of_the_rest}" if self.said_of_the_rest else ""
        return f"Optima({kinds} from {self.share.sum():.1%} of {self.starts:,} starts{best}{rest})"

    @property
    def said_of_the_rest(self) -> str:
        """How many starts did not converge, in words; nothing where all did."""
        return f"{self.unconverged:.1%} of the starts did not converge" if self.unconverged else ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        """The first of them as a table, with as many coordinates as fit, and what it leaves out."""
        yield table_of_optima(self.rows(), options.max_width, lambda *_: {})
        if len(self) > SHOWN:
            yield f"... and {len(self) - SHOWN} more of {len(self)}"
        if self.said_of_the_rest:
            yield self.said_of_the_rest

    def _repr_html_(self) -> str:
        """The same in a notebook."""
        console = Console(record=True, file=StringIO(), width=120, highlight=False)
        console.print(self)
        return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")

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
        one = {"points": "point", "values": "value", "certificates": "certificate"}
        columns: dict[str, list[Any]] = {}
        for name, each in vars(self).items():
            if name not in OF_ALL:
                every = each.tolist() if isinstance(each, Tensor) else each
                columns[one.get(name, name)] = [None] * len(self) if every is None else every
        return [dict(zip(columns, each)) for each in zip(*columns.values())]


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
    """What there is to say of each cluster of points, which came from so many starts, and `of_all`
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
    members = cluster.members
    if values is not None:
        return int(members[int(values[members].nan_to_num(torch.inf).argmin())])
    some = members[:: -(-len(members) // LOOKED_AT)]
    return int(members[int(distance(points[members], points[some]).sum(1).argmin())])
