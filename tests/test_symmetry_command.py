"""`proxlearn symmetry`: what it prints, what it writes, and what it skips."""

import json
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch

import proxlearn as px
from proxlearn.cli.main import main
from proxlearn.common.seeds import generator_for
from proxlearn.meshes.mesh import Mesh, sampled
from proxlearn.meshes.parts import Draw, in_its_frame, plate, washer
from proxlearn.problems.symmetry import Symmetry

MESHES = os.environ.get("PROXLEARN_MESHES")
NAMES = ("symmetries.html", "symmetries.json", "symmetries.png")


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], Ran]:
    """Run what is typed after `proxlearn symmetry`, with an operator, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    px.Operator.untrained(Symmetry(), "matching", lam=3.0).save("operator.safetensors")

    def call(typed: str) -> Ran:
        more = "--operator operator.safetensors --device cpu --starts 128"
        with pytest.raises(SystemExit) as stopped:
            main(["symmetry", *shlex.split(f"{typed} {more}")])
        out, err = capsys.readouterr()
        return Ran(int(stopped.value.code or 0), out, err)

    return call


def mesh_of(shape, seed: int = 0) -> Mesh:
    return in_its_frame("any", shape(Draw(generator_for(seed, shape.__name__)))).mesh


def write_off(path: Path, mesh: Mesh) -> None:
    corners = "".join(f"{x} {y} {z}\n" for x, y, z in mesh.vertices.tolist())
    faces = "".join(f"3 {a} {b} {c}\n" for a, b, c in mesh.faces.tolist())
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"OFF\n{len(mesh.vertices)} {len(mesh.faces)} 0\n{corners}{faces}")


def test_one_part_gives_a_table_json_a_picture_and_a_page(
    run: Callable[[str], Ran], tmp_path: Path
):
    write_off(tmp_path / "plate.off", mesh_of(plate))
    ran = run("plate.off --out found")
    assert ran.code == 0, ran.err
    assert len(re.findall(r"^\d +plane ", ran.out, re.MULTILINE)) == 3
    assert len(re.findall(r"^\d +axis of order 2 ", ran.out, re.MULTILINE)) == 3
    assert "Found 3 mirror planes and 3 axes of order 2." in " ".join(ran.err.split())
    found = json.loads((tmp_path / "found/symmetries.json").read_text())
    assert sorted(max(map(abs, each["normal"])) for each in found["planes"]) == pytest.approx(
        [1, 1, 1], abs=1e-3
    )
    assert found["families"] == []
    assert [each["order"] for each in found["axes"]] == [2, 2, 2]
    assert (tmp_path / "found/symmetries.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(each.name for each in (tmp_path / "found").iterdir()) == list(NAMES)


def test_the_page_needs_nothing_else_and_holds_what_was_found(run, tmp_path: Path):
    write_off(tmp_path / "a <b>.off", mesh_of(washer))
    assert run("'a <b>.off' --out found").code == 0
    text = (tmp_path / "found/symmetries.html").read_text()
    assert not re.search(r"https?://|src=|@import|href=", text)
    (said,) = re.findall(r'type="application/json">(.*?)</script>', text, re.DOTALL)
    data = json.loads(said)
    assert data["title"] == "a <b>.off"
    found = json.loads((tmp_path / "found/symmetries.json").read_text())
    flat = len(found["planes"]) + len(found["families"])
    assert len(data["lines"]) == flat + len(found["axes"])
    assert {each["line"] for each in data["sheets"]} == set(range(flat))
    assert [each["order"] for each in data["axes"]] == ["", "\N{INFINITY}"]  # the family's, and it
    for axis in data["axes"]:
        start, end = np.array(axis["ends"]).reshape(2, 3)
        assert abs((end - start)[2]) > 10 * np.abs((end - start)[:2]).max()  # along z


def test_a_cloud_of_points(run: Callable[[str], Ran], tmp_path: Path):
    points = sampled(mesh_of(washer), 900, generator_for(0, "cloud")).points
    np.savetxt(tmp_path / "scan.xyz", points.numpy())
    ran = run("scan.xyz")
    assert ran.code == 0, ran.err
    assert "all through an axis" in ran.out
    assert "only 900 points" in " ".join(ran.err.split())
    for name in NAMES:
        assert (tmp_path / "runs/scan-symmetry" / name).is_file()


def test_a_folder_gives_one_table_and_names_what_it_skips(run, tmp_path: Path):
    write_off(tmp_path / "parts/plate.off", mesh_of(plate))
    write_off(tmp_path / "parts/washer.off", mesh_of(washer))
    (tmp_path / "parts/broken.off").write_text("OFF\n3 1 0\n0 0 0\n")
    ran = run("parts --out found")
    assert ran.code == 0, ran.err
    assert re.search(r"plate.off +3 +0 +3 \(2\) ", ran.out)
    assert re.search(r"washer.off +1 +1 +1 \(any angle\) ", ran.out)
    assert "Skipped parts/broken.off" in ran.err
    assert "1 of 3 meshes were skipped." in ran.err
    found = json.loads((tmp_path / "found/symmetries.json").read_text())
    assert [len(each["planes"]) for each in found["parts"]] == [3, 1]
    assert list(found["skipped"]) == ["parts/broken.off"]


def test_what_cannot_be_done_is_one_sentence(run: Callable[[str], Ran], tmp_path: Path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/broken.off").write_text("OFF\n3 1 0\n0 0 0\n")
    for typed, words in (
        ("nothing.stl", "There is no file at nothing.stl"),
        ("nothing/", "is of no kind that can be read"),
        ("parts", "None of the 1 meshes can be used, such as parts/broken.off"),
        ("part.doc", "is of no kind that can be read"),
    ):
        ran = run(typed)
        assert ran.code == 2
        assert words in " ".join(ran.err.split())
        assert "Traceback" not in ran.err


@pytest.mark.skipif(not MESHES, reason="PROXLEARN_MESHES is not set to a folder of real parts")
def test_real_parts_from_a_catalog(run: Callable[[str], Ran], tmp_path: Path):
    catalog = Path(str(MESHES)) / "obj/test_catalog.txt"
    lines = catalog.read_text().split()[:3]
    (tmp_path / "few.txt").write_text("\n".join(str(catalog.parent / each) for each in lines))
    ran = run("few.txt --out found")
    assert ran.code == 0, ran.err
    assert len(json.loads((tmp_path / "found/symmetries.json").read_text())["parts"]) == 3
