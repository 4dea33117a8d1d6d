"""`proxlearn detect`: what it prints, what it writes, and what it skips."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from PIL import Image
from rectangles import painted, to_rectangles

from proxlearn.cli import detect
from proxlearn.cli.main import main

TWO = ((10, 10, 20, 30), (50, 5, 12, 12))


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], Ran]:
    """Run what is typed after `proxlearn detect`, with an operator that goes to white rectangles,
    in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(detect, "load", lambda path, device: to_rectangles())

    def call(typed: str) -> Ran:
        with pytest.raises(SystemExit) as stopped:
            main(["detect", *shlex.split(f"{typed} --operator its.safetensors --device cpu")])
        out, err = capsys.readouterr()
        return Ran(int(stopped.value.code or 0), out, " ".join(err.split()))

    return call


def test_one_picture_gives_a_table_json_and_the_picture_with_boxes(
    run: Callable[[str], Ran], tmp_path: Path
):
    Image.fromarray(painted(*TWO)).save(tmp_path / "street.jpg")
    ran = run("street.jpg --out found")
    assert ran.code == 0, ran.err
    assert len(re.findall(r"^\d +[\d.]+ +[\d.]+ +", ran.out, re.MULTILINE)) == 2
    assert "Found 2 boxes with a score of at least 0.02" in ran.err
    found = json.loads((tmp_path / "found/boxes.json").read_text())
    assert (found["name"], found["width"], found["height"]) == ("street.jpg", 80, 60)
    assert sorted(round(each["box"][2]) for each in found["boxes"]) == [12, 20]
    assert (tmp_path / "found/boxes.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(each.name for each in (tmp_path / "found").iterdir()) == [
        "boxes.json",
        "boxes.png",
    ]
    assert (run("street.jpg").code, (tmp_path / "runs/street-boxes/boxes.json").is_file()) == (
        0,
        True,
    )


def test_a_threshold_decides_what_is_listed(run: Callable[[str], Ran], tmp_path: Path):
    Image.fromarray(painted(*TWO)).save(tmp_path / "street.png")
    ran = run("street.png --threshold 0.5 --out found")
    assert "Found 1 box with a score of at least 0.5, as asked for; 1 other scored less." in ran.err
    found = json.loads((tmp_path / "found/boxes.json").read_text())
    assert (len(found["boxes"]), len(found["below"])) == (1, 1)


def test_a_folder_gives_one_table_cocos_results_and_names_what_it_skips(
    run: Callable[[str], Ran], tmp_path: Path
):
    (tmp_path / "val").mkdir()
    for name, boxes in (("000139.png", TWO), ("000285.bmp", TWO[:1])):
        Image.fromarray(painted(*boxes)).save(tmp_path / "val" / name)
    (tmp_path / "val/bad.jpg").write_bytes(b"no picture")
    ran = run("val --out found --starts 32")
    assert ran.code == 0, ran.err
    assert re.search(r"000139.png +80 x 60 +2 ", ran.out)
    assert re.search(r"000285.bmp +80 x 60 +1 ", ran.out)
    assert "2 pictures: 3 boxes with a score of at least 0.0625" in ran.err
    assert "Skipped bad.jpg: " in ran.err
    assert "1 of 3 pictures were skipped." in ran.err
    assert ran.err.count("With only 32 starts") == 1  # what is true of all is said once
    found = json.loads((tmp_path / "found/boxes.json").read_text())
    assert [len(each["boxes"]) for each in found["images"]] == [2, 1]
    assert list(found["skipped"]) == ["bad.jpg"]
    rows = json.loads((tmp_path / "found/coco.json").read_text())
    assert {row["image_id"] for row in rows} == {139, 285}
    drawn = sorted(each.name for each in (tmp_path / "found/pictures").iterdir())
    assert drawn == ["000139.png", "000285.bmp.png"]


def test_what_cannot_be_done_is_one_sentence(run: Callable[[str], Ran], tmp_path: Path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/bad.png").write_bytes(b"no picture")
    (tmp_path / "notes.txt").write_text("no picture")
    for typed, words in (
        ("nothing.jpg", "There is no file at nothing.jpg"),
        ("empty", "There are no pictures in empty"),
        ("broken", "None of the 1 pictures in broken can be read, such as bad.png"),
        ("notes.txt", "notes.txt cannot be read as an image"),
        ("nothing.jpg --threshold 3", "threshold must be a score, from 0 to 1, not 3"),
    ):
        ran = run(typed)
        assert ran.code == 2
        assert words in ran.err
        assert "Traceback" not in ran.err
