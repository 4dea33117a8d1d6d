"""Rows as tables of a page: fields that differ are columns, the others are a line below."""

import html
from collections.abc import Sequence
from typing import Any

from proxlearn.common.provenance import Row
from proxlearn.show.glossary import explained

MAX_COLUMNS = 60
WIDE = 12  # a table of more columns has smaller letters, so that it fits the screen
MAX_ROWS = 1000  # of a table; a longer one shows so many, evenly spaced
MADE = ("proxlearn", "torch", "python", "machine", "command")  # where and by what a row was made
AT_THE_END = ("python", "command")  # of these, what no table has for each row
MOST_WP = 3  # columns of witnessed precision in a table; the rows may have dozens


def rows_to_html(rows: Sequence[Row], name: str, most: int = MAX_ROWS) -> str:
    """Rows as tables, one for each `measure` among them: rows of different measures have different
    columns, and together they would be mostly empty."""
    return "\n".join(_table(some, name, most) for some in of_measures(rows))


def of_measures(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each measure."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(str(row.get("measure")), []).append(row)
    return list(kinds.values())


def _table(rows: Sequence[Row], name: str, most: int) -> str:
    """Rows as a table of what differs between them, and a line of what does not."""
    varying, constant = split_columns(rows)
    columns = shown_columns(varying)[:MAX_COLUMNS]
    step = max(1, -(-len(rows) // most))
    shown = [*rows[::step]]
    if shown[-1] is not rows[-1]:
        shown.append(rows[-1])  # the end of a training matters most
    fixed = {k: v for k, v in constant.items() if v is not None and k not in MADE}
    said = ", ".join(f"{k} = {readable(v)}" for k, v in fixed.items())
    count = f"{len(shown)} of {counted(rows)}" if step > 1 else counted(rows)
    below = f"{name}: {count}" + (f"; the same in all: {said}" if said else "")
    if hidden := len(varying) - len(columns):
        below += f"; {hidden} more column{'s' * (hidden > 1)} in the file"
    table = _list(rows[0], columns) if len(rows) == 1 else _lines(shown, columns)
    return f'{table}<p class="said">{html.escape(below)}.</p>'


def counted(rows: Sequence[Row]) -> str:
    return f"{len(rows):,} row{'s' * (len(rows) != 1)}"


def _lines(rows: Sequence[Row], columns: Sequence[str]) -> str:
    lines = [[readable(row.get(column)) for column in columns] for row in rows]
    words = [any(isinstance(row.get(column), str) for row in rows) for column in columns]
    return table_to_html(columns, lines, words)


def _list(row: Row, columns: Sequence[str]) -> str:
    """A single row with a field a line, which fits any screen."""
    lines = [
        [column.replace("_", " "), readable(row[column])]
        for column in columns
        if row[column] is not None
    ]
    return table_to_html(("field", "value"), lines, (True, True))


def table_to_html(
    columns: Sequence[str], lines: Sequence[Sequence[str]], words: Sequence[bool]
) -> str:
    """A table whose headings are columns of rows, with what they mean; `words` are not numbers."""
    kind = [' class="words"' if each else "" for each in words]
    head = "".join(
        f"<th{how}{_title(column)}>{html.escape(column.replace('_', ' '))}</th>"
        for column, how in zip(columns, kind)
    )
    body = "\n".join(
        f"<tr>{''.join(f'<td{how}>{html.escape(c)}</td>' for c, how in zip(line, kind))}</tr>"
        for line in lines
    )
    wide = " wide" if len(columns) > WIDE else ""
    return (
        f'<div class="table{wide}"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>'
        "</table></div>"
    )


def _title(column: str) -> str:
    """The explanation of a column, if it has one, as its heading's tooltip."""
    said = explained(column)
    return f' title="{html.escape(said)}"' if said else ""


def shown_columns(columns: Sequence[str]) -> list[str]:
    """Those that a table shows: no standard deviations, few of many witnessed precisions, and
    not what hardly matters to a reader of numbers and stands at the end of the page."""
    precisions = [key for key in columns if key.startswith("wp@")]
    step = max(1, -(-len(precisions) // MOST_WP))
    left_out = {*AT_THE_END, *precisions} - {*precisions[::step]}
    return [key for key in columns if key not in left_out and "_std" not in key]


def split_columns(rows: Sequence[Row]) -> tuple[list[str], Row]:
    """The columns of a table, and the fields that are the same in every row.
    A single row keeps its fields as columns, except where it was made."""
    first, keys = rows[0], dict.fromkeys(key for row in rows for key in row)
    differ = {key for row in rows for key in {**row, **first} if row.get(key) != first.get(key)}
    kept = [key for key in keys if len(rows) > 1 or key in MADE]
    same = {key: first.get(key) for key in kept if key not in differ}
    return [key for key in keys if key not in same], same


def readable(value: Any, digits: int = 4) -> str:
    """A value for a person: a few digits, thousands with commas, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.{digits}g}"
    if isinstance(value, (list, tuple)):
        return f"{len(value)} numbers" if len(value) > 8 else ", ".join(map(readable, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {readable(each)}" for key, each in value.items())
    return str(value)
