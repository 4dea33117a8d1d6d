"""One file dropped into `problems/` is listed, trained, solved, evaluated and contract-tested, with
no other edit: shown on a copy of the package."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import proxlearn

ROOT = Path(__file__).parent.parent
DOTS = ROOT / "examples" / "dots.py"
CONTRACT = ROOT / "tests" / "test_contract_problems.py"

RINGS = '''
"""A ring of optima for every radius."""

from proxlearn.problems.base import Problem
from proxlearn.spaces import Box


class Rings(Problem):
    """`f(x) = (|x|^2 - r^2)^2` with tau = (r,)."""

    name = "rings"
    space = Box(-2.0, 2.0, dim=2)
    parameters = Box(0.5, 1.5, dim=1)

    def objective(self, x, tau):
        return (x.square().sum(-1) - tau.square()).square()
'''

COMMANDS = """
import json, sys
import torch
torch.set_num_threads(1)
import proxlearn
from proxlearn.cli.main import main

assert proxlearn.__file__.startswith(sys.argv[1]), proxlearn.__file__
for command in json.loads(sys.argv[2]):
    try:
        main(command)
    except SystemExit as end:
        assert end.code in (0, None, 3), (command, end.code)  # 3: an operator that is poor
"""


@pytest.fixture(params=["rings", *(path.stem for path in DOTS.parent.glob("dots.py"))])
def dropped(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """The name of a problem dropped into a copy of the package, and an environment that uses it."""
    copy = tmp_path / "copy"
    source = Path(proxlearn.__file__).parent
    shutil.copytree(source, copy / "proxlearn", ignore=shutil.ignore_patterns("__pycache__"))
    file = copy / "proxlearn" / "problems" / f"{request.param}.py"
    assert not file.exists()
    if request.param == "rings":
        file.write_text(RINGS)
    else:
        shutil.copy(DOTS, file)
    return request.param, os.environ | {"PYTHONPATH": str(copy), "COLUMNS": "200"}


def test_is_listed_trained_solved_and_evaluated(dropped, tmp_path: Path):
    name, environment = dropped
    operator = str(tmp_path / "run" / "operator.safetensors")
    small = ["--instances", "12", "--points", "8", "--applications", "3", "--device", "cpu"]
    few = ["--operator", operator, "--starts", "12", "--device", "cpu"]
    commands = [
        ["problems"],
        ["train", name, "--out", str(tmp_path / "run"), "--steps", "30", *small],
        ["solve", name, *few, "--json", str(tmp_path / "optima.json")],
        ["evaluate", name, *few, "--instances", "2", "--witnesses", "9"]
        + ["--reference", "lbfgs", "--out", str(tmp_path / "evaluated")],
    ]
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, str(tmp_path), json.dumps(commands)],
        env=environment,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\n{name} " in done.stdout  # in the list of problems
    assert Path(operator).is_file()
    assert json.loads((tmp_path / "optima.json").read_text())
    rows = list((tmp_path / "evaluated").glob("*.jsonl"))
    assert rows
    evaluated = [json.loads(line) for line in rows[0].read_text().splitlines()]
    assert {row["problem"] for row in evaluated} == {name}


def under_contract(name: str, environment: dict[str, str], part: str = "test"):
    """The contract tests on the copy, and of those only the dropped problem's."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", str(CONTRACT), "-k", f"{name} and {part}"]
        + ["-p", "no:cacheprovider"],
        env=environment,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


def test_is_under_the_contract(dropped):
    name, environment = dropped
    done = under_contract(name, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = sum(map(int, re.findall(r"(\d+) (?:passed|skipped)", done.stdout)))
    assert ran >= CONTRACT.read_text().count("\ndef test_")


@pytest.mark.parametrize("dropped", ["rings"], indirect=True)
def test_the_contract_does_fail_for_a_problem_that_breaks_it(dropped, tmp_path: Path):
    """A contract that nothing can break would be no contract."""
    name, environment = dropped
    file = tmp_path / "copy" / "proxlearn" / "problems" / "rings.py"
    file.write_text(RINGS.replace("tau.square())", "tau.square() * x.mean())"))  # points mix
    done = under_contract(name, environment, "mix")
    assert done.returncode == 1
    assert "test_points_and_instances_do_not_mix" in done.stdout
