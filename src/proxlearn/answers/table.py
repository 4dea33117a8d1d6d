"""The distinct optima of one instance as a table, on the screen with as many coordinates as fit, or
in a notebook."""

import html
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

SHOWN = 20  # rows
COORDINATES = 6  # of a point
DIGITS = (4, 3, 2)  # behind the point
Row = dict[str, Any]  # of an optimum, as `Optima.rows` gives them
Written = Callable[
    [list[float], float | None], dict[str, str]
]  # (point, value) -> cells by heading


def table_of_optima(rows: Sequence[Row], width: int, written: Written) -> Table:
    """The first of the rows, no wider than so many characters; `written` is `problem.written`.
    More coordinates are worth more than their last digits."""
    rows, wide, table = rows[:SHOWN], Console(width=10_000), Table(box=None)
    dim = len(rows[0]["point"]) if rows else 0
    for count, digits in product(range(min(dim, COORDINATES), -1, -1), DIGITS):
        table = _table([_cells(row, count, digits, written) for row in rows])
        if Measurement.get(wide, wide.options, table).maximum <= width:
            break
    return table


def html_of_optima(rows: Sequence[Row], written: Written) -> str:
    """The same for a notebook, which scrolls what is too wide."""
    return html_table([_cells(row, COORDINATES, DIGITS[0], written) for row in rows[:SHOWN]], 1)


def html_table(lines: Sequence[dict[str, str]], first: int = 0) -> str:
    """Lines of cells by their headings, numbered from `first`."""
    if not lines:
        return ""
    heads = "".join(f"<th>{html.escape(each)}</th>" for each in lines[0])
    body = "".join(
        f"<tr><th>{k}</th>{''.join(f'<td>{html.escape(c)}</td>' for c in line.values())}</tr>\n"
        for k, line in enumerate(lines, first)
    )
    return f"<table>\n<thead><tr><th></th>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table>\n"


def _cells(row: Row, count: int, digits: int, written: Written) -> dict[str, str]:
    """One line of the table by its headings, with so many coordinates of the point."""
    point, starts = row["point"], {"starts": f"{row['share']:.1%}"}
    certificate = {"certificate": row["certificate"]} if row["certificate"] else {}
    if own := written(point, row["value"]):
        return own | starts | certificate
    cells = {
        f"x{k + 1}": f"{round(each, digits) + 0.0:.{digits}f}"
        for k, each in enumerate(point[:count])
    }
    if count < len(point):
        cells["..."] = "..."
    kind = "point" if row["kind"] == "point" else f"continuum, {row['dimension']}-D"
    value = "" if row["value"] is None else f"{row['value']:.4g}"
    spread = {} if certificate else {"spread": f"{row['spread']:.2g}"}  # what is polished has none
    return cells | {"value": value} | starts | spread | {"kind": kind} | certificate


def _table(lines: list[dict[str, str]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("", justify="right")
    for heading in lines[0] if lines else ():
        words = heading in ("kind", "certificate", "sides of the vertices")
        justify = "left" if words else "right"
        table.add_column(escape(heading), justify=justify, overflow="fold")
    for k, line in enumerate(lines):
        table.add_row(str(k + 1), *map(escape, line.values()))
    return table
