"""What the commands print: lines for a person, tables of optima and of results."""

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from proxlearn.answers.optima import Optima
from proxlearn.common.provenance import Row
from proxlearn.gpu.parallel import this_process
from proxlearn.measure.advise import Advice
from proxlearn.operators.card import ROWS
from proxlearn.problems.base import Problem
from proxlearn.show.glossary import explained
from proxlearn.show.tables import readable, split_columns
from proxlearn.spaces import Box, Circles, Lines, Planes, Product, Signs, Space, Sphere

RESULTS = (  # the columns of rows that a table on the screen shows, besides wp@...
    "label threshold wd rho best value value_median solved optima found known starts seconds "
    "us_per_start"
)
MEASURED = ("wd", "wp", "rho")  # columns, by their beginnings, that are explained below a table
WIDE = Console(width=10_000)  # wide enough for any table, to measure them


def say(text: str, style: str = "") -> None:
    """A line for the person, from the first process, on standard error: standard output is data."""
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


def show(lines: Table) -> None:
    """A table on standard output."""
    _output().print(lines)


def _output() -> Console:
    console = Console()
    if not console.is_terminal:
        console.width = 120  # columns
    return console


def optima_table(optima: Optima) -> None:
    """The distinct optima, as the problem writes them."""
    show(optima.table(_output().width))


def advice_table(advice: Advice) -> None:
    """What was measured for the advice on lam, a line each."""
    found, seen = advice.curvature, advice.operator
    lines = {
        "lam": f"{advice.lam:.4g}",
        "weak convexity constant xi": "none" if found.ridged else f"{found.weak_convexity:.4g}",
        "Lipschitz constant of the gradient": "none" if found.kinked else f"{found.lipschitz:.4g}",
        "median gradient": f"{found.slope:.4g}",
        "median distance to the optimum": f"{advice.distance:.4g}",
        "applications to cross a basin": f"{advice.applications(advice.lam):,}",
    }
    if seen is not None:
        lines |= {
            "operator's loss above the true step's, eps": f"{seen.gap:.3g}",
            "mean squared distance to the true step": f"{seen.error:.3g}",
            "its bound 2 eps / (lam - xi)": "none" if seen.bound is None else f"{seen.bound:.3g}",
        }
    table = Table("", escape(advice.problem), box=None)
    table.columns[1].justify = "right"
    for line in lines.items():
        table.add_row(*line)
    show(table)


def card_table(cards: dict[str, dict[str, str]]) -> None:
    """The cards of operators, a line each, by the names of their problems."""
    table = Table("operator", *ROWS, box=None, padding=(1, 2, 0, 0))
    for name, card in cards.items():
        table.add_row(name, *(escape(card[row]) for row in ROWS))
    show(table)


def rows_table(rows: list[Row]) -> None:
    """The results in rows as a table: the measured columns in which rows differ; a column for each
    row where the screen is too narrow for a line."""
    varying, _ = split_columns(rows)
    keys = [key for key in varying if key in RESULTS.split() or key.startswith("wp@")]
    cells = [[escape(readable(row.get(key), 3)) for key in keys] for row in rows]
    table = _rows_table([keys, *cells])
    if Measurement.get(WIDE, WIDE.options, table).maximum > _output().width:
        table = _rows_table([list(each) for each in zip(keys, *cells)])
    show(table)
    for name in MEASURED:
        if any(key.startswith(name) for key in keys):
            say(f"{name}: {explained(name)}.")


def _rows_table(lines: list[list[str]]) -> Table:
    """The first line is the heading, the first column is words."""
    table = Table(*lines[0], box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for line in lines[1:]:
        table.add_row(*line)
    return table


def tau_size(problem: Problem) -> str:
    """How many numbers tau has; `none` for a single objective; else what kind of thing it is."""
    own = problem.instances
    return own.kind if own.numbers is None else str(own.numbers or "none")


def space_words(space: Space) -> str:
    """A space in short."""
    match space:
        case Box(low=low, high=high) if len({*low}) == len({*high}) == 1:
            return f"[{low[0]:g}, {high[0]:g}]^{space.dim}".removesuffix("^1")
        case Box() if space.dim > 2:
            return f"a box in R^{space.dim}"
        case Box(low=low, high=high):
            return " x ".join(f"[{a:g}, {b:g}]" for a, b in zip(low, high))
        case Circles(n=n):
            return f"(S^1)^{n}"
        case Signs(n=n):
            return f"{{-1, 1}}^{n}"
        case Sphere(dim=dim):
            return f"S^{dim - 1}"
        case Planes():
            return "S^2 x R>=0"
        case Lines():
            return "lines of R^3"
        case Product(parts=parts):
            return " x ".join(map(space_words, parts))
    return repr(space)
