"""What the README and the pages say is what the code does."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from test_house import FOLDERS, PACKAGE
from typer.main import get_command

import proxlearn as px
from proxlearn.cli.main import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
TINY = {"steps": 2, "instances": 12, "points": 8, "applications": 2, "progress": False}
EXAMPLE = ROOT / "examples/ten_lines.py"


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def test_the_ten_lines_are_those_of_the_file():
    assert EXAMPLE.read_text() in python_blocks(ROOT / "README.md")


def test_the_ten_lines_run(capsys: pytest.CaptureFixture[str]):
    """With two steps of training in place of 60 seconds."""
    source = EXAMPLE.read_text()
    assert source.count("seconds=60") == 1
    names: dict[str, object] = {}
    short = source.replace("seconds=60", "steps=2, applications=2")
    exec(compile(short, EXAMPLE.name, "exec"), names)
    assert capsys.readouterr().out.split()[:3] == ["x1", "x2", "value"]
    assert len(names["optima"]) >= 1  # pyright: ignore


@pytest.mark.judged
@pytest.mark.filterwarnings("ignore::proxlearn.errors.PoorOperatorWarning")
@pytest.mark.parametrize("page", [*filter(python_blocks, PAGES)], ids=lambda page: page.name)
def test_the_python_blocks_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """One after the other in one namespace, in a folder of their own; every training in them is
    cut to two small steps."""
    learn = px.learn

    def learn_a_little(problem: px.Problem, **settings: Any) -> px.Operator:
        return learn(problem, **{k: v for k, v in settings.items() if k != "seconds"} | TINY)

    monkeypatch.setattr(px, "learn", learn_a_little)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names = {"__name__": page.stem}
    for block in python_blocks(page):
        exec(compile(block, str(page), "exec"), names)
    assert names["px"] is px  # and not nothing


def test_the_problem_file_runs(tmp_path: Path):
    """The class of the tutorial is a problem file as it stands."""
    page = ROOT / "docs/tutorial.md"
    (source,) = [block for block in python_blocks(page) if "px.Problem)" in block]
    (tmp_path / "wells.py").write_text(source)
    problem = px.problem(str(tmp_path / "wells.py"))
    optima = px.solve(problem, [1.0, 0.7], method="lbfgs", starts=64).unique()
    assert len(optima) == 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_exists_with_its_options(page: Path):
    commands = get_command(app).commands  # pyright: ignore
    typed = re.findall(r"(?:^    |`)proxlearn ([a-z]+)([^`\n#]*)", page.read_text(), re.MULTILINE)
    for command, rest in typed:
        assert command in commands, f"{page.name}: proxlearn {command}"
        known = {name for each in commands[command].params for name in each.opts}
        for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", rest):
            assert option in known | {"--help"}, f"{page.name}: proxlearn {command} {option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_exists(page: Path):
    names = set(re.findall(r"\bpx\.([a-zA-Z_]+(?:\.[a-z_]+)?)", page.read_text()))
    missing = [name for name in names if not _has(px, name.split("."))]
    assert missing == []


def _has(thing: object, path: list[str]) -> bool:
    return not path or (hasattr(thing, path[0]) and _has(getattr(thing, path[0]), path[1:]))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path):
    """To a file, and where it names a section, to one that the file has."""
    for target, section in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text()):
        if target.startswith("https://"):
            continue  # the tests ask nothing of the network
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name}: {target}"
        assert not section or section in sections(file), f"{page.name}: {target}#{section}"


def sections(page: Path) -> list[str]:
    """The headings of a page as links name them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings]


def test_the_files_on_the_map_exist():
    """Those that CONTRIBUTING.md names in its tables; NAME stands for a new one."""
    rows = [row for row in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if row[:1] == "|"]
    named = re.findall(r"`([a-z_/]+\.py)`", "\n".join(rows))
    assert len(named) >= 15
    assert [name for name in named if not (PACKAGE / name).is_file()] == []


def test_every_folder_of_the_house_is_described():
    """In the order in which they rest on each other."""
    described = re.findall(
        r"^\| `([a-z]+)` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE
    )
    assert tuple(described) == FOLDERS


def test_the_results_are_those_of_the_rows(monkeypatch: pytest.MonkeyPatch):
    """The scripts `docs/make_*.py` of results, faults and headlines would change nothing."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    made = runpy.run_path(str(ROOT / "docs/make_results.py"))
    assert made["results"]() == (ROOT / "docs/results.md").read_text()
    for name in made["TABLES"]:
        assert made["table"](name) == (ROOT / "results" / name / "table.md").read_text()
    made = runpy.run_path(str(ROOT / "docs/make_faults.py"))
    assert made["faults"]() == (ROOT / "docs/faults.md").read_text()
    made = runpy.run_path(str(ROOT / "docs/make_headlines.py"))
    assert made["BEGIN"] + made["headlines"]() + made["END"] in (ROOT / "README.md").read_text()
