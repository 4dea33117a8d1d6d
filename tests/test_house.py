"""The house: what imports what, what stays light, and what an operator file needs."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import proxlearn as px

PACKAGE = Path(px.__file__).parent

HEAVY = ["matplotlib", "sklearn", "typer", "pandas", "PIL", "proxlearn.cli", "proxlearn.plots"]

# Data flows one way: these never import those.
LATER = {"advise", "cli", "demo", "evaluate", "experiments", "many", "plots", "report", "screen"}
LEARNING = {
    "operator",
    "pretrained",
    "rules",
    "sampling",
    "settings",
    "train",
    "checkpoint",
    "progress",
}
NEVER = {
    "encoders": LATER | LEARNING | {"problem", "problems", "solvers", "solutions", "metrics"},
    "arrival": LATER | LEARNING | {"problem", "problems", "solvers", "solutions", "metrics"},
    "stopping": LATER | LEARNING | {"problem", "problems", "solvers", "solutions", "metrics"},
    "learn_arrival": LATER | {"problems", "train", "solvers", "metrics"},
    "chunks": LATER | LEARNING | {"problem", "problems", "solvers", "solutions", "metrics"},
    "cuts": LATER | LEARNING | {"problems", "solvers", "solutions", "metrics"},
    "problem": LATER | LEARNING | {"problems", "solvers", "solutions", "metrics"},
    "problems": LATER | LEARNING | {"solvers", "solutions", "metrics"},
    "derivatives": LATER | LEARNING | {"problems", "solvers", "solutions", "metrics"},
    "curvature": LATER | LEARNING | {"problems", "solvers", "solutions", "metrics"},
    "network": LATER | {"operator", "problem", "problems", "solvers", "train"},
    "graph_network": LATER | {"operator", "problem", "problems", "solvers", "train"},
    "operator": LATER | {"problems", "pretrained", "rules", "sampling", "train", "solvers"},
    "rules": LATER | {"problems", "sampling", "train", "solvers", "metrics"},
    "sampling": LATER | {"problems", "train", "solvers", "metrics"},
    "settings": LATER | {"problems", "train", "solvers", "metrics"},
    "train": LATER | {"problems", "solvers", "metrics"},
    "clusters": LATER | LEARNING | {"problem", "problems", "solvers", "solutions", "metrics"},
    "optima": LATER | LEARNING | {"problem", "problems", "solvers", "solutions", "metrics"},
    "solutions": (LATER - {"plots"}) | LEARNING | {"problems", "solvers", "metrics"},
    "swarm": LATER | {"problems", "pretrained", "rules", "sampling", "solvers", "metrics"},
    "solvers": LATER | {"rules", "sampling", "train", "metrics"},
    "metrics": LATER | LEARNING | {"problems", "solvers"},
    "polish": LATER | LEARNING | {"problems", "solutions", "metrics"},
    "certify": LATER | LEARNING | {"problems", "solvers", "solutions", "metrics"},
    "missed": LATER | LEARNING | {"problems", "solvers", "metrics"},
    "advise": (LATER - {"advise"}) | {"problems", "pretrained", "rules", "sampling", "train"},
    "many": (LATER - {"many"}) | {"problems", "rules", "sampling", "train", "solvers", "metrics"},
}
ONLY = {
    "errors": set(),
    "batch": set(),
    "spaces": {"errors"},
    "parallel": {"errors"},
    "thresholds": set(),
    "eigen": set(),
}  # all that these import


def run(script: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def imports(path: Path) -> set[str]:
    """The parts of proxlearn that a file imports when it is imported or run (not for types)."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "proxlearn":
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("proxlearn."):
            found.add((node.module or "").split(".")[1])
        elif isinstance(node, ast.Import):
            parts = [name.name.split(".") for name in node.names]
            found |= {part[1] for part in parts if part[0] == "proxlearn" and len(part) > 1}
    return found


def files_of(part: str) -> list[Path]:
    folder = PACKAGE / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{part}.py"]


@pytest.mark.parametrize("part", sorted(NEVER))
def test_no_back_imports(part: str):
    for path in files_of(part):
        assert not imports(path) & NEVER[part], path.name


@pytest.mark.parametrize("part", sorted(ONLY))
def test_the_lowest_parts_stand_on_their_own(part: str):
    assert imports(PACKAGE / f"{part}.py") == ONLY[part]


def test_the_import_reader_sees_imports(tmp_path: Path):
    (tmp_path / "a.py").write_text(
        "import proxlearn.train\nfrom proxlearn import solvers\n"
        "def f():\n    from proxlearn.plots.two import draw\n"
        "if TYPE_CHECKING:\n    from proxlearn.cli import main\n"
    )
    assert imports(tmp_path / "a.py") == {"train", "solvers", "plots"}


def test_importing_proxlearn_is_light():
    """No plots, no command line, and no problem or method before it is asked for."""
    imported = set(run("import sys, proxlearn; print(*sys.modules)").split())
    assert "proxlearn.train" in imported
    assert not imported & set(HEAVY)
    below = ("proxlearn.problems.", "proxlearn.solvers.", "proxlearn.experiments")
    assert not [name for name in imported if name.startswith(below)]


LOAD = """
import builtins, pickle, sys
import torch
import proxlearn as px

def poisoned(*args, **kwargs):
    raise AssertionError("something was unpickled")

pickle.load = pickle.loads = pickle.Unpickler = pickle._Unpickler = torch.load = poisoned
operator = px.load(sys.argv[1], device="cpu")
solutions = operator.solve([0.1] * 6, starts=5)
assert solutions.points.shape == (1, 5, 2)
assert solutions.values is None
assert operator.problem is None
print([m for m in sys.modules if m.startswith("proxlearn.problems.")])
"""


def test_an_operator_file_needs_no_problem_code_and_unpickles_nothing(tiny: dict, tmp_path: Path):
    operator = px.learn(px.problem("conic"), steps=1, **tiny)
    path = operator.save(tmp_path / "conic.safetensors")
    assert run(LOAD, str(path)).strip() == "[]"


def test_the_names_users_type_are_there():
    names = ["Box", "Circles", "Sphere", "Planes", "Product", "Problem", "learn", "load", "problem"]
    names += ["pretrained", "solve", "polish", "certify", "unseen", "metrics", "ProxlearnError"]
    assert [name for name in names if not callable(getattr(px, name)) and name != "metrics"] == []
    assert callable(px.metrics.witnessed)
    assert set(names) <= set(px.__all__)
