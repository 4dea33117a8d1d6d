"""A report: one self-contained HTML page of what is in a folder and below it: `*.jsonl` (rows, as
tables), `*.png` (embedded) and `*.md` (rendered). Its one script sorts tables; a browser runs no
other, whatever the folder holds."""

import base64
import html
import re
import warnings
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from proxlearn.common.checks import is_number
from proxlearn.common.contents import brief
from proxlearn.common.files import write_atomically
from proxlearn.common.provenance import Row, machine, versions
from proxlearn.errors import FileError, LeftOutWarning
from proxlearn.show.folder import Folder, Found
from proxlearn.show.glossary import of_columns, of_words
from proxlearn.show.tables import (
    MADE,
    MAX_ROWS,
    counted,
    of_measures,
    readable,
    rows_to_html,
    shown_columns,
    split_columns,
    table_to_html,
)

TRAINING = "training.jsonl"
OPEN, FEW_OF_A_CURVE = 60, 40  # rows of a table that is not folded; rows that show a curve
FEW = 3  # sections that need no list of them, and different values that are all said
MAX_LEFT_OUT = 40  # sentences on what is not shown
LINK = ("link_open", "link_close")


def report(
    folder: str | Path, output: str | Path, title: str = "proxlearn report", command: str = ""
) -> Path:
    """Write the page of everything in `folder` and below it; it names the command that made it.
    What cannot be shown is left out with a warning, and the page says so."""
    found = Found(folder)
    body = _contents(found.folders) + "\n".join(
        _section(each, k) for k, each in enumerate(found.folders)
    )
    left_out = found.left_out
    if not body:
        why = f" Left out: {left_out[0]}" if left_out else ""
        raise FileError(
            f"{brief(folder)} holds nothing to report: no rows (*.jsonl), pictures (*.png) or "
            f"tables (*.md). Make some with `proxlearn evaluate` or `proxlearn reproduce`.{why}"
        )
    body += _made(found.folders) + _glossary(found.folders)
    if left_out:
        body += _left_out(left_out)
        more = f" and {len(left_out) - 1:,} more, which the page lists" if left_out[1:] else ""
        warnings.warn(f"Left out: {left_out[0].rstrip('.')}{more}.", LeftOutWarning, stacklevel=2)
    made = f"Made by <code>{html.escape(command)}</code><br>" if command else ""
    said = ", ".join(f"{name} {version}" for name, version in versions().items())
    footer = f"{made}{html.escape(said)}, on {html.escape(machine())}"
    return write_atomically(output, _page(title=html.escape(title), body=body, footer=footer))


def _page(**parts: str) -> str:
    """The template with its parts filled in, and with the script, the only one that a browser is
    allowed to run, by its hash."""
    template = _beside("report.html")
    script = _beside("report.js")
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    parts |= {"script": script, "hash": digest}
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], template)


def _beside(name: str) -> str:
    return (files("proxlearn.show") / name).read_text()


def _contents(folders: Sequence[Folder]) -> str:
    """Links to the sections, where there are many."""
    named = [(k, each.name) for k, each in enumerate(folders) if each.name]
    if len(named) <= FEW:
        return ""
    links = "\n".join(f'<a href="#s{k}">{html.escape(name)}</a>' for k, name in named)
    return f"<nav>\n{links}\n</nav>\n"


def _section(folder: Folder, number: int) -> str:
    """What one folder itself holds: written tables first, pictures, then the rows behind them."""
    below = 2 if folder.name else 1  # how far down headings go
    written = any(re.search(r"^\|", text, re.MULTILINE) for _, text in folder.tables)
    parts = [
        *(_markdown(text, below) for _, text in folder.tables),
        *(_progress(rows) for name, rows in folder.rows if name == TRAINING),
        *(_figure(name, content) for name, content in folder.pictures),
        *(_rows(name, rows, written) for name, rows in folder.rows),
    ]
    name = f'<h2 id="s{number}">{html.escape(folder.name)}</h2>\n' if folder.name else ""
    return name + "\n".join(parts)


def _rows(name: str, rows: Sequence[Row], written: bool) -> str:
    """Rows as tables; folded where there are many, or where a table was written of them. Of a
    training, whose rows are one curve, few are enough."""
    most = FEW_OF_A_CURVE if name == TRAINING else MAX_ROWS
    tables = rows_to_html(rows, name, most)
    if (not written and len(rows) <= OPEN) or name == TRAINING:
        return tables
    heading = f"The {counted(rows)} of {html.escape(name)}"
    return f"<details><summary>{heading}</summary>\n{tables}</details>"


def _made(folders: Sequence[Folder]) -> str:
    """Which command made the rows of each file, with which settings and seed, on which machine and
    with which versions."""
    lines = []
    for folder in folders:
        for name, rows in folder.rows:
            said = {key: _different(row.get(key) for row in rows) for key in (*MADE, "seed")}
            same = {k: v for k, v in split_columns(rows)[1].items() if k not in said}
            settings = ", ".join(f"{k} = {readable(v)}" for k, v in same.items() if v is not None)
            made_with = ", ".join(f"{key} {said[key]}" for key in MADE[:3] if said[key])
            about = (said["command"], settings, said["seed"], said["machine"], made_with)
            lines.append([f"{folder.name}/{name}".lstrip("/"), f"{len(rows):,}", *about])
    if not any(any(line[2:]) for line in lines):
        return ""
    columns = ("file", "rows", "command", "the same in all rows", "seed", "machine", "versions")
    table = table_to_html(columns, lines, [each != "rows" for each in columns])
    return f'\n<h2 id="made">How the rows were made</h2>\n{table}'


def _different(values: Iterator[Any]) -> str:
    """The different values of a field; the first few, if there are many."""
    every = list(dict.fromkeys(readable(each) for each in values if each is not None))
    return "; ".join(every[:FEW]) + (f" and {len(every) - FEW} more" if every[FEW:] else "")


def _glossary(folders: Sequence[Folder]) -> str:
    """What the columns and abbreviations on the page mean."""
    rows = [some for folder in folders for _, every in folder.rows for some in of_measures(every)]
    columns = dict.fromkeys(key for some in rows for key in shown_columns(split_columns(some)[0]))
    text = [text for folder in folders for _, text in folder.tables]
    text += [
        each for some in rows for row in some for each in row.values() if isinstance(each, str)
    ]
    words = of_words("\n".join(dict.fromkeys(text)))
    said = dict(sorted((of_columns(columns) | words).items(), key=lambda each: each[0].lower()))
    if not said:
        return ""
    lines = "\n".join(
        f"<dt>{html.escape(name.replace('_', ' '))}</dt><dd>{html.escape(each)}</dd>"
        for name, each in said.items()
    )
    return f'\n<h2 id="words">Words and abbreviations</h2>\n<dl>\n{lines}\n</dl>'


def _left_out(sentences: Sequence[str]) -> str:
    """What of the folder is not shown, and why."""
    lines = [f"<li>{html.escape(each)}</li>" for each in sentences[:MAX_LEFT_OUT]]
    if more := len(sentences) - len(lines):
        lines.append(f"<li>And {more:,} more.</li>")
    lines = "\n".join(lines)
    return f'\n<h2>Left out</h2>\n<ul class="said">\n{lines}\n</ul>'


def _progress(rows: Sequence[Row]) -> str:
    """The curve of a training: how many held-out starts ended at an optimum, as it went on."""
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


def _markdown(text: str, below: int) -> str:
    """The part of Markdown that tables need, as HTML, with headings so many levels further down. Of
    links only the words are left; all else, also HTML and images, is shown as text, so that the
    page loads nothing."""
    from markdown_it import MarkdownIt  # takes a while, and few commands make a page

    some = MarkdownIt("zero").enable(["heading", "table", "emphasis", "backticks", "link"])
    tokens = some.parse(text)
    column, theirs = 0, set()  # the columns of published figures
    for each, after in zip(tokens, [*tokens[1:], None]):
        if each.type in ("heading_open", "heading_close"):
            each.tag = f"h{min(int(each.tag[1]) + below, 6)}"
        elif each.type == "table_open":
            theirs.clear()
        elif each.type == "tr_open":
            column = 0
        elif each.type in ("th_open", "td_open"):
            if each.type == "th_open" and after and "published" in after.content:
                theirs.add(column)
            if column in theirs:
                each.attrJoin("class", "theirs")
            if "style" not in each.attrs:  # numbers are aligned to the right
                each.attrJoin("class", "words")
            column += 1
        each.children = [c for c in each.children or [] if c.type not in LINK] or each.children
    page = some.renderer.render(tokens, some.options, {})
    return page.replace("<table>", '<div class="table"><table>').replace(
        "</table>", "</table></div>"
    )
