"""`px.detect`: what may be given, boxes in the pixels of the picture, scores, doubts, files."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from rectangles import painted, to_rectangles

import proxlearn as px
from proxlearn.answers.solutions import Solutions
from proxlearn.detections import coco
from proxlearn.detections.answer import Box
from proxlearn.detections.detected import BY_QUALITY, BY_SHARE, DETECTION
from proxlearn.detections.distinct import POWER
from proxlearn.detections.picture import picture
from proxlearn.detections.starts import SMALLEST, starting_boxes
from proxlearn.operators.bound_operator import Bound

TWO = ((10, 10, 20, 30), (50, 5, 12, 12))  # x, y, width, height in a picture of 80 x 60
PIXEL = 1.5  # what stretching to 64 x 64 may cost


def boxes_of(found: px.Detections) -> list[list[float]]:
    return sorted(each.bbox for each in found.boxes)


def assert_two(found: Any) -> None:
    assert isinstance(found, px.Detections)
    np.testing.assert_allclose(boxes_of(found), sorted(map(list, TWO)), atol=PIXEL)


@pytest.fixture
def operator() -> px.Operator:
    return to_rectangles()


def test_a_picture_may_be_given_in_many_forms(operator: px.Operator, tmp_path: Path):
    array = painted(*TWO)
    Image.fromarray(array).save(tmp_path / "two.png")
    tensor = torch.from_numpy(array)
    forms = [
        array,
        array / 255,
        (array / 255).astype(np.float32),
        array.transpose(2, 0, 1),
        tensor,
        tensor.permute(2, 0, 1),
        tensor.float() / 255,
        array.astype(np.int64),
        array.astype(np.uint16),
        tensor.to(torch.uint16),
        Image.fromarray(array),
        Image.fromarray(array[..., 0]),  # grey
        tmp_path / "two.png",
        str(tmp_path / "two.png"),
    ]
    every = [px.detect(each, operator) for each in forms]
    for found in every:
        assert_two(found)
        assert (found.width, found.height) == (80, 60)
    assert {found.name for found in every} == {None, "two.png"}
    assert len({str(boxes_of(found)) for found in every}) == 1


def test_boxes_are_in_the_pixels_of_the_picture_whatever_its_size(operator: px.Operator):
    large = painted((300, 100, 150, 200), size=(400, 1000))
    (box,) = px.detect(large, operator).boxes
    np.testing.assert_allclose(box.bbox, (300, 100, 150, 200), atol=1000 / 64)
    assert box.share == box.score == pytest.approx(1.0)


def test_a_list_and_a_folder_give_a_list(operator: px.Operator, tmp_path: Path):
    for name, boxes in (("b.png", TWO), ("a.jpg", TWO[:1])):
        Image.fromarray(painted(*boxes)).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no picture")
    found = px.detect(tmp_path, operator)
    assert [each.name for each in found] == ["a.jpg", "b.png"]
    assert [len(each) for each in found] == [1, 2]
    listed = px.detect([tmp_path / "b.png", painted()], operator)
    assert boxes_of(listed[0]) == boxes_of(found[1])
    assert isinstance(px.detect([painted(*TWO)], operator), list)
    assert px.detect([], operator) == []


def test_what_cannot_be_read_in_a_folder_is_left_out_and_named(
    operator: px.Operator, tmp_path: Path
):
    (tmp_path / "bad.png").write_bytes(b"no picture")
    with pytest.raises(px.FileError, match=r"None of the 1 pictures .* such as bad.png"):
        px.detect(tmp_path, operator)
    Image.fromarray(painted(*TWO)).save(tmp_path / "two.png")
    with pytest.warns(UserWarning, match=r"1 of 2 pictures were skipped: bad.png"):
        (found,) = px.detect(tmp_path, operator)
    assert_two(found)


def test_the_boxes_of_a_picture_do_not_depend_on_the_others(operator: px.Operator):
    pictures = [painted(*TWO), painted(), painted(TWO[1])] * 8  # more than are solved at once
    every = px.detect(pictures, operator, starts=64)
    for k in (0, 2, 23):
        assert every[k].boxes == px.detect(pictures[k], operator, starts=64).boxes
    assert px.detect(pictures[1], operator, seed=1).below != every[1].below


def test_without_any_quality_the_score_is_the_share_of_the_starts(operator: px.Operator):
    found = px.detect(painted(*TWO), operator)
    assert all(each.score == each.share for each in found.boxes)
    assert sum(each.share for each in found.boxes) == pytest.approx(1.0)
    assert found.threshold == BY_SHARE
    assert px.detect(painted(*TWO), operator, starts=16).threshold == 2 / 16


def test_a_predicted_quality_is_part_of_the_score(
    operator: px.Operator, monkeypatch: pytest.MonkeyPatch
):
    run = Bound.run

    def rated(self: Bound, *given: Any, **more: Any) -> Solutions:
        found = run(self, *given, **more)
        left = found.points[..., 0] < 0.5
        return replace(found, quality=torch.where(left, 0.9, 0.2))

    monkeypatch.setattr(Bound, "run", rated)
    found = px.detect(painted(*TWO), operator)
    assert found.threshold == BY_QUALITY
    assert len(found.boxes) == len(found.below) == 1
    best, other = found.boxes[0], found.below[0]
    assert best.x < 30 < other.x
    assert best.score == pytest.approx(0.9 * best.share**POWER)
    assert "1 other scored less" in str(found)


def test_the_threshold_is_the_operators_own_or_the_one_asked_for(operator: px.Operator):
    assert "the default" in px.detect(painted(*TWO), operator).summary()
    own = to_rectangles(**{DETECTION: {"threshold": 0.5}})
    found = px.detect(painted(*TWO), own)
    assert (len(found.boxes), len(found.below), found.threshold) == (1, 1, 0.5)
    assert "suited its training images best" in found.summary()
    asked = px.detect(painted(*TWO), own, threshold=0.0)
    assert (len(asked.boxes), asked.threshold) == (2, 0.0)
    assert "as asked for" in asked.summary()


def test_doubts(operator: px.Operator):
    assert px.detect(painted(*TWO), operator).doubts == []

    def doubt(image: np.ndarray, own: px.Operator = operator, **how: Any) -> str:
        (said,) = px.detect(image, own, **how).doubts
        return said

    assert "With only 20 starts" in doubt(painted(*TWO), starts=20)
    assert "ended where no other did" in doubt(painted())  # of nothing, nothing is found
    assert "5.0 times as long" in doubt(painted((10, 5, 60, 30), size=(40, 200)))
    assert "only 30 x 20 pixels" in doubt(painted((3, 3, 20, 14), size=(20, 30)))
    poor = to_rectangles(card={"doubtful": "it was hardly trained"})
    assert doubt(painted(*TWO), poor) == "The operator is not to be trusted: it was hardly trained."


def test_it_reads_as_a_table_and_is_saved_as_json(operator: px.Operator, tmp_path: Path):
    found = px.detect(painted(*TWO), operator)
    text = str(found)
    assert text.startswith("Found 2 boxes with a score of at least 0.02")
    assert len([line for line in text.splitlines() if line.endswith("%")]) == 2
    saved = json.loads(found.save(tmp_path / "found.json").read_text())
    assert (saved["width"], saved["height"], saved["name"]) == (80, 60, None)
    assert [each["box"] for each in saved["boxes"]] == [each.bbox for each in found.boxes]
    assert set(saved["boxes"][0]) == {"box", "share", "score"}
    nothing = px.detect(painted(), operator, threshold=1.0)
    assert str(nothing).startswith("Found no boxes with a score of at least 1, as asked for")


def test_the_picture_has_a_frame_around_every_box(operator: px.Operator, tmp_path: Path):
    array = painted(*TWO)
    found = px.detect(array, operator)
    for ending in ("png", "jpg"):
        path = picture(Image.fromarray(array), found, tmp_path / f"new/two.{ending}")
        drawn = np.asarray(Image.open(path).convert("HSV"))
        assert drawn.shape[:2] == (360, 480)  # small ones are enlarged
        colourful = drawn[..., 1] > 100
        for x, y, width, height in TWO:
            across = colourful[:, 6 * (x + width // 2)]
            for edge in (6 * y, 6 * (y + height)):
                assert across[edge - 9 : edge + 9].any()
            assert not across[6 * y + 20 : 6 * (y + height) - 20].any()
    with pytest.raises(px.InputError, match=r"Cannot draw to .*\.svg"):
        picture(Image.fromarray(array), found, tmp_path / "two.svg")


def found_in(name: str | None, *scores: float) -> px.Detections:
    boxes = [Box(1.0, 2.0, 3.0, 4.0, 0.5, score) for score in scores]
    return px.Detections(boxes[:1], boxes[1:], 0.3, "as asked for", 9, 9, name, [])


def test_cocos_results_have_boxes_of_all_scores_and_the_numbers_of_pictures():
    rows = coco.results([found_in("000000000139.jpg", 0.9, 0.1), found_in("7.png", 0.8)])
    assert [(row["image_id"], row["score"]) for row in rows] == [(139, 0.9), (139, 0.1), (7, 0.8)]
    assert rows[0] == {
        "image_id": 139, "category_id": 1, "bbox": [1.0, 2.0, 3.0, 4.0], "score": 0.9
    }  # fmt: skip
    named = coco.results([found_in("street.jpg", 0.9), found_in("7.png", 0.8)])
    assert [row["image_id"] for row in named] == [1, 2]
    many = coco.results([found_in("1.jpg", *torch.linspace(1, 0, 150).tolist())])
    assert len(many) == 100


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (np.zeros((60, 80), np.uint8), r"an array \(60, 80\); expected the path"),
        (np.zeros((60, 80, 4), np.uint8), r"an array \(60, 80, 4\)"),
        (np.zeros((0, 80, 3), np.uint8), r"an array \(0, 80, 3\)"),
        (np.full((6, 8, 3), 300), "array of int64 from 300 to 300"),
        (np.full((6, 8, 3), 300, np.uint16), "array of uint16 from 300 to 300"),
        (np.ones((6, 8, 3), bool), "array of bool from 1 to 1"),
        (np.zeros((6, 8, 3), complex), "its numbers are complex; they must be real"),
        (np.full((6, 8, 3), 1.5), "array of float64 from 1.5 to 1.5"),
        (np.full((6, 8, 3), np.nan), "from nan to nan"),
        (None, "The picture must be the path .* not None"),
        ({"a": 1}, "The picture must be the path .* not {'a': 1}"),
        ("missing.jpg", r"There is no file at missing.jpg"),
    ],
)
def test_what_is_no_picture_is_an_error_in_a_sentence(
    image: Any, words: str, operator: px.Operator
):
    with pytest.raises(px.ProxlearnError, match=words):
        px.detect(image, operator)
    with pytest.raises(px.ProxlearnError, match=words):
        px.detect([image], operator)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"starts": 0}, "starts must be a positive number"),
        ({"threshold": 2}, "threshold must be a score, from 0 to 1, not 2"),
        ({"threshold": float("nan")}, "threshold must be a score, from 0 to 1, not nan"),
        ({"operator": px.pretrained("conic", "cpu")}, "does not look at images"),
    ],
)
def test_settings_that_cannot_be_used_are_errors(
    how: dict[str, Any], words: str, operator: px.Operator
):
    with pytest.raises(px.InputError, match=words):
        px.detect(painted(*TWO), **{"operator": operator} | how)


def test_an_empty_folder_is_an_error(operator: px.Operator, tmp_path: Path):
    with pytest.raises(px.FileError, match="There are no pictures in"):
        px.detect(tmp_path, operator)


def test_without_an_operator_the_shipped_one_is_used_or_asked_for(
    monkeypatch: pytest.MonkeyPatch, operator: px.Operator
):
    monkeypatch.setattr("proxlearn.operators.shipped.available", dict)
    with pytest.raises(px.InputError, match="proxlearn train detection"):
        px.detect(painted(*TWO))
    monkeypatch.setattr("proxlearn.detections.detect.pretrained", lambda name, device: operator)
    assert_two(px.detect(painted(*TWO)))


def test_starts_have_sides_of_every_order_of_magnitude():
    boxes = starting_boxes(to_rectangles(), 4000, 0)
    assert torch.equal(boxes, starting_boxes(to_rectangles(), 4000, 0))
    sides = boxes[:, 2:].log() / math.log(SMALLEST)  # from 1 to 0
    assert 0 <= sides.min() < 0.01 < 0.99 < sides.max() <= 1.0001
    for each in (boxes[:, :2], sides):  # evenly
        assert each.mean(0).sub(0.5).abs().max() < 0.002
    assert not torch.equal(boxes, starting_boxes(to_rectangles(), 4000, 1))
