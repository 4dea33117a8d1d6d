"""The package as it is published: what is in it, and that it works on its own."""

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

import proxlearn as px
from proxlearn.common.files import read_rows
from proxlearn.operators.shipped import shipped

pytest.importorskip("hatchling", reason="hatchling, of the extra dev, builds the package")

from _wheel import ROOT, built, installed, run

ADDRESS = "https://example.com/you/proxlearn"
TAU = "0.3,0,0.5,0,0,-1"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return built(tmp_path_factory.mktemp("dist"), address=ADDRESS)


def names_in(wheel: Path) -> set[str]:
    with ZipFile(wheel) as file:
        return {name for name in file.namelist() if ".dist-info/" not in name}


def test_a_wheel_is_small_and_holds_the_package_and_nothing_else(packages: tuple[Path, Path]):
    _, wheel = packages
    assert wheel.stat().st_size < 15e6
    names = names_in(wheel)
    package = ROOT / "src"
    there = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}
    assert names == {name for name in there if "__pycache__" not in name}
    assert {f"proxlearn/operators/weights/{name}.safetensors" for name in shipped()} <= names
    assert "proxlearn/py.typed" in names


def test_an_sdist_holds_what_a_wheel_is_built_from(packages: tuple[Path, Path]):
    sdist, wheel = packages
    assert sdist.stat().st_size < 15e6
    with tarfile.open(sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {f"src/{name}" for name in names_in(wheel)} <= names
    assert {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "hatch_build.py"} <= names
    assert not [name for name in names if name.startswith(("results", "tests", "docs"))]


def described(wheel: Path) -> str:
    """What a package index shows of a wheel."""
    with ZipFile(wheel) as file:
        (name,) = (name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        return file.read(name).decode()


def links(text: str) -> Iterator[str]:
    return (target for target in re.findall(r"\]\(([^)]+)\)", text))


def test_pictures_of_the_readme_show_on_a_package_index(packages: tuple[Path, Path]):
    text, tag = described(packages[1]), f"v{px.__version__}"
    assert f"]({ADDRESS}/raw/{tag}/docs/images/conics.png)" in text
    assert f"]({ADDRESS}/blob/{tag}/docs/tutorial.md)" in text
    assert all(target.startswith("https://") for target in links(text))
    for target in links(text):  # what they lead to is there
        if target.startswith(ADDRESS):
            path = re.split(rf"/(?:raw|blob)/{re.escape(tag)}/", target)[1]
            assert (ROOT / path.partition("#")[0]).exists(), target


def test_without_an_address_there_are_no_pictures_and_no_dead_links(tmp_path: Path):
    text = described(built(tmp_path)[1])
    assert "![" not in text
    assert all(target.startswith("https://") for target in links(text))
    assert "ten minutes" in text  # the words of a link stay


def test_the_citation_is_of_the_paper_and_of_this_version():
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()  # the format asks for
    assert cited["version"] == px.__version__
    paper = cited["preferred-citation"]
    assert paper["title"] == "Learning Proximal Operators to Discover Multiple Optima"
    assert [each["family-names"] for each in paper["authors"]][::6] == ["Li", "Solomon"]
    assert paper["year"] == 2023


@pytest.mark.slow
@pytest.mark.parametrize("of", ["the source tree", "the sdist"])
def test_an_installed_wheel_solves_and_draws(packages: tuple[Path, Path], tmp_path: Path, of: str):
    sdist, wheel = packages
    if of == "the sdist":
        with tarfile.open(sdist) as file:
            file.extractall(tmp_path / "source", filter="data")
        (root,) = (tmp_path / "source").iterdir()
        names = names_in(wheel)
        wheel = built(tmp_path / "dist", root)[1]
        assert names_in(wheel) == names
    programs = installed(wheel, tmp_path / "new")
    where = "import proxlearn; print(proxlearn.__file__)"
    assert str(tmp_path) in run([str(programs / "python"), "-c", where], cwd=tmp_path)
    command = [str(programs / "proxlearn")]
    assert run([*command, "--version"]).strip() == f"proxlearn {px.__version__}"
    run([*command, "solve", "conic", "--tau", TAU, "--plot", "out.png"], cwd=tmp_path)
    assert (tmp_path / "out.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_benchmark_of_an_install_leaves_a_row(tmp_path: Path):
    import install

    install.main(["--quick", "--out", str(tmp_path)])
    (row,) = read_rows(tmp_path / "install.jsonl")
    assert row["seconds"] > 0
    assert row["wheel_megabytes"] < 15
