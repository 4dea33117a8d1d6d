"""A report: one self-contained HTML page of the rows, pictures and tables below a folder.
It only ever reads: `*.jsonl` (rows, as tables), `*.png` (embedded), `*.md` (rendered)."""

import base64
import html
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from proxlearn.common.checks import is_number
from proxlearn.common.contents import brief
from proxlearn.common.files import write_atomically
from proxlearn.common.provenance import Row, machine, versions
from proxlearn.errors import FileError, LeftOutWarning
from proxlearn.show.folder import Folder, Found

MAX_COLUMNS = 60
MAX_ROWS = 40  # of a table; a longer one shows so many, evenly spaced
PROVENANCE = ("proxlearn", "torch", "python", "machine", "command")  # said below the table

MOST_WP = 3  # columns of witnessed precision in a table; the rows may have dozens
LEGEND = {  # what is measured against a truth, by the beginning of a column's name
    "wd": "wd (witnessed divergence): how far solutions and true ones lie apart, as seen from "
    "random points of the space; smaller is better",
    "wp@": "wp@0.05 (witnessed precision): the share of those points for which that is less than "
    "0.05; 1 is best",
    "rho": "rho: the share of solutions that count, being inside the space and at most as high as "
    "the threshold",
}

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --quiet: #6a6a6a; --line: #dcdcdc; --page: #fff;
        --band: #f6f6f4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --quiet: #a0a0a0; --line: #3a3a3a; --page: #161616; --band: #1f1f1f; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
       max-width: 1100px; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.6rem; border-bottom: 1px solid var(--line); }
table { display: block; overflow-x: auto; border-collapse: collapse; font-size: .87rem;
        font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid var(--line);
         white-space: nowrap; }
th { color: var(--quiet); font-weight: 600; } th:first-child, td:first-child { text-align: left; }
tbody tr:nth-child(even) { background: var(--band); }
figure { margin: 1.4rem 0; } img { max-width: 100%; background: #fff; border-radius: 4px; }
figcaption, .said, footer { color: var(--quiet); font-size: .85rem; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .8rem; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
"""


def report(
    folder: str | Path, output: str | Path, title: str = "proxlearn report", command: str = ""
) -> Path:
    """Write the page for everything below `folder`, and say in it which command did. What cannot be
    shown is left out with a warning, and the page says so."""
    found = Found(folder)
    body = "\n".join(map(_section, found.folders))
    left_out = found.left_out
    if not body:
        why = f" Left out: {left_out[0]}" if left_out else ""
        raise FileError(
            f"{brief(folder)} holds nothing to report: no rows (*.jsonl), pictures (*.png) or "
            f"tables (*.md). Make some with `proxlearn evaluate` or `proxlearn reproduce`.{why}"
        )
    if left_out:
        body += _left_out(left_out)
        more = f" and {len(left_out) - 1:,} more, which the page lists" if left_out[1:] else ""
        warnings.warn(f"Left out: {left_out[0].rstrip('.')}{more}.", LeftOutWarning, stacklevel=2)
    made = f"Made by <code>{html.escape(command)}</code><br>" if command else ""
    said = ", ".join(f"{name} {version}" for name, version in versions().items())
    footer = f"<footer>{made}{html.escape(said)}, on {html.escape(machine())}</footer>"
    page = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{html.escape(title)}</h1>\n{body}\n{footer}\n</body>\n</html>\n"
    )
    return write_atomically(output, page)


def _section(folder: Folder) -> str:
    """What one folder itself holds: tables first, then pictures."""
    parts = [
        *(_markdown(text) for _, text in folder.tables),
        *(rows_to_html(rows, name) for name, rows in folder.rows),
        *(_progress(rows) for name, rows in folder.rows if name == "training.jsonl"),
        *(_figure(name, content) for name, content in folder.pictures),
    ]
    name = f"<h2>{html.escape(folder.name)}</h2>\n" if folder.name else ""
    return name + "\n".join(parts)


def _left_out(sentences: Sequence[str]) -> str:
    """What of the folder is not shown, and why."""
    lines = [f"<li>{html.escape(each)}</li>" for each in sentences[:MAX_ROWS]]
    if more := len(sentences) - len(lines):
        lines.append(f"<li>And {more:,} more.</li>")
    lines = "\n".join(lines)
    return f'\n<h2>Left out</h2>\n<ul class="said">\n{lines}\n</ul>'


def _progress(rows: Sequence[Row]) -> str:
    """Of a training: how many held-out starts ended at an optimum, as it went on."""
    given: list[Any] = [(row.get("seconds"), row.get("at_optimum")) for row in rows]
    seen = [pair for pair in given if all(is_number(each) and each >= 0 for each in pair)]
    longest = max((seconds for seconds, _ in seen), default=0)
    if len(seen) < 2 or not longest:
        return ""
    at = " ".join(f"{40 + 540 * (s / longest):.1f},{130 - 110 * share:.1f}" for s, share in seen)
    words = [(36, 24, "100%", "end"), (36, 134, "0", "end"), (580, 148, f"{longest:.0f} s", "end")]
    text = "".join(
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="11" fill="currentColor">{said}'
        "</text>"
        for x, y, said, anchor in words
    )
    axes = '<path d="M40,20 V130 H580" fill="none" stroke="currentColor" stroke-opacity=".4"/>'
    line = f'<polyline points="{at}" fill="none" stroke="#2a7f62" stroke-width="2"/>'
    said = "held-out starts that end at an optimum, over the seconds of the training"
    return (
        '<figure><svg viewBox="0 0 600 155" style="max-width: 600px" role="img" '
        f'aria-label="{said}">'
        f"{axes}{line}{text}</svg><figcaption>{said}</figcaption></figure>"
    )


def _figure(name: str, content: bytes) -> str:
    data = base64.b64encode(content).decode()
    words = html.escape(Path(name).stem.replace("_", " ").replace("-", " "))
    return (
        f'<figure><img alt="{words}" src="data:image/png;base64,{data}">'
        f"<figcaption>{html.escape(name)}</figcaption></figure>"
    )


def rows_to_html(rows: Sequence[Row], name: str) -> str:
    """Rows as tables, one for each `measure` among them: rows of different measures have different
    columns, and together they would be mostly empty."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(str(row.get("measure")), []).append(row)
    return "\n".join(_table(some, name) for some in kinds.values())


def _table(rows: Sequence[Row], name: str) -> str:
    """Rows as a table of what differs between them, and a line of what does not."""
    varying, constant = split_columns(rows)
    columns = shown_columns(varying)[:MAX_COLUMNS]
    step = max(1, -(-len(rows) // MAX_ROWS))
    shown = [*rows[::step]]
    if shown[-1] is not rows[-1]:
        shown.append(rows[-1])  # the end of a training matters most
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    lines = (
        "".join(f"<td>{html.escape(readable(row.get(column)))}</td>" for column in columns)
        for row in shown
    )
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    count = f"{len(shown)} of {len(rows):,} rows" if step > 1 else f"{len(rows)} rows"
    said = ", ".join(f"{k} = {readable(v)}" for k, v in constant.items() if v is not None)
    below = f"{name}: {count}" + (f"; the same in all: {said}" if said else "")
    if hidden := len(varying) - len(columns):
        below += f"; {hidden} more column{'s' * (hidden > 1)} in the file"
    below = ". ".join((below, *legend(columns)))
    return table + f'<p class="said">{html.escape(below)}.</p>'


def shown_columns(columns: Sequence[str]) -> list[str]:
    """Those that a table shows: no standard deviations, and few of many witnessed precisions."""
    precisions = [key for key in columns if key.startswith("wp@")]
    step = max(1, -(-len(precisions) // MOST_WP))
    left_out = {*precisions} - {*precisions[::step]}
    return [key for key in columns if key not in left_out and "_std" not in key]


def legend(columns: Sequence[str]) -> list[str]:
    """What the columns mean that a newcomer cannot know."""
    return [said for name, said in LEGEND.items() if any(key.startswith(name) for key in columns)]


def split_columns(rows: Sequence[Row]) -> tuple[list[str], Row]:
    """The columns of a table, and the fields that are the same in every row.
    A single row keeps its fields as columns, except where it was made."""
    first, keys = rows[0], dict.fromkeys(key for row in rows for key in row)
    differ = {key for row in rows for key in {**row, **first} if row.get(key) != first.get(key)}
    kept = [key for key in keys if len(rows) > 1 or key in PROVENANCE]
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


def _markdown(text: str) -> str:
    """The little of Markdown that tables need, headings one level down; all else is shown as it is,
    HTML, links and images too: a page loads and runs nothing."""
    some = MarkdownIt("zero").enable(["heading", "table", "emphasis", "backticks"])
    tokens = some.parse(text)
    for each in tokens:
        if each.type in ("heading_open", "heading_close"):
            each.tag = f"h{min(int(each.tag[1]) + 1, 6)}"
    return some.renderer.render(tokens, some.options, {})
