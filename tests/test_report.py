"""The report: one page that needs nothing but itself, and says what the rows say."""

import base64
import hashlib
import html
import json
import os
import re
from contextlib import ExitStack
from pathlib import Path

import pytest
from _browsing import NoBrowserError, chromium

import proxlearn as px
from proxlearn.common.files import write_rows
from proxlearn.figures.draw import new_figure, save
from proxlearn.show import folder
from proxlearn.show.glossary import WORDS, explained, of_words
from proxlearn.show.report import report
from proxlearn.show.tables import readable, rows_to_html, split_columns

ROWS = [
    {"label": "operator <x3>", "wd": 0.0412345, "steps": 123456, "found": None, "seed": 0},
    {"label": "descent", "wd": 1e-7, "steps": 7, "found": None, "seed": 0},
]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder as experiments leave it."""
    folder = tmp_path / "runs"
    write_rows(folder / "conic/rows.jsonl", [row | {"machine": "a CPU"} for row in ROWS])
    write_rows(
        folder / "conic/pol/training.jsonl", [{"step": k, "loss": 1 / k} for k in range(1, 500)]
    )
    (folder / "conic/table.md").write_text(
        "# Ours & theirs\n\n| method | `WP` |\n| --- | ---: |\n| **ours** | 0.91 |\n\nTwo words.\n"
    )
    figure = new_figure(2, 2)
    figure.subplots().plot([0, 1])
    save(figure, folder / "conic/wp_curves.png")
    return folder


def test_the_page_holds_everything_and_needs_nothing(runs: Path, tmp_path: Path):
    page = report(runs, tmp_path / "page.html", command="proxlearn report runs").read_text()
    assert "http:" not in page
    assert "https:" not in page
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page  # so that a browser runs no other
    assert "default-src 'none'" in page
    assert "{{" not in page
    assert "<link" not in page
    assert "prefers-color-scheme: dark" in page
    (image,) = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert base64.b64decode(image) == (runs / "conic/wp_curves.png").read_bytes()
    assert "<figcaption>wp_curves.png</figcaption>" in page
    assert '<h2 id="s0">conic</h2>' in page
    assert "<code>proxlearn report runs</code>" in page
    assert "torch" in page


def test_rows_become_a_table_of_what_differs(runs: Path, tmp_path: Path):
    page = report(runs, tmp_path / "page.html").read_text()
    assert '<td class="words">operator &lt;x3&gt;</td><td>0.04123</td><td>123,456</td>' in page
    assert "<td>1e-07</td>" in page
    table, made = page.split('<h2 id="made">')
    assert "seed = 0" in table
    assert ">seed</th>" not in table
    assert ">found</th>" not in page  # never measured
    line = made.split("<td")[1:7]
    assert [re.sub("<[^>]*>|^[^>]*>", "", each).strip() for each in line] == [
        *("conic/rows.jsonl", "2", "", "", "0", "a CPU")
    ]
    assert '<th title="witnessed divergence' in table
    assert "<dt>wd</dt><dd>witnessed divergence, how far" in made


def test_a_long_file_is_thinned_and_keeps_its_end(runs: Path, tmp_path: Path):
    page = report(runs, tmp_path / "page.html").read_text()
    assert re.search(r"training.jsonl: \d\d of 499 rows", page)
    assert "<td>499</td><td>0.002004</td>" in page
    assert page.count("<tr>") < 62


def test_rows_behind_a_table_and_many_rows_are_folded(runs: Path, tmp_path: Path):
    """All of them are there, but for a training, of which few rows show the curve."""
    write_rows(runs / "many/rows.jsonl", [{"label": k, "wd": 0.5 / (k + 1)} for k in range(70)])
    write_rows(runs / "few/rows.jsonl", ROWS)
    (runs / "few/about.md").write_text("What these rows are, without a table.\n")
    page = report(runs, tmp_path / "page.html").read_text()
    folded = re.findall(r"<details><summary>(.*?)</summary>\n(.*?)</details>", page, re.DOTALL)
    assert [said for said, _ in folded] == ["The 2 rows of rows.jsonl", "The 70 rows of rows.jsonl"]
    assert folded[1][1].count("<tr>") == 1 + 70
    assert "few/rows.jsonl" in page


def test_a_single_row_is_a_list():
    page = rows_to_html([{"label": "a", "wd_of_all": 0.25, "found": None}], "rows.jsonl")
    assert '<td class="words">wd of all</td><td class="words">0.25</td>' in page
    assert "found" not in page
    assert page.endswith('<p class="said">rows.jsonl: 1 row.</p>')


def test_markdown_tables_are_rendered(runs: Path, tmp_path: Path):
    page = report(runs, tmp_path / "page.html").read_text()
    assert "<h3>Ours &amp; theirs</h3>" in page
    head = '<th class="words">method</th>\n<th style="text-align:right"><code>WP</code></th>'
    assert head in page
    row = '<td class="words"><strong>ours</strong></td>\n<td style="text-align:right">0.91</td>'
    assert f"<tbody>\n<tr>\n{row}\n</tr>\n</tbody>" in page
    assert "<p>Two words.</p>" in page


def test_a_file_runs_and_loads_nothing(tmp_path: Path):
    """What a file of someone else's says is shown, not obeyed."""
    (tmp_path / "a.md").write_text(
        "# <script>a</script>\n\n<script>b</script>\n\n| <img src=x onerror=c> |\n| --- |\n"
        "| <b onclick=d>d</b> |\n\n[e](javascript:e) ![f](//host/f.png) `<i>` <//host/g>\n\n"
        "[h]: //host/h\n"
    )
    page = report(tmp_path, tmp_path / "page.html").read_text()
    assert "&lt;script&gt;b&lt;/script&gt;" in page
    assert "<code>&lt;i&gt;</code>" in page
    assert "javascript:" not in page.replace("[e](javascript:e)", "")
    body = page.split("<body>")[1].split("<footer>")[0]
    assert set(re.findall(r"<(\w+)", body)) <= {
        *("h1", "h2", "p", "code", "div"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }


def test_a_single_row_keeps_its_fields():
    columns, constant = split_columns([{"label": "a", "wd": 0.1, "machine": "a CPU"}])
    assert columns == ["label", "wd"]
    assert constant == {"machine": "a CPU"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, ""),
        (True, "yes"),
        (1234567, "1,234,567"),
        (0.123456, "0.1235"),
        (12345.6, "12,346"),
        (1.5e12, "1.5e+12"),
        ([1, 2.5], "1, 2.5"),
        (list(range(50)), "50 numbers"),
        ({"torch": "2.11"}, "torch 2.11"),
        ("words", "words"),
    ],
)
def test_numbers_are_readable(value: object, said: str):
    assert readable(value) == said


def test_nothing_to_report_is_said(tmp_path: Path):
    with pytest.raises(px.FileError, match="holds nothing to report"):
        report(tmp_path, tmp_path / "page.html")
    with pytest.raises(px.FileError, match="no folder"):
        report(tmp_path / "nowhere", tmp_path / "page.html")
    (tmp_path / "broken.jsonl").write_text('{"a": ')
    with pytest.raises(px.FileError, match=r"broken\.jsonl: 1 line that is no row"):
        report(tmp_path, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_rows_of_different_measures_are_tables_of_their_own():
    """None of them has a column that is empty for its rows."""
    some = [{"measure": "witnessed", "label": k, "wd": 0.5 + k} for k in range(3)]
    others = [{"measure": "curve", "step": k, "loss": 1.0 / (k + 1)} for k in range(3)]
    page = rows_to_html(some + others, "rows.jsonl")
    assert page.count("<table>") == 2
    assert "<td></td>" not in page


def test_a_table_has_few_of_many_precisions():
    precisions = [f"wp{what}@{d}" for d in range(40) for what in ("", "_std")]
    rows = [{"label": k, **dict.fromkeys(precisions, 0.1 * k)} for k in range(3)]
    page = rows_to_html(rows, "rows.jsonl")
    assert len(re.findall(r"<th[^>]*>wp@", page)) == 3
    assert "_std" not in page
    assert "77 more columns in the file" in page
    assert 'title="witnessed precision' in page


def test_commands_stand_at_the_end_of_the_page_alone(tmp_path: Path):
    rows = [{"label": k, "seed": k, "command": f"python benchmarks/part_{k}.py"} for k in range(2)]
    assert "benchmarks" not in rows_to_html(rows, "rows.jsonl")
    write_rows(tmp_path / "rows.jsonl", rows)
    made = report(tmp_path, tmp_path / "page.html").read_text().partition('id="made"')[2]
    assert "part_0.py" in made
    assert "part_1.py" in made


def test_published_figures_stand_out_and_links_are_their_words(tmp_path: Path):
    (tmp_path / "table.md").write_text(
        "| method | WP | WP, published |\n| --- | ---: | ---: |\n"
        "| [POL](there.md) | 0.9 | 0.7 |\n\n"
        "| method | WD |\n| --- | ---: |\n| GOL | 0.1 |\n"
    )
    page = report(tmp_path, tmp_path / "page.html").read_text()
    assert page.count('class="theirs"') == 2
    assert '<td style="text-align:right" class="theirs">0.7</td>' in page
    assert '<td class="words">POL</td>' in page
    assert "there.md" not in page
    for word in ("GOL", "POL", "published", "WD", "WP"):
        assert f"<dt>{word}</dt><dd>{html.escape(WORDS[word])}" in page
    assert "<dt>PD</dt>" not in page


def test_abbreviations_are_found_as_whole_words():
    assert set(of_words("POL, then L-BFGS at t = 3")) == {"POL", "L-BFGS", "t"}
    assert not of_words("POLE t-test WPA")


RESULTS = Path(__file__).parent.parent / "results"
NAMES = {"CPU", "NVIDIA", "SciPy", "JSON", "README"}  # or words that a report need not explain


def test_every_abbreviation_of_the_results_is_explained():
    """Columns that are no words, and capitals in headings and labels, in all of `results/`."""
    rows = [
        json.loads(line)
        for path in RESULTS.rglob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    keys = {key for row in rows for key in row}
    columns = {key for key in keys if not re.search("[aeiouy]", key) or re.match(r"\w\d", key)}
    assert {"wd", "q05", "ms"} <= columns
    assert {each for each in columns | {"dim", "lam", "rho"} if not explained(each)} == set()
    text = "\n".join(path.read_text() for path in RESULTS.rglob("table.md"))
    text += "\n".join({str(row.get(key)) for row in rows for key in ("label", "variant")})
    found = set(re.findall(r"\b[A-Z]-?[A-Z]{1,}\b|\b[a-z]{1,2}(?:32|16)\b", text))
    assert {"POL", "L-BFGS", "DGCNN"} <= found
    assert found - WORDS.keys() - NAMES == set()


@pytest.fixture(scope="module")
def browser():
    """Chromium, where it and playwright are installed."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(chromium())
        except NoBrowserError as missing:
            pytest.skip(str(missing))
        yield running


@pytest.mark.parametrize("width", [1200, 390])
def test_tables_are_sorted_and_fit_the_screen(browser, tmp_path: Path, width: int):
    values = [10.0, 9.5, None, 1e-7, 12345.6]
    rows = [
        {"label": f"method {k}", "wd": value, **{f"another_column_{j}": j + k for j in range(4)}}
        for k, value in enumerate(values)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    report(tmp_path, tmp_path / "page.html")
    page, errors = browser.new_page(viewport={"width": width, "height": 800}), []
    page.on("console", lambda each: errors.append(each.text))
    page.goto((tmp_path / "page.html").as_uri())

    def column() -> list[str]:
        return page.locator("tbody").first.locator("tr td:nth-child(2)").all_inner_texts()

    as_given = column()
    button = page.get_by_role("button", name="Sort by wd")
    button.click()
    assert column() == ["1e-07", "9.5", "10", "12,346", ""]  # what is missing comes last
    assert page.locator("th[aria-sort=ascending]").count() == 1
    button.press("Enter")
    assert column() == ["12,346", "10", "9.5", "1e-07", ""]
    button.press("Space")
    assert column() == as_given
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = page.evaluate(
        "Math.max(...[...document.querySelectorAll('.table')]"
        ".map(each => each.scrollWidth - each.clientWidth))"
    )
    assert wide <= 0
    assert errors == []
    page.close()


def test_the_progress_of_a_training_is_drawn(tmp_path: Path):
    rows = [{"step": k, "seconds": 2.0 * k, "loss": 1.0, "at_optimum": k / 4} for k in range(5)]
    write_rows(tmp_path / "training.jsonl", [*rows, {"step": 9, "seconds": "x", "at_optimum": 1}])
    page = report(tmp_path, tmp_path / "page.html").read_text()
    assert page.count("<polyline") == 1
    assert "580.0,20.0" in page  # all of them, in the end
    assert "held-out starts that end at an optimum" in page
    write_rows(tmp_path / "training.jsonl", rows[:1])
    assert "<polyline" not in report(tmp_path, tmp_path / "page.html").read_text()


def a_folder_of_someone_else(folder: Path) -> None:
    """Everything that a folder can hold which is no result."""
    outside = folder.parent / "outside"
    outside.mkdir()
    for name in ("secret.md", "secret.png"):
        (outside / name).write_text("secret")
    (folder / "x.md").mkdir(parents=True)
    (folder / "gone.md").symlink_to("nowhere.md")
    (folder / "linked.md").symlink_to(outside / "secret.md")
    (folder / "linked").symlink_to(outside)
    (folder / "round").symlink_to(folder)
    (folder / "inside/.hidden").mkdir(parents=True)
    (folder / "inside/.hidden/secret.md").write_text("secret")
    (folder / "to_hidden.md").symlink_to("inside/.hidden/secret.md")
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "deep.jsonl").write_text('{"a": ' + "[" * 10**5 + "]" * 10**5 + '}\n[1]\n{"a": 1}\n')
    (folder / "huge.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 4 + b"IHDR" + b"\xff" * 64)
    (folder / "text.png").write_text("no picture at all, but text")
    (folder / "large.md").write_bytes(b"")
    os.truncate(folder / "large.md", 2 << 40)
    (folder / os.fsdecode(b"<b>\xff[red].md")).write_bytes(b"\xff\xfe")


def test_a_folder_of_someone_else_is_read_with_care(tmp_path: Path):
    """Nothing hangs, nothing from outside is shown, and all that is left out is said."""
    folder = tmp_path / "folder"
    a_folder_of_someone_else(folder)
    with pytest.warns(px.errors.LeftOutWarning, match=r"Left out: .* and \d+ more"):
        page = report(folder, tmp_path / "page.html").read_text()
    assert "secret" not in page.replace("hidden/secret", "").replace("secret.md: ", "")
    assert "deep.jsonl: 1 row" in page
    said = page.split("<h2>Left out</h2>")[1]
    for each in (
        "x.md: is a folder",
        "gone.md: a link that leads nowhere",
        "linked.md: a link that leads out of the folder",
        "linked: a link to a folder",
        "round: a link to a folder",
        "to_hidden.md: a link to a hidden file",
        "pipe.jsonl: is a pipe",
        "deep.jsonl: 2 lines that are no row, such as line 1",
        "huge.png: a PNG that is cut short",
        "text.png: no PNG",
        "large.md: has 2,199,023,255,552 bytes",
    ):
        assert f"<li>{each}" in said


def test_a_folder_without_end_is_read_up_to_a_limit(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(folder, "MOST_OF_TABLES", 100)
    monkeypatch.setattr(folder, "MOST_FOLDERS", 3)
    for name in "abcd":
        (tmp_path / name).mkdir()
        (tmp_path / name / "table.md").write_text("x" * 60)
    with pytest.warns(px.LeftOutWarning, match="b: with others, as 3 folders are the most"):
        page = report(tmp_path, tmp_path / "page.html").read_text()
    assert "more than 100 bytes of .md" in page
    assert page.count("x" * 60) == 1
