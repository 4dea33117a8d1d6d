"""The house: what imports what, what stays light, and what an operator file needs."""

import ast
import os
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import proxlearn as px

PACKAGE = Path(px.__file__).parent

HEAVY = ["matplotlib", "sklearn", "typer", "pandas", "PIL", "proxlearn.cli", "proxlearn.figures"]

# From the ground up: a folder imports only those before it, wherever in a file the import stands.
FOLDERS = (
    "common",
    "gpu",
    "spaces",
    "meshes",
    "images",
    "instances",
    "networks",
    "problems",
    "calculus",
    "figures",
    "answers",
    "operators",
    "training",
    "solvers",
    "branches",
    "shapes",
    "detections",
    "measure",
    "show",
    "experiments",
    "playground",
    "cli",
)
LAZY = (("problems", "conic"), ("problems", "sparse"), ("solvers", "multistart"))  # for instance
GROUND = {"errors", "version"}  # modules that all may import


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
    """The modules of proxlearn that a file imports when it is imported or run (not for types),
    such as `spaces.box`."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "proxlearn":
            found |= {module_at(f"{node.module}.{name.name}") for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {module_at(n.name) for n in node.names if n.name.startswith("proxlearn.")}
    return found - {""}


def module_at(dotted: str) -> str:
    """The module that a dotted name is, or is in, without `proxlearn.` before it."""
    parts = dotted.split(".")[1:]
    while parts and not (PACKAGE.joinpath(*parts).is_dir() or file_of(parts).is_file()):
        parts = parts[:-1]
    return ".".join(parts)


def file_of(parts: list[str]) -> Path:
    return PACKAGE.joinpath(*parts[:-1], f"{parts[-1]}.py")


def every_module() -> dict[str, set[str]]:
    """What every module imports."""
    files = {path: path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py")}
    return {".".join(name.parts).removesuffix(".__init__"): imports(p) for p, name in files.items()}


def test_every_folder_has_its_place():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert folders == set(FOLDERS)
    files = {path.stem for path in PACKAGE.glob("*.py")}
    assert files == GROUND | {"__init__", "__main__"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_imports_only_those_before_it(folder: str):
    before = {*FOLDERS[: FOLDERS.index(folder) + 1], *GROUND}
    for module, imported in every_module().items():
        if module.split(".")[0] == folder:
            late = {each for each in imported if each.split(".")[0] not in before}
            assert not late, f"{module} imports {late}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_says_what_lives_there_and_what_it_rests_on(folder: str):
    about = ast.get_docstring(ast.parse((PACKAGE / folder / "__init__.py").read_text()))
    assert about
    assert "Rests on" in " ".join(about.split())
    assert len(about.splitlines()) <= 3


def test_no_module_imports_itself_by_way_of_others():
    modules = every_module()
    graph = {name: each & modules.keys() for name, each in modules.items()}
    TopologicalSorter(graph).prepare()  # raises for a cycle


def test_the_import_reader_sees_imports(tmp_path: Path):
    (tmp_path / "a.py").write_text(
        "import proxlearn.gpu.capture\nfrom proxlearn import spaces\n"
        "from proxlearn.spaces.box import Box\nfrom proxlearn.errors import InputError\n"
        "def f():\n    from proxlearn.figures.plane import panel\n"
        "if TYPE_CHECKING:\n    from proxlearn.training.learn import learn\n"
    )
    assert imports(tmp_path / "a.py") == {
        "gpu.capture",
        "spaces",
        "spaces.box",
        "errors",
        "figures.plane",
    }


def test_importing_proxlearn_is_light():
    """No plots, no command line, and no problem or method before it is asked for."""
    imported = set(run("import sys, proxlearn; print(*sys.modules)").split())
    assert "proxlearn.training.learn" in imported
    assert not imported & set(HEAVY)
    assert not [name for name in imported if name.startswith("proxlearn.experiments")]
    lazy = {f"proxlearn.{kind}.{name}" for kind, name in LAZY}
    assert not imported & lazy


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
general = {f"proxlearn.problems.{name}" for name in ("base", "load", "objectives")}
print([m for m in sys.modules if m.startswith("proxlearn.problems.") and m not in general])
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
