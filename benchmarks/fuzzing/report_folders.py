"""Folders that are not one's own: what `proxlearn report` makes of them, and names of problems and
files that are markup, code of a shell, or lead out of the folder."""

import json
import os
import shlex
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from fuzzing._spoiled import ODD_VALUES, ODD_WORDS, bytes_spoiled, json_spoiled, pick
from fuzzing.frame import Act, WrongAnswerError, command, quiet

WHAT = "report folders, and names on the screen"
CASES = 200
SECRET = "not-for-anyone-else"
TAGS = {  # that a page is made of; no other may get into it from a file
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "h4", "h5", "h6", "p",
    "code", "table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "img", "br", "ul",
    "li", "footer", "strong", "em", "svg", "path", "text", "polyline", "pre", "script", "details",
    "summary", "div", "dl", "dt", "dd", "abbr", "button", "span", "section",
}  # fmt: skip
NAMES = (
    "<script>alert(1)</script>", "[/red]x", "[bold", "a b", "'; touch hit; '", "$(touch hit)",
    "`touch hit`", "{0}", "{task}", "$x_{", "$a$ $\\frac$", "-rf", "a\nb", "\u202eb", "&amp;",
    '"><img src=x onerror=alert(1)>', "x" * 200, "%s", "~", "a'b", "...", "\u00e9",
)  # fmt: skip
PROBLEMS = (*NAMES, "../out", "../../out", "/out", "a/b", "", ".", "..", "\0", "x" * 5_000)
MARKDOWN = (
    "*a " * 20_000, "[" * 20_000, "`" * 20_001, "| " * 20_000, "#" * 20_000, "> " * 5_000,
    "|a|\n|-|\n" + "|<b onclick=a>|\n" * 500, "<script>alert(1)</script>\n" * 100,
    "![a](/etc/passwd) [b](javascript:c)", "\\" * 10_001, "*" * 10_000 + "a", "_" * 9_999, "\0",
    "| a | b |\n" + "|---" * 5_000 + "\n",
)  # fmt: skip


def prepare(folder: Path) -> Any:
    (folder / "outside").mkdir()
    (folder / "outside" / "secret.md").write_text(SECRET)
    (folder / "outside" / "secret.jsonl").write_text(json.dumps({"label": SECRET}) + "\n")
    Image.new("RGB", (2, 2)).save(folder / "outside" / "secret.png", comment=SECRET)
    good = folder / "good"
    good.mkdir()
    rows = [{"label": "a", "wd": 0.1 * k, "steps": k, "seconds": k} for k in range(5)]
    (good / "rows.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    (good / "training.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    (good / "table.md").write_text("# A table\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    Image.new("RGB", (8, 8)).save(good / "picture.png")
    with quiet():
        command("report", str(good), "-o", str(folder / "page.html"))
        command("solve", "conic", "--starts", "4", "--plot", str(folder / "a.png"))
    return good, folder / "outside", Page((folder / "page.html").read_text())


def case(draw: np.random.Generator, prepared: Any, folder: Path) -> tuple[str, Act]:
    good, outside, usual = prepared
    if not draw.integers(4):
        return _named(folder, draw)
    inside = folder / "runs"
    inside.mkdir()
    for each in good.iterdir():
        (inside / each.name).write_bytes(each.read_bytes())
    spoils = sorted(int(draw.integers(len(SPOILS))) for _ in range(draw.integers(1, 5)))
    done = [SPOILS[k](inside, outside, draw) for k in spoils]  # the last leaves nothing
    output = pick(draw, ("page.html", "page.html", "runs", "a/b/page.html", "runs/p.md"))
    typed = ("report", "runs", "-o", output)
    return f"{' '.join(typed)}: {'; '.join(done)}", lambda: _report(typed, Path(output), usual)


class Page(HTMLParser):
    """What of a page could run or load something."""

    def __init__(self, content: str):
        super().__init__()
        self.strange: set[str] = set()
        self.scripts: set[str] = set()
        self.within = ""
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.within = tag
        self.strange |= {tag} - TAGS
        for name, value in attrs:
            leads = name in ("src", "href") and not (value or "").startswith(("data:", "#"))
            self.strange |= {f"{name}={value}"} if leads or name.startswith("on") else set()

    def handle_endtag(self, tag: str) -> None:
        self.within = ""

    def handle_data(self, data: str) -> None:
        self.scripts |= {data} if self.within == "script" else set()


def _report(typed: tuple[str, ...], output: Path, usual: Page) -> None:
    """The page, which may hold nothing from outside and nothing that runs but its own script."""
    command(*typed)
    content = output.read_text()
    if SECRET in content:
        raise WrongAnswerError("a page with a file from outside the folder, or a hidden one")
    page = Page(content)
    if strange := page.strange | (page.scripts - usual.scripts):
        raise WrongAnswerError(f"a page with {strange}")


def _named(folder: Path, draw: np.random.Generator) -> tuple[str, Act]:
    """A problem of any name, solved; or a file of any name, read."""
    name = pick(draw, PROBLEMS)
    source = f"import proxlearn as px\n\n\nclass Mine(px.Problem):\n    name = {name!r}\n"
    source += "    space = px.Box(-1.0, 1.0, dim=2)\n\n    def objective(self, x, tau):\n"
    source += "        return x.square().sum(-1)\n"
    safe = name.replace("/", "_") if name in NAMES else "mine"
    here = folder / "here"
    here.mkdir()
    file = here / f"{safe}.py"
    file.write_text(source)
    os.chdir(here)
    few = ("--starts", "4", "--instances", "1", "--witnesses", "16", "--reference", "lbfgs")
    ways = (
        ("solve", f"./{safe}.py", "--starts", "4", "--plot", "a.png"),
        ("compare", f"./{safe}.py", "--methods", "lbfgs", *few),
        ("solve", f"./{safe}.py", "--method", "operator"),
    )
    typed = pick(draw, ways)
    return shlex.join(typed), lambda: _only_here(folder, here, typed)


def _only_here(folder: Path, here: Path, typed: tuple[str, ...]) -> None:
    """Run; nothing may be written beside the folder that it runs in."""
    try:
        command(*typed)
        if Path("hit").exists():
            raise WrongAnswerError("a name that was run by a shell")
    finally:
        if (beside := {each.name for each in folder.iterdir()}) != {here.name}:
            raise WrongAnswerError(f"written outside: {sorted(beside)}")


Spoil = Callable[[Path, Path, np.random.Generator], str]


def _link_out(inside: Path, outside: Path, draw: np.random.Generator) -> str:
    target = pick(draw, (*outside.iterdir(), outside, Path("/etc"), Path("/dev/zero"), inside))
    ending = target.suffix or pick(draw, ("", ".md", ".png", ".jsonl"))
    name = f"linked{draw.integers(1000)}{ending}"
    relative = draw.integers(2)
    (inside / name).symlink_to(os.path.relpath(target, inside) if relative else target)
    return f"a link to {target.name}"


def _no_link(inside: Path, outside: Path, draw: np.random.Generator) -> str:
    name = f"lost{draw.integers(1000)}{pick(draw, ('.md', '.png', '.jsonl'))}"
    (inside / name).symlink_to(pick(draw, (name, "nowhere", "x" * 250, "table.md")))
    return f"{name}, a link"


def _pipe(inside: Path, outside: Path, draw: np.random.Generator) -> str:
    name = f"pipe{draw.integers(1000)}{pick(draw, ('.md', '.png', '.jsonl'))}"
    os.mkfifo(inside / name)
    return name


def _hidden(inside: Path, outside: Path, draw: np.random.Generator) -> str:
    hidden = inside / pick(draw, (".git", ".a/b/c", "a/.b"))
    hidden.mkdir(parents=True, exist_ok=True)
    for each in outside.iterdir():
        (hidden / each.name).write_bytes(each.read_bytes())
    return f"hidden files in {hidden.relative_to(inside)}"


def _odd_name(inside: Path, outside: Path, draw: np.random.Generator) -> str:
    name = pick(draw, NAMES).replace("/", "_")[:200]
    if draw.integers(2):
        (inside / name).mkdir(exist_ok=True)
        (inside / name / "rows.jsonl").write_text(json.dumps({name: name}))
    else:
        name += pick(draw, (".md", ".jsonl", ".png"))
        like = {".md": "rows.jsonl", ".png": "picture.png"}.get(Path(name).suffix, "rows.jsonl")
        (inside / name).write_bytes((inside / like).read_bytes())
    return f"{name!r}"


def _bytes_in_name(inside: Path, outside: Path, draw: np.random.Generator) -> str:
    with open(os.path.join(os.fsencode(inside), b"\xff\xfe.md"), "wb") as file:
        file.write(b"text")
    return "a name that is no UTF-8"


def _folder_as_file(inside: Path, outside: Path, draw: np.random.Generator) -> str:
    name = f"folder{draw.integers(1000)}{pick(draw, ('.md', '.png', '.jsonl'))}"
    (inside / name).mkdir()
    return f"a folder {name}"


def _unreadable(inside: Path, outside: Path, draw: np.random.Generator) -> str:
    each = inside / pick(draw, ("table.md", "rows.jsonl", "picture.png"))
    each.chmod(0)
    return f"{each.name} without permission"


def _rows(inside: Path, outside: Path, draw: np.random.Generator) -> str:
    row = {"label": "a", "wd": 0.5, "measure": "b", "seconds": 3, "at_optimum": 0.5, "list": [1]}
    odd = (
        json_spoiled(row, draw),
        json.dumps({pick(draw, ODD_WORDS)[:50]: pick(draw, ODD_VALUES) for _ in range(5)}),
        json.dumps({f"column {k}": k for k in range(int(pick(draw, (100, 499, 5_000))))}),
        json.dumps(row | {"label": "<script>alert(1)</script>" * 50, "<b>": "[/red]"}),
        '{"a": 1e999, "b": NaN, "c": -Infinity, "d": ' + "9" * 5_000 + "}",
    )
    name = pick(draw, ("rows.jsonl", "training.jsonl", "other.jsonl"))
    lines = [pick(draw, odd) for _ in range(int(pick(draw, (1, 3, 300))))]
    (inside / name).write_text("\n".join(lines), errors="replace")
    return f"{name}: {lines[0][:200]}"


def _markdown(inside: Path, outside: Path, draw: np.random.Generator) -> str:
    text = pick(draw, MARKDOWN)
    (inside / "table.md").write_text(text)
    return f"table.md: {text[:100]}"


def _picture(inside: Path, outside: Path, draw: np.random.Generator) -> str:
    content = bytes_spoiled((inside / "picture.png").read_bytes(), draw)
    (inside / "picture.png").write_bytes(content)
    return f"picture.png: {content[:100]!r}"


def _deep(inside: Path, outside: Path, draw: np.random.Generator) -> str:
    count = int(pick(draw, (10, 31, 100)))
    deep = inside / "/".join(["a"] * count)
    deep.mkdir(parents=True, exist_ok=True)
    (deep / "table.md").write_text("deep")
    return f"{count} folders deep"


def _nothing(inside: Path, outside: Path, draw: np.random.Generator) -> str:
    for each in ("table.md", "rows.jsonl", "training.jsonl", "picture.png"):
        (inside / each).unlink(missing_ok=True)
    (inside / "rows.jsonl").write_text("")
    (inside / "table.md").write_text("")
    return "nothing in it"


SPOILS: tuple[Spoil, ...] = (
    _link_out, _link_out, _no_link, _pipe, _hidden, _odd_name, _bytes_in_name, _folder_as_file,
    _unreadable, _rows, _rows, _markdown, _picture, _deep, _nothing,
)  # fmt: skip
