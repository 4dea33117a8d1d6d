"""Names are only names, whatever they hold: on the screen, in pictures, paths and commands."""

import shlex
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import proxlearn as px
from proxlearn.answers.table import table_of_optima
from proxlearn.cli.options import how_to_train, how_to_use
from proxlearn.common.files import usual_folder
from proxlearn.common.progress import progress_bar
from proxlearn.figures.draw import draw

NAMES = [
    *("[/red]x", "[bold", "{0}", "{task}", "$x_{", "$a$ $\\frac$", "a b", "'; touch hit; '"),
    *("<script>", "../../out", "/out", "..", ".", "", "a/b", "\0", "x" * 5_000, "-rf", "a\nb"),
]


@pytest.mark.parametrize("name", NAMES)
def test_results_go_to_one_folder_of_runs(name: str):
    folder = usual_folder(name)
    assert folder.parent == Path("runs")
    assert folder.name not in ("", ".", "..")
    assert len(str(folder)) <= 110
    assert folder.resolve().parent == Path("runs").resolve()


def test_usual_names_stay_as_they_are():
    assert usual_folder("conic-compare") == Path("runs/conic-compare")
    assert usual_folder("gl\u00fchwein 2.0") == Path("runs/gl\u00fchwein 2.0")


@pytest.mark.parametrize("name", NAMES)
def test_commands_to_go_on_with_are_quoted(name: str):
    file, picture = Path("a b/operator.safetensors"), Path("a b/solutions.png")
    problem = px.Problem()
    problem.name = name
    said = how_to_use(name, problem, file, picture)
    expected = ["--operator", str(file), "--plot", str(picture)]
    assert shlex.split(said) == ["proxlearn", "solve", name, *expected]
    assert shlex.split(how_to_train("a b.py", problem))[2] == "a b.py"
    assert len(shlex.split(how_to_train("a b.py", problem))) == 5


@pytest.mark.parametrize(("name", "command"), [("detection", "detect"), ("symmetry", "symmetry")])
def test_operators_of_pictures_and_parts_have_commands_of_their_own(name: str, command: str):
    said = shlex.split(how_to_use(name, px.problem(name), Path("a b/o.safetensors"), Path("p.png")))
    assert (said[1], said[3:]) == (command, ["--operator", "a b/o.safetensors"])


@pytest.mark.parametrize("name", NAMES[:8])
def test_names_are_shown_as_they_are(name: str):
    written = StringIO()
    console = Console(file=written, width=200, force_terminal=True, color_system=None)
    with progress_bar(name, console) as bar:
        bar.add_task("", total=1.0, said=name)
    assert written.getvalue().count(name) >= 2
    row = {"point": [0.0], "value": 1.0, "share": 1.0, "certificate": None}
    console.print(table_of_optima([row], 200, lambda point, value: {name: name}))
    assert name in written.getvalue()


@pytest.mark.parametrize("name", ["$x_{", "$a$ $\\frac$"])
def test_a_picture_takes_no_name_for_a_formula(name: str, tmp_path: Path):
    problem = px.problem("conic")
    problem.name = name
    tau = [0.3, 0, 0.5, 0, 0, -1]
    found = px.solve(problem, tau, method="lbfgs", starts=2)
    assert draw(problem, problem.batch(tau), found, tmp_path / "a.png").is_file()
