"""The command line, in the same process (fast) and once as a person starts it."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from proxlearn import problems
from proxlearn.answers import distinct
from proxlearn.answers.solutions import Solutions
from proxlearn.cli.main import app, main
from proxlearn.experiments import base as experiments
from proxlearn.experiments._shared import StoppedError
from proxlearn.instances import graph
from proxlearn.networks.boxes import Boxes
from proxlearn.operators import applying
from proxlearn.operators.operator import Operator
from proxlearn.operators.shipped import pretrained
from proxlearn.problems.detection import Detection
from proxlearn.problems.maxcut import maxcut
from proxlearn.show import demo
from proxlearn.training import session

COMMANDS = [info.name or info.callback.__name__ for info in app.registered_commands]  # pyright: ignore
TINY = "--instances 12 --points 8 --depth 2 --applications 3 --device cpu"
WELLS = '''
"""Four wells at (+-tau_1, +-tau_2)."""
import proxlearn as px

class Wells(px.Problem):
    name = "wells"
    space = px.Box(-2.0, 2.0, dim=2)
    parameters = px.Box(0.5, 1.5, dim=2)
    lam = 1.0

    def objective(self, x, tau):
        return (x.square() - tau[:, None].square()).square().sum(-1)
'''


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], Ran]:
    """Run what is typed after `proxlearn`, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(typed: str) -> Ran:
        with pytest.raises(SystemExit) as stopped:
            main(shlex.split(typed))
        out, err = capsys.readouterr()
        return Ran(int(stopped.value.code or 0), out, err)

    return call


@pytest.fixture
def wells_file(tmp_path: Path) -> Path:
    """A problem of a user's own, in a file."""
    path = tmp_path / "wells.py"
    path.write_text(WELLS)
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_ends_with_an_example(run: Callable[[str], Ran], command: str):
    ran = run(f"{command} --help")
    assert ran.code == 0
    last = re.split(r"\n\s*\n", ran.out.strip())[-1]
    assert last.strip().startswith(f"proxlearn {command}")
    _, heading, examples = re.split(r"(Examples?:)", ran.out)
    assert (heading == "Examples:") == (examples.count(f"proxlearn {command}") > 1)


def test_it_starts_as_a_module_without_heavy_imports():
    code = (
        "import sys, proxlearn.cli; "
        "print([m for m in ('matplotlib', 'sklearn', 'pandas') if m in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert loaded.stdout.strip() == "[]"
    version = [sys.executable, "-m", "proxlearn", "--version"]
    assert subprocess.run(version, capture_output=True, text=True).stdout == "proxlearn 0.2.0\n"


def test_problems_lists_every_problem(run: Callable[[str], Ran]):
    ran = run("problems")
    for name in problems.names():
        assert re.search(rf"^\s*{name}\s", ran.out, re.MULTILINE)
    assert "[-5, 5]^2" in ran.out


def test_solve_prints_writes_and_draws(run: Callable[[str], Ran], tmp_path: Path):
    ran = run(
        "solve springs --tau 0.6,0.9,0.5,0.7 --method lbfgs --starts 200 "
        "--json s.json --npz s.npz --plot s.png"
    )
    assert ran.code == 0, ran.err
    assert "starts" in ran.out
    written = json.loads((tmp_path / "s.json").read_text())
    assert written["tau"] == pytest.approx([0.6, 0.9, 0.5, 0.7])
    assert written["optima"][0]["value"] == pytest.approx(0.0025, abs=1e-5)
    assert sum(each["share"] for each in written["optima"]) <= 1.0 + 1e-6
    arrays = np.load(tmp_path / "s.npz")
    assert arrays["points"].shape == arrays["starts"].shape == (1, 200, 3)
    assert arrays["values"].min() == pytest.approx(0.0025, abs=1e-5)
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")


def test_descent_with_a_falling_rate(run: Callable[[str], Ran]):
    typed = "solve springs --tau 0.6,0.9,0.5,0.7 --starts 20 --steps 50 --json -"
    constant, falling = (
        json.loads(run(f"{typed} --method descent {more}").out)["optima"]
        for more in ("", "--falling")
    )
    assert constant != falling
    ran = run(f"{typed} --method lbfgs --falling")
    assert ran.code != 0
    assert "'falling'" in ran.err


def test_json_on_the_screen_is_all_there_is(run: Callable[[str], Ran]):
    ran = run("solve springs --method lbfgs --starts 50 --json -")
    assert json.loads(ran.out)["problem"] == "springs"
    assert "random test instance (seed 0) 0." in ran.err


def test_a_doubt_is_said_first_and_written(run: Callable[[str], Ran]):
    ran = run("solve conic --tau 3,0,3,0,0,-1 --starts 64 --device cpu --json d.json")
    assert re.search(r"Do not trust this: outside the trained range.*distinct", ran.err, re.DOTALL)
    assert "Missed?" not in ran.err
    assert json.loads(Path("d.json").read_text())["doubt"] == "outside the trained range"
    ran = run("solve conic --tau 0.3,0,0.5,0,0,-1 --starts 64 --device cpu --json -")
    assert "Missed? Found" in ran.err
    assert json.loads(ran.out)["doubt"] is None


def test_a_picture_is_solved_by_an_operator_alone(run: Callable[[str], Ran], tmp_path: Path):
    problem = Detection(side=128)
    operator = Operator.untrained(problem, Boxes(mixed=8, channels=8, width=16, blocks=1))
    operator.save("boxes.safetensors")
    np.save("picture.npy", np.full((3, 128, 128), 0.5, np.float32))
    without = run("solve detection --tau picture.npy")
    assert without.code == 2
    assert "train one with `proxlearn train detection" in without.err
    ran = run("solve detection --tau picture.npy --operator boxes.safetensors --plot a.png")
    assert (ran.code, (tmp_path / "a.png").is_file()) == (0, True), ran.err


def test_a_list_that_is_cut_says_what_is_missing(run: Callable[[str], Ran]):
    ran = run("solve cosine --method lbfgs --starts 400 --device cpu --json c.json")
    listed = len(json.loads(Path("c.json").read_text())["optima"])
    assert f"... and {listed - 20} more: --json FILE lists all {listed}." in ran.err


def test_a_single_objective_needs_no_tau(run: Callable[[str], Ran]):
    ran = run("solve shrinkage --method lbfgs --starts 20")
    assert ran.code == 0
    assert "test instance" not in ran.err
    assert run("solve shrinkage --method lbfgs --tau 1,2").code == 2


def write_taus(folder: Path) -> None:
    """Files of conics that cannot be used, and a good one."""
    good = np.zeros((4, 6))
    np.save(folder / "five.npy", good[:, :5])
    np.save(folder / "flat.npy", good[0])
    np.save(folder / "empty.npy", good[:0])
    np.save(folder / "words.npy", np.array([["a"] * 6]))
    np.save(folder / "nan.npy", np.vstack([good[:3], good[3:] + np.nan]))
    np.savez(folder / "zip.npz", good)
    (folder / "zip.npz").rename(folder / "zip.npy")
    (folder / "cut.npy").write_bytes((folder / "five.npy").read_bytes()[:140])
    (folder / "good.csv").write_text("0,0,0,0,0,0\n")
    (folder / "five.csv").write_text("# five is too few\n0,0,0,0,0,0\n\n1,2,3,4,5\n")
    (folder / "nan.csv").write_text("nan 0 0 0 0 0\n")
    (folder / "names.csv").write_text("a,b,c,d,e,f\n0,0,0,0,0,0\n")
    (folder / "empty.csv").write_text("\n")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("solve conik", "Did you mean 'conic'?"),
        ("solve nowhere.py", "no problem file at nowhere.py"),
        (
            "solve conic --method lbfgs --tau 1,2,3",
            "must be 6 numbers, or rows of 6 numbers; this one has 3",
        ),
        ("solve conic --method lbfgs --tau nan,0,0,0,0,0", "NaN or infinite"),
        ("solve conic --method lbfgs --tau inf,0,0,0,0,0", "NaN or infinite"),
        (
            "solve conic --method lbfgs --tau one,two",
            "--tau must be 6 numbers, separated by commas, not one,two.",
        ),
        (
            "solve conic --method lbfgs --tau none.npy",
            "--tau must be 6 numbers, separated by commas, not none.npy.",
        ),
        ("solve conic --method lbfgs --starts 0", "must be a whole number, 1 or more, or auto"),
        ("solve conic --method lbfgs --starts 2.5", "1 or more, or auto, not 2.5."),
        ("solve conic --method lbfg", "Did you mean 'lbfgs'?"),
        ("solve conic --method lbfgs --device tpu9", "no device 'tpu9'"),
        ("solve conic --method lbfgs --plot out.jpeg", "ending must be one of png, svg, pdf"),
        ("solve conic --method lbfgs --plot file/out.png", "Cannot write to the folder file"),
        ("solve conic --method lbfgs --operator x.safetensors", "is for methods that apply one"),
        ("solve conic --operator x.safetensors", "no operator file at x.safetensors"),
        ("solve conic --operator file", "not a whole safetensors file"),
        ("solve conic --operator .", ". is a folder without operator.safetensors"),
        ("solve sparse-mcp --method operator", "proxlearn train sparse-mcp --out runs/sparse-mcp"),
        ("solve conic --json .", ". is a folder: give the name of a file"),
        ("advise cosine --json .", ". is a folder: give the name of a file"),
        ("report . -o .", ". is a folder: give the name of a file"),
        ("solve conic --taus none.npy --npz a.npz", "no file of taus at none.npy"),
        ("solve conic --taus file --npz a.npz", "A file of taus ends in .npy, .csv or .txt"),
        ("solve conic --taus cut.npy --npz a.npz", "cannot be read as a file of taus"),
        ("solve conic --taus zip.npy --npz a.npz", "cannot be read as a file of taus"),
        ("solve conic --taus empty.npy --npz a.npz", "empty.npy holds no taus"),
        ("solve conic --taus empty.csv --npz a.npz", "empty.csv holds no taus"),
        ("solve conic --taus five.npy --npz a.npz", "an array (4, 5) of float64; expected"),
        ("solve conic --taus flat.npy --npz a.npz", "an array (6,) of float64; expected"),
        ("solve conic --taus words.npy --npz a.npz", "of <U1; expected numbers (taus, 6)"),
        ("solve conic --taus nan.npy --npz a.npz", "Tau 3 (counting from 0) cannot be used"),
        (
            "solve conic --taus five.csv --npz a.npz",
            "Line 4 of five.csv is '1,2,3,4,5'; expected 6",
        ),
        (
            "solve conic --taus nan.csv --npz a.npz",
            "Line 1 of nan.csv is 'nan 0 0 0 0 0'; expected",
        ),
        ("solve conic --taus names.csv --npz a.npz", "Line 1 of names.csv is 'a,b,c,d,e,f'"),
        ("solve conic --taus good.csv", "give --npz"),
        ("solve conic --method lbfgs --lam 1", "--lam is for methods with an operator"),
        ("solve conic --taus good.csv --npz a.npz --tau 0,0,0,0,0,0", "not both"),
        ("solve conic --taus good.csv --npz a.npz --plot a.png", "are for one instance"),
        ("solve conic --taus good.csv --npz a.npz --json -", "are for one instance"),
        ("solve conic --taus good.csv --npz a.npz --starts auto", "are for one instance"),
        ("solve conic --taus good.csv --npz file/a.npz", "Cannot write to the folder file"),
        ("solve conic --taus good.csv --npz a.npz --starts 0", "must be a whole number, 1 or more"),
        ("solve shrinkage --taus good.csv --npz a.npz", "takes no tau: leave --taus out"),
        ("solve shrinkage --method lbfgs --tau 1,2", "takes no tau: leave --tau out"),
        (
            "solve maxcut --taus good.csv",
            "only for problems whose tau is a vector; 'maxcut' takes a graph: use --tau FILE.",
        ),
        ("evaluate sparse-mcp", "proxlearn train sparse-mcp --out runs/sparse-mcp"),
        ("compare conic --methods descent --out file/x", "Cannot write to the folder file/x"),
        ("train conik", "Did you mean 'conic'?"),
        ("train conic --out file/x", "Cannot write to the folder file/x"),
        ("train conic --steps 0", "steps must be a positive number"),
        ("train conic --steps 5 --seconds 5", "steps or seconds, not both"),
        ("train conic --lam -1", "lam must be a number from 0 to 1e+30"),
        ("train conic --rule proximol", "Did you mean 'proximal'?"),
        ("train conic --preset papr", "Did you mean 'paper'?"),
        ("train conic --resume", "no checkpoint to resume"),
        ("advise conik", "Did you mean 'conic'?"),
        ("advise cosine --lam -1", "lam must be a number, 0 or more"),
        ("advise cosine --operator x.safetensors", "no operator file at x.safetensors"),
        ("advise cosine --json file/a.json", "Cannot write to the folder file"),
        ("report nowhere", "no folder nowhere"),
        ("reproduce conics", "Did you mean 'conic'?"),
        ("reproduce", "Give the name of one experiment (collapse, conic,"),
        ("reproduce conic --all", "or --all for all of them, not both."),
        ("reproduce --all --data meshes", "--data, --weights and --only are for one experiment"),
        ("reproduce detection --only ,", "--only names no part: give at least one"),
    ],
)
def test_bad_input_is_one_line(run: Callable[[str], Ran], tmp_path: Path, typed: str, said: str):
    (tmp_path / "file").write_text("not a folder, and no operator")
    if "--taus" in typed:
        write_taus(tmp_path)
    ran = run(typed)
    assert ran.code == 2
    assert not (tmp_path / "a.npz").exists()
    *before, sentence = ran.err.strip().splitlines()  # before: a random instance, or a bar
    assert said in sentence
    assert len(before) <= 1
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "typed", ["solve conic {}", "{}", "solve conic --{}", "solve conic --starts {}"]
)
def test_a_long_argument_is_not_repeated_whole(run: Callable[[str], Ran], typed: str):
    ran = run(typed.format("a/" * 1_000))
    assert ran.code == 2
    assert len(ran.err) < 1_000


def test_a_tau_out_of_range_is_said_once(run: Callable[[str], Ran]):
    ran = run("solve conic --method lbfgs --starts 20 --tau 3,0,3,0,0,-1 --plot o.png")
    assert ran.code == 0
    assert ran.err.count("This tau, [3, 0, 3, 0, 0, -1], lies outside") == 1


def test_a_problem_file_goes_all_the_way(
    run: Callable[[str], Ran], wells_file: Path, tmp_path: Path
):
    refused = run(f"solve {wells_file} --method operator")
    assert f"`proxlearn train {wells_file} --out runs/wells`" in refused.err
    ran = run(f"train {wells_file} --steps 30 --out runs/wells {TINY}")
    assert ran.code == 0, ran.err
    operator = "runs/wells/operator.safetensors"
    assert f"proxlearn solve {wells_file} --operator {operator}" in ran.err
    solved = run(f"solve {wells_file} --operator {operator} --tau 1,1 --steps 3")
    assert solved.code == 0, solved.err
    small = f"{wells_file} --operator {operator} --instances 3 --starts 32 --witnesses 32"
    evaluated = run(f"evaluate {small} --steps 1,3")
    assert evaluated.code == 0, evaluated.err
    assert all(said in evaluated.out for said in ("operator x1", "operator x3", "descent", "wd"))
    assert "From 32 starts per instance" in evaluated.err
    compared = run(f"compare {small}")
    assert compared.code == 0, compared.err
    assert (tmp_path / "runs/wells-compare/compare.png").stat().st_size > 10_000
    rows = (tmp_path / "runs/wells-evaluate/rows.jsonl").read_text().splitlines()
    assert [json.loads(row)["applications"] for row in rows] == [1, 3, None]
    assert run("report runs -o page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert "operator x3" in page
    assert "wells-compare" in page


def test_a_file_of_taus_is_solved(
    run: Callable[[str], Ran], wells_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """In three chunks, as each of them is alone."""
    monkeypatch.setattr(applying, "ON_GPU", 64)
    assert run(f"train {wells_file} --steps 3 --out x {TINY}").code == 0
    solve = f"solve {wells_file} --operator x/operator.safetensors --starts 32 --device cpu"
    taus = np.array([[1.0, 0.7], [0.5, 1.5], [0.75, 1.25], [1.0, 1.0], [3.0, 1.0]])
    np.save("taus.npy", taus)
    np.savetxt("taus.csv", taus, delimiter=",", header="two columns")
    np.savetxt("taus.txt", taus)
    for file in ("taus.npy", "taus.csv", "taus.txt"):
        ran = run(f"{solve} --taus {file} --npz many.npz")
        assert ran.code == 0, ran.err
        assert ran.err.count("1 of 5 taus, such as [3, 1], lies outside") == 1
        assert re.search(
            r"5 taus from 32 starts each by operator in .* solutions a second.* many\.npz", ran.err
        )
        many = dict(np.load("many.npz"))
        Path("many.npz").unlink()
        assert many["points"].shape == (5, 32, 2)
        assert np.array_equal(many["tau"], taus.astype(np.float32))
        for k, tau in enumerate(taus):
            assert run(f"{solve} --tau {tau[0]},{tau[1]} --npz one.npz").code == 0
            one = np.load("one.npz")
            assert np.array_equal(many["starts"], one["starts"][0])
            assert np.array_equal(many["inside"][k], one["inside"][0])
            for name in ("points", "values"):
                np.testing.assert_allclose(many[name][k], one[name][0], rtol=1e-5, atol=1e-5)
    assert not list(tmp_path.glob(".*"))


def test_a_file_of_taus_is_solved_by_any_method(run: Callable[[str], Ran], wells_file: Path):
    """Without an operator by L-BFGS; polished solutions come with certificates."""
    taus = np.array([[1.0, 0.7], [0.5, 1.5]])
    np.save("taus.npy", taus)
    ran = run(f"solve {wells_file} --taus taus.npy --npz a.npz --starts 16 --polish --device cpu")
    assert ran.code == 0, ran.err
    assert "2 taus from 16 starts each by lbfgs" in ran.err
    found = np.load("a.npz")
    np.testing.assert_allclose(np.abs(found["points"]), np.tile(taus[:, None], (1, 16, 1)), 1e-4)
    assert (found["certificates"] == 0).all()  # minima
    assert Solutions.load("a.npz").certificates is not None


def test_without_an_operator_it_is_solved_by_lbfgs(run: Callable[[str], Ran], wells_file: Path):
    ran = run(f"solve {wells_file} --tau 1,0.7 --starts 64 --device cpu")
    assert ran.code == 0, ran.err
    assert "No operator is shipped for 'wells', so it is solved by L-BFGS." in ran.err
    assert f"`proxlearn train {wells_file} --out runs/wells`" in ran.err
    assert "4 distinct optima by lbfgs" in ran.err


def test_a_training_is_not_overwritten(run: Callable[[str], Ran], wells_file: Path, tmp_path: Path):
    typed = f"train {wells_file} --steps 3 --out x {TINY}"
    assert run(typed).code == 0
    before = (tmp_path / "x/operator.safetensors").read_bytes()
    again = run(typed)
    assert again.code == 2
    assert "already holds a training" in again.err
    assert (tmp_path / "x/operator.safetensors").read_bytes() == before


def test_ctrl_c_saves_and_says_how_to_go_on(
    run: Callable[[str], Ran], wells_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Ctrl-C comes in the middle of the sixth step."""
    whole = session.Session._one_step

    def pressed(session: session.Session) -> None:
        if session.step == 5:
            raise KeyboardInterrupt
        whole(session)

    typed = f"train {wells_file} --steps 9 --out x {TINY}"
    monkeypatch.setattr(sys, "argv", ["proxlearn", *shlex.split(typed)])
    with monkeypatch.context() as patch:
        patch.setattr(session.Session, "_one_step", pressed)
        stopped = run(typed)
    assert stopped.code == 130
    assert "Stopped at step 5" in stopped.err
    assert f"proxlearn train {wells_file} --steps 9" in stopped.err
    assert "--resume" in stopped.err
    assert not (tmp_path / "x/operator.safetensors").exists()
    assert run(f"{typed} --resume").code == 0
    assert (tmp_path / "x/operator.safetensors").exists()


def test_an_operator_of_another_problem_is_refused(run: Callable[[str], Ran], wells_file: Path):
    assert run(f"train {wells_file} --steps 2 --out x {TINY}").code == 0
    ran = run("solve springs --operator x/operator.safetensors")
    assert ran.code == 2
    assert len(ran.err.strip().splitlines()) == 1
    assert "trained for 'wells'" in ran.err


def test_advise_says_and_writes(run: Callable[[str], Ran], tmp_path: Path):
    ran = run("advise cosine --json advice.json --device cpu")
    assert ran.code == 0, ran.err
    assert re.search(r"weak convexity constant xi +394\.8", ran.out)
    assert "The condition of theorem 3.1 holds" in ran.err
    written = json.loads((tmp_path / "advice.json").read_text())
    assert written["problem"] == "cosine"
    shown = run("advise conic --json - --device cpu")
    assert json.loads(shown.out)["operator"]["lam"] == pretrained("conic", "cpu").lam


DOTS = '''
"""tau = a picture of dots and the dots themselves, of which an operator sees the picture."""
import torch
import proxlearn as px
from proxlearn.instances.picture import Pictures
from proxlearn.networks.encoders.picture import Picture

class Dots(px.Problem):
    name = "dots"
    space = px.Box(0.0, 1.0, dim=2)
    instances = Pictures(1, 8, 8)

    def sample(self, count, split, generator):
        dots = 0.2 + 0.6 * torch.rand(count, 2, 2, generator=generator, device=generator.device)
        grid = torch.linspace(0, 1, 8, device=generator.device)
        at = torch.stack(torch.meshgrid(grid, grid, indexing="ij"), -1).reshape(1, 64, 2)
        picture = torch.exp(-30 * torch.cdist(at, dots).square()).sum(-1).reshape(count, 1, 8, 8)
        return {"picture": picture, "dots": dots}

    def observe(self, tau):
        return tau["picture"]

    def encoder(self):
        return Picture(self.instances, size=8, features=2)

    def objective(self, x, tau):
        return (x[:, :, None] - tau["dots"][:, None]).square().sum(-1).amin(-1)
'''


def test_a_structured_tau_is_drawn_at_random(run: Callable[[str], Ran], tmp_path: Path):
    (tmp_path / "dots.py").write_text(DOTS)
    assert run(f"train dots.py --steps 3 --out x {TINY}").code == 0
    ran = run(
        "solve dots.py --operator x/operator.safetensors --json - --plot dots.png --npz a.npz"
    )
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["tau"] is None
    assert "random test instance" in ran.err
    refused = run("solve dots.py --operator x/operator.safetensors --tau 1,2")
    assert refused.code == 2
    assert "must be the path of a .npy file with a picture" in refused.err


def test_demo_leaves_pictures_and_a_page(
    run: Callable[[str], Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(demo, "STARTS", 8)
    monkeypatch.setattr(demo, "SCIPY_STARTS", 1)
    assert run(f"train conic --steps 2 --out x {TINY}").code == 0
    ran = run("demo --operator x/operator.safetensors --out shown")
    assert ran.code == 0, ran.err
    assert "SciPy" in ran.out
    assert "open shown/index.html" in ran.err
    page = (tmp_path / "shown/index.html").read_text()
    assert page.count("data:image/png") == 2
    assert "two crossing lines" in page


def test_reproduce_shows_the_table_and_makes_a_page(
    run: Callable[[str], Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """With an experiment of one row in place of a training."""
    sizes = SimpleNamespace(name="quick")
    row, table = {"label": "ours", "wd": 0.25}, "| method | WD |\n| --- | ---: |\n| ours | 0.25 |\n"
    fake = SimpleNamespace(
        __doc__="An experiment.",
        QUICK=sizes,
        FULL=None,
        LEFT_OUT="Most of it.",
        run=lambda given, folder: ([row], table) if given is sizes else None,
    )
    monkeypatch.setattr(experiments.experiments, "module", lambda name: fake)
    ran = run("reproduce conic --quick --out x")
    assert ran.code == 0, ran.err
    assert "| ours | 0.25 |" in ran.out
    assert "Most of it." in ran.err
    page = (tmp_path / "x/report.html").read_text()
    assert '<td class="words">wd</td><td class="words">0.25</td>' in page


def test_reproduce_makes_a_page_of_the_parts_that_did_not_fail(
    run: Callable[[str], Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def broken() -> list[dict]:
        raise ZeroDivisionError("division by zero")

    def experiment(sizes: None, folder: experiments.Folder):
        return folder.in_parts({"one": broken, "two": lambda: [{"wd": 0.25}]}), "| a |\n| --- |\n"

    fake = SimpleNamespace(
        __doc__="In parts.", FULL=None, LEFT_OUT="", run=experiment, parts=lambda: ("one", "two")
    )
    monkeypatch.setattr(experiments.experiments, "module", lambda name: fake)
    ran = run("reproduce conic --out x")
    assert ran.code == 1
    assert "one failed: division by zero. The other parts are in x;" in ran.err
    assert (tmp_path / "x/one.error").is_file()
    assert '<td class="words">0.25</td>' in (tmp_path / "x/report.html").read_text()

    monkeypatch.setattr(fake, "run", lambda sizes, folder: (folder.in_parts({"one": list}), ""))
    assert run("reproduce conic --out x --only one").code == 0
    assert '"part": "two"' in (tmp_path / "x/rows.jsonl").read_text()  # which cannot be run now
    assert not (tmp_path / "x/one.error").exists()
    (tmp_path / "x/rows.jsonl").write_text(
        '{"experiment": "conic", "command": "proxlearn reproduce conic", "quick": false}\n'
    )
    ran = run("reproduce conic --out x --only one")
    assert (ran.code, "x holds rows that name no part" in ran.err) == (2, True)


def test_reproduce_all_goes_on_after_a_failure_and_skips_what_is_there(
    run: Callable[[str], Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """With one experiment in place of all, which fails where the folder is that of conics."""
    broken, ran_in = [True], []

    def experiment(sizes: str, folder: experiments.Folder):
        ran_in.append((folder.path.name, sizes))
        if broken[0] and folder.path.name == "conic":
            raise ZeroDivisionError("division by zero")
        return [{"label": folder.path.name, "wd": 0.25}], "| method |\n| --- |\n| ours |\n"

    names = experiments.names()
    fake = SimpleNamespace(
        __doc__="One of them.", QUICK="quick", FULL="full", LEFT_OUT="Much.", run=experiment
    )
    monkeypatch.setattr(experiments.experiments, "module", lambda name: fake)

    ran = run("reproduce --all --quick --out x")
    assert ran.code == 1
    assert "conic failed: division by zero" in ran.err
    assert f"1 of {len(names)} experiments failed: conic." in ran.err
    assert ran_in == [(name, "quick") for name in names]
    assert ran.out.count("| ours |") == len(names) - 1
    page = (tmp_path / "x/report.html").read_text()
    assert [name for name in names if f">{name}</h2>" not in page] == ["conic"]

    broken[0] = False
    ran = run("reproduce --all --quick --resume --out x")
    assert ran.code == 0, ran.err
    assert ran_in[len(names) :] == [("conic", "quick")]  # the others are there
    assert ">conic</h2>" in (tmp_path / "x/report.html").read_text()

    ran = run("reproduce --all --resume --out x")  # the full version is another
    assert ran.code == 1
    assert "x/conic holds the quick version" in ran.err
    assert len(ran_in) == len(names) + 1


def test_ctrl_c_stops_all_experiments(run: Callable[[str], Ran], monkeypatch: pytest.MonkeyPatch):
    begun = []

    def experiment(sizes: None, folder: experiments.Folder):
        begun.append(folder.path.name)
        raise StoppedError("The training of x was interrupted.")

    fake = SimpleNamespace(__doc__="One.", FULL=None, LEFT_OUT="", run=experiment)
    monkeypatch.setattr(experiments.experiments, "module", lambda name: fake)
    ran = run("reproduce --all --out x")
    assert (ran.code, len(begun)) == (130, 1)
    assert "interrupted" in ran.err
    assert run("reproduce conic --out y").code == 130


def test_a_graph_is_checked_encoded_valued_rounded_and_clustered_once(
    run: Callable[[str], Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """For the table, the picture and the file together; its cuts have values of their own."""
    counted = {
        "check": (graph, "_check_weights"),
        "encode": (Operator, "encode"),
        "value": (Solutions, "with_values"),
        "round": (maxcut, "best_half_circles"),
        "cluster": (distinct, "clusters"),
    }
    calls = []
    for what, (home, name) in counted.items():
        whole = getattr(home, name)

        def noted(*given, what=what, whole=whole, **named):
            calls.append(what)
            return whole(*given, **named)

        monkeypatch.setattr(home, name, noted)
    edges = "".join(f"{k} {k % 8 + 1} 1\n" for k in range(1, 9))
    (tmp_path / "graph.txt").write_text(f"8 8\n{edges}")
    ran = run("solve maxcut --tau graph.txt --starts 8 --device cpu --plot a.png --json a.json")
    assert ran.code == 0, ran.err
    assert calls == ["check", "encode", "value", "round", "value", "cluster"]


def test_a_picture_is_of_the_solutions_in_the_table(run: Callable[[str], Ran], monkeypatch):
    drawn = []
    monkeypatch.setattr(Solutions, "plot", lambda self, path, optima: drawn.append(self))
    settings = "--method proximal_gradient --steps 200 --starts 16 --device cpu"
    ran = run(f"solve sparse --tau 0.8,0.25 {settings} --polish --plot a.png --json a.json")
    assert ran.code == 0
    best = json.loads(Path("a.json").read_text())["optima"][0]
    (shown,) = drawn
    assert best["value"] == pytest.approx(shown.values[shown.inside].min().item())
    assert best["certificate"] == "minimum"


def test_completion_can_be_installed(run: Callable[[str], Ran]):
    assert "--install-completion" in run("--help").out
