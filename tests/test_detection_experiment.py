"""`reproduce detection`: its images, its rows, what it keeps and what it reuses."""

import importlib.util
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rectangles import SIDE, painted, to_rectangles
from test_experiments import BOXES

import proxlearn as px
from proxlearn.common.files import read_rows
from proxlearn.detections.detected import DETECTION
from proxlearn.detections.distinct import DistinctBoxes
from proxlearn.experiments import _shared, detection
from proxlearn.experiments import base as experiments
from proxlearn.experiments._pictures import (
    GENERATED,
    Begun,
    Pictures,
    Pooled,
    problem_of,
    to_test_on,
)
from proxlearn.images.packed import Packed
from proxlearn.measure import detection as metrics
from proxlearn.problems.detection import Detection
from proxlearn.training import judge

PLACES = ((4, 4, 12, 20), (30, 10, 20, 20), (2, 40, 30, 16), (20, 20, 8, 40), (40, 4, 16, 52))
MEASURES = (detection.METHODS, detection.STARTS)
FOLDER = _shared.Folder(Path("nowhere"), device="cpu", progress=False)
MEASURED = [
    "looking, 1 applications",
    "looking, until they stop",
    "pooled, 1 applications",
    "pooled, 2 applications",
    "GOL, pooled, 1 applications",
    "GOL, pooled, 2 applications",
    "FN, 20 boxes",
    "looking longer, 1 applications",
    "looking longer, until they stop",
]
BEGUN = ["near 0.5, unfold", "near 0, unfold", "near 1, pool"]


@pytest.fixture(autouse=True)
def tiny_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection, "QUICK", BOXES)
    monkeypatch.setattr(detection, "find_spec", lambda name: None)  # torchvision trains for long
    for name in ("SHOWN", "PAGE"):
        monkeypatch.setattr(detection, name, 2)
    monkeypatch.setattr(metrics, "TRIALS", 1)
    monkeypatch.setattr(judge, "FEW", 2)


@pytest.fixture
def packed(tmp_path: Path) -> Packed:
    """Five squares with a rectangle each, two of them to test on."""
    files, boxes = [], []
    for k, (x, y, width, height) in enumerate(PLACES):
        file = tmp_path / f"{k}.png"
        Image.fromarray(painted((x, y, width, height), size=(SIDE, SIDE))).save(file)
        files.append(file.read_bytes())
        middle = (x + width / 2, y + height / 2, width, height)
        boxes.append(np.array([middle], np.float32) / SIDE)
    return Packed.of(files, boxes, [f"{k}.png" for k in range(5)], 3, SIDE)


def run(out: Path, **options) -> Path:
    return experiments.run("detection", out, True, "cpu", progress=False, **options)


def test_methods_and_starts_are_measured_and_those_published_are_beside_them(tmp_path: Path):
    rows = read_rows(run(tmp_path) / "rows.jsonl")
    methods, begun = ([r for r in rows if r["measure"] == each] for each in MEASURES)
    assert [r["label"] for r in methods] == MEASURED
    assert [r["label"] for r in begun] == BEGUN
    assert list(dict.fromkeys(r["part"] for r in rows)) == [*detection.parts()]
    assert {(r["images"], r["boxes"]) for r in rows} == {(3, rows[0]["boxes"])}
    assert all(r["seconds"] > 0 and r["wd"] >= 0 for r in rows)
    assert [r["trained_steps"] for r in methods] == [2] * 7 + [3] * 2
    assert begun[0]["ap50"] == methods[1]["ap50"]  # the same operator
    lines = (tmp_path / "table.md").read_text().splitlines()
    (pol,) = (each for each in lines if each.startswith("| POL, published"))
    assert pol.startswith("| POL, published | 0.149 | 0.59 | 0.817 | 0.442 | - |")
    assert sum("published |" in each for each in lines) == 5
    assert {each.name for each in tmp_path.glob("*.png")} == {
        "stages.png", "page.png", "recall.png",
    }  # fmt: skip


def test_images_of_ones_own_are_read_and_those_to_test_on_are_measured_once(
    packed: Packed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(detection, "QUICK", replace(BOXES, images=3))
    data = packed.save(tmp_path / "five.npz")
    folder = run(tmp_path / "out", data=data, only=["looking"])
    row, *_ = read_rows(folder / "rows.jsonl")
    assert (row["images"], row["boxes"]) == (2, 2)
    assert row["command"] == "proxlearn reproduce detection --quick --data five.npz"
    assert "Images are those of five.npz." in (folder / "table.md").read_text()


def test_what_is_measured_is_kept_and_what_is_trained_is_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def interrupted(*_):
        raise KeyboardInterrupt

    sizes = replace(BOXES, begun=BOXES.begun[:1])
    monkeypatch.setattr(detection, "QUICK", sizes)
    monkeypatch.setattr(detection, "draw_looking", lambda *_: None)  # takes seconds
    with monkeypatch.context() as patch:
        patch.setattr(detection, "trained_network", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path)
    before = read_rows(tmp_path / "rows.jsonl")
    assert [r["label"] for r in before if r["measure"] == detection.METHODS] == MEASURED[:6]
    assert not experiments.is_done("detection", tmp_path, True)
    run(tmp_path, resume=True)
    assert experiments.is_done("detection", tmp_path, True)
    monkeypatch.setattr(_shared, "learn", None)  # training again would fail
    monkeypatch.setattr(detection, "learn_fixed_number", None)
    first = read_rows(tmp_path / "rows.jsonl")
    again = read_rows(run(tmp_path, resume=True) / "rows.jsonl")
    assert [r | {"seconds": 0} for r in again] == [r | {"seconds": 0} for r in first]
    monkeypatch.setattr(detection, "QUICK", replace(sizes, fixed={"instances": 3}))
    with pytest.raises(px.ProxlearnError, match="instances = 2, but 3 is asked for"):
        run(tmp_path, resume=True)


def test_parts_run_alone_and_one_that_fails_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_):
        raise ValueError("no memory")

    def of(out: Path) -> list[str]:
        return [r["part"] for r in read_rows(out / "rows.jsonl")]

    with monkeypatch.context() as patch:
        patch.setattr(detection, "trained_network", broken)
        with pytest.raises(px.ProxlearnError, match=r"fn failed: no memory\. .* --only fn"):
            run(tmp_path, only=["fn"])
        with pytest.raises(px.ProxlearnError, match=r"fn failed: no memory\. .* --only fn"):
            run(tmp_path, only=["fn", "gol"])
    assert of(tmp_path) == ["gol"] * 2
    assert "in broken" in (tmp_path / "fn.error").read_text()
    run(tmp_path, only=["fn"])
    assert of(tmp_path) == ["gol"] * 2 + ["fn"]
    table = (tmp_path / "table.md").read_text()
    assert "| GOL, pooled, 2 applications |" in table
    assert "| FN, 20 boxes |" in table
    with pytest.raises(px.ProxlearnError, match="There is no part 'fm'"):
        run(tmp_path, only=["fm"])
    with pytest.raises(px.InputError, match="conic has no parts to run alone"):
        experiments.run("conic", tmp_path, only=["pol"])
    with pytest.raises(px.InputError, match=r"holds rows of .* cannot be added"):
        run(tmp_path, only=["pooled"], data=tmp_path / "other.npz")


def test_weights_are_for_experiments_with_a_backbone(tmp_path: Path):
    with pytest.raises(px.InputError, match="conic has no backbone: leave --weights out"):
        experiments.run("conic", tmp_path, weights="lite0.pth")
    with pytest.raises(px.FileError, match="no weights of a backbone at"):
        run(tmp_path, weights=tmp_path / "missing.pth")


def test_the_backbone_of_all_is_that_of_the_weights(packed: Packed):
    folder = replace(FOLDER, weights=Path("lite0.pth"))
    assert Begun.of(FOLDER) == ("small", None)
    assert Begun.of(folder) == ("efficientnet_lite0", "lite0.pth")
    problem = Detection(packed)
    pooled = Pooled(problem, Begun.of(FOLDER))
    assert pooled.encoder().describe()["backbone"] == "small"
    assert pooled.stores is problem.stores  # images are decoded once


def test_what_was_read_is_said_when_it_is_read(packed: Packed, tmp_path: Path, capsys):
    """Also where nothing can be done with it."""
    (tmp_path / "0.png").write_bytes(packed.content[: packed.offset[1]].tobytes())
    listed = {"images": [{"id": 0, "file_name": "0.png"}], "annotations": []}
    (tmp_path / "instances.json").write_text(json.dumps(listed))
    with pytest.raises(px.InputError, match="None of the 1 images to train on has a box"):
        problem_of(replace(FOLDER, data=tmp_path, progress=True), None)
    assert "1 of 1 images, 1 of them without boxes. 0 of 0 boxes" in capsys.readouterr().err


def test_images_in_parts_are_the_same_as_all_at_once(packed: Packed, monkeypatch):
    problem = Detection(packed)
    seen = []

    def find(images: torch.Tensor) -> DistinctBoxes:
        seen.append(images)
        return metrics.found_by(to_rectangles(), images, starts=4)

    at_once = Pictures.of(problem, "train", 5, "cpu")
    whole = at_once.found(find).boxes
    monkeypatch.setattr("proxlearn.experiments._pictures.AT_ONCE", 2)
    in_parts = Pictures.of(problem, "train", 5, "cpu")
    torch.testing.assert_close(in_parts.found(find).boxes.boxes, whole.boxes)
    torch.testing.assert_close(in_parts.truth.boxes, at_once.truth.boxes)
    assert [len(each) for each in seen] == [5, 2, 2, 1]
    assert torch.equal(torch.cat(seen[1:]), seen[0])
    first, again = (in_parts.by_chance(3)["boxes"] for _ in range(2))
    assert torch.equal(first, again)


def test_as_many_images_are_tested_as_there_are(packed: Packed):
    own, generated = Detection(packed), Detection()
    assert [to_test_on(own, most) for most in (None, 1, 9)] == [2, 1, 2]
    assert [to_test_on(generated, most) for most in (None, 9)] == [GENERATED, 9]
    assert to_test_on(Detection(replace(packed, trained=5)), None) == 5  # none to test on


@pytest.fixture
def measuring(packed: Packed) -> detection.Measuring:
    pictures = Pictures.of(Detection(packed), "test", 2, "cpu")
    return detection.Measuring(pictures.problem, pictures, pictures, BOXES, FOLDER)


def test_an_operator_learns_from_which_score_its_boxes_are_listed(measuring: detection.Measuring):
    operator = to_rectangles(steps=1, seconds=1.0)
    row = measuring.until_stopped("rectangles", operator, detection.METHODS)
    assert (row["precision"], row["recall"], row["ap50"]) == (1.0, 1.0, pytest.approx(1.0))
    kept = operator.provenance[DETECTION]
    assert kept["threshold"] == row["threshold"] > 0
    assert (kept["images"], kept["starts"]) == (2, 8)


def nowhere(images: torch.Tensor) -> DistinctBoxes:
    """A box of a corner in every image."""
    ones = torch.ones(len(images), 1)
    return DistinctBoxes(0.01 * torch.ones(len(images), 1, 4), ones > 0, ones, ones)


def test_where_no_box_is_right_all_are_listed(measuring: detection.Measuring):
    best, listed, _ = measuring.calibrated(nowhere)
    assert (best, listed) == (None, 0.0)
    row = measuring.row("corner", "corner", nowhere, 0.0, 0.0)
    assert (row["listed"], row["recall"], row["ap50"]) == (2, 0.0, 0.0)


@pytest.mark.skipif(
    not importlib.util.find_spec("torchvision"), reason="torchvision is not installed"
)
def test_faster_rcnn_is_measured_at_the_published_scores(
    packed: Packed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = replace(FOLDER, path=tmp_path)
    sizes = replace(BOXES, length={"steps": 1})
    detector: Callable = detection.trained_detector
    first = detector(Detection(packed), sizes, folder).state_dict()
    monkeypatch.setattr(detection, "learn_faster_rcnn", None)
    again = detector(Detection(packed), sizes, replace(folder, resume=True)).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
