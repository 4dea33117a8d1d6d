"""What the command line puts on the screen: lines for a person, tables of optima and of rows."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from proxlearn.parallel import this_process

if TYPE_CHECKING:
    from proxlearn.optima import Optima
    from proxlearn.problem import Problem
    from proxlearn.runs import Row
    from proxlearn.spaces import Space

RESULTS = (  # the columns of rows that a table on the screen shows, with wp@...
    "label threshold wd rho best value value_median solved optima found known starts seconds "
    "us_per_start"
)
WIDE = 120  # columns, where the output is no terminal


def say(text: str, style: str = "") -> None:
    """A line for the person, on standard error, so that standard output stays data; of several
    processes, the first one speaks."""
    if this_process().first:
        _line(text, style)


def complain(text: str) -> None:
    """What went wrong, from whichever process it did in."""
    process = this_process()
    who = f"Process {process.rank} of {process.size}: " if process.size > 1 else ""
    _line(who + text, "red")


def _line(text: str, style: str) -> None:
    console = Console(stderr=True, highlight=False)
    console.print(" ".join(text.split("\n")), style=style, markup=False, soft_wrap=True)


def show(table: "Table | Optima") -> None:
    """A table on standard output."""
    console = Console()
    if not console.is_terminal:
        console.width = WIDE
    console.print(table)


def optima_table(optima: "Optima") -> None:
    """The distinct optima, best first."""
    from proxlearn.optima import SHOWN

    show(optima)
    if len(optima) > SHOWN:
        say(f"... and {len(optima) - SHOWN} more: --json FILE has them all.")


def rows_table(rows: "list[Row]") -> None:
    """The results in rows as a table: what was measured and differs, not how it was measured."""
    from proxlearn.report import readable, split_columns

    varying, _ = split_columns(rows)
    keys = [key for key in varying if key in RESULTS.split() or key.startswith("wp@")]
    table = Table(*keys, box=None, pad_edge=False, collapse_padding=True)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*(escape(readable(row.get(key), 3)) for key in keys))
    show(table)


def tau_size(problem: "Problem") -> str:
    """How many numbers tau has; `none` for a single objective; else what it is, by its encoder."""
    from proxlearn.encoders.vector import Vector

    encoder = problem.encoder()
    return str(encoder.range.dim or "none") if isinstance(encoder, Vector) else encoder.kind


def space_words(space: "Space") -> str:
    """A space in short."""
    from proxlearn.spaces import Box, Circles, Planes, Product, Sphere

    match space:
        case Box(low=low, high=high) if len({*low}) == len({*high}) == 1:
            return f"[{low[0]:g}, {high[0]:g}]^{space.dim}".removesuffix("^1")
        case Box() if space.dim > 4:
            return f"a box in R^{space.dim}"
        case Box(low=low, high=high):
            return " x ".join(f"[{a:g}, {b:g}]" for a, b in zip(low, high))
        case Circles(n=n):
            return f"(S^1)^{n}"
        case Sphere(dim=dim):
            return f"S^{dim - 1}"
        case Planes():
            return "S^2 x R>=0"
        case Product(parts=parts):
            return " x ".join(map(space_words, parts))
    return repr(space)
