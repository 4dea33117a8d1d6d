"""Metrics of boxes: by hand, by brute force, and by COCO's own code where it is installed."""

import contextlib
import io
from itertools import permutations
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rectangles import SPACE, painted, to_rectangles
from torch import Tensor

import proxlearn as px
from proxlearn.answers.solutions import Solutions
from proxlearn.detections.distinct import DistinctBoxes
from proxlearn.images.boxes import overlaps, real
from proxlearn.images.read import pixels, stretched
from proxlearn.instances.image import Images
from proxlearn.measure.detection import (
    Truth,
    average_precision,
    best_threshold,
    calibrate,
    found_by,
    greedily_matched,
    matched,
    recall_by_area,
    row_of,
    truth_of,
    wd_threshold,
)

A, B, C = (0.2, 0.2, 0.2, 0.2), (0.7, 0.7, 0.4, 0.4), (0.2, 0.8, 0.05, 0.1)
NEAR_A = (0.24, 0.2, 0.2, 0.2)  # overlaps with A by 2/3
Box = tuple[float, ...]


def padded(rows: list[list[Box]]) -> tuple[Tensor, Tensor]:
    """Boxes of every picture, filled up to the same number, and which are real."""
    wide = max(1, *map(len, rows))
    boxes = torch.zeros(len(rows), wide, 4)
    for k, row in enumerate(rows):
        boxes[k, : len(row)] = torch.tensor(row).view(-1, 4)
    return boxes, real(torch.tensor([len(row) for row in rows]), wide)


def truth(*rows: list[Box]) -> Truth:
    return Truth(*padded(list(rows)))


def found(*rows: list[tuple[Box, float]]) -> DistinctBoxes:
    """Boxes with scores, the best of each picture first."""
    boxes, there = padded([[box for box, _ in row] for row in rows])
    score = torch.zeros(there.shape)
    for k, row in enumerate(rows):
        score[k, : len(row)] = torch.tensor([each for _, each in row])
    return DistinctBoxes(boxes, there, torch.zeros_like(score), score)


def anything(seed: int, pictures: int = 12, levels: int = 0) -> tuple[DistinctBoxes, Truth]:
    """True boxes, some found nearly, and some that are wrong; with `levels`, scores are tied."""
    own = torch.Generator().manual_seed(seed)

    def boxes(count: int) -> Tensor:
        sides = 0.02 + 0.5 * torch.rand(pictures, count, 2, generator=own) ** 2
        return torch.cat((torch.rand(pictures, count, 2, generator=own), sides), -1)

    known, there = boxes(6), real(torch.randint(0, 7, (pictures,), generator=own), 6)
    noise = 0.08 * torch.randn(known.shape, generator=own) * known[..., 2:].repeat(1, 1, 2)
    every = torch.cat((known + noise, boxes(4)), 1)
    counts = torch.cat((there, torch.rand(pictures, 4, generator=own) < 0.5), 1)
    score = torch.rand(counts.shape, generator=own)
    score = ((score * levels).ceil() / levels if levels else score) * counts
    order = score.argsort(dim=1, descending=True, stable=True)
    every = every.gather(1, order[..., None].expand(every.shape))
    counts, score = counts.gather(1, order), score.gather(1, order)
    return DistinctBoxes(every, counts, score, score), Truth(known, there)


def test_as_many_as_possible_are_matched():
    """The first box fits two true ones, the second only one of them."""
    shifted = (0.16, 0.2, 0.2, 0.2)
    some, known = found([(A, 0.9), (NEAR_A, 0.5)]), truth([NEAR_A, shifted])
    hits, there = matched(some, known)
    assert hits.all()
    assert there.all()
    best_first = found([(NEAR_A, 0.9), (A, 0.5)])
    assert matched(best_first, truth([A, (0.9, 0.9, 0.1, 0.1)]))[0].sum() == 1


def test_a_true_box_is_matched_once():
    hits, there = matched(found([(A, 0.9), (NEAR_A, 0.8)]), truth([A]))
    assert hits.sum() == there.sum() == 1
    assert greedily_matched(found([(A, 0.9), (NEAR_A, 0.8)]), truth([A])).tolist() == [
        [True, False]
    ]


@given(st.integers(0, 10_000))
def test_the_matching_is_the_largest(seed: int):
    some, known = anything(seed, pictures=2)
    hits, there = matched(some, known)
    assert torch.equal(hits.sum(1), there.sum(1))
    for k in range(2):
        fits = overlaps(some.boxes[k][some.real[k]], known.boxes[k][known.real[k]]) >= 0.5
        fits = fits[fits.any(1)][:, fits.any(0)]
        rows, columns = fits.shape
        if rows > columns:
            fits, rows, columns = fits.mT, columns, rows
        best = max(
            sum(bool(fits[r, c]) for r, c in enumerate(order))
            for order in permutations(range(columns), rows)
        )
        assert int(hits[k].sum()) == best


def test_average_precision_by_hand():
    """By scores: right, wrong, right; of four true boxes. The precision is 1 up to a recall of
    1/4, 2/3 up to 1/2, and then 0."""
    some = found([(A, 0.9), (C, 0.8)], [(B, 0.7)])
    known = truth([A, B], [B, A])
    expected = (26 * 1.0 + 25 * 2 / 3) / 101
    assert average_precision(some, known) == pytest.approx(expected)
    assert average_precision(found([(A, 0.1)], []), truth([A], [])) == pytest.approx(1.0)
    assert average_precision(found([], []), truth([A], [])) == 0.0
    assert average_precision(found([(A, 0.1)]), truth([])) is None


@pytest.mark.parametrize("levels", [0, 5])
@pytest.mark.parametrize("seed", range(3))
def test_average_precision_is_that_of_coco(seed: int, levels: int):
    reason = "pycocotools is not installed"
    coco = pytest.importorskip("pycocotools.coco", reason=reason)
    judge = pytest.importorskip("pycocotools.cocoeval", reason=reason)
    some, known = anything(seed, 40, levels)

    def row(box: Tensor, picture: int, **more: Any) -> dict[str, Any]:
        x, y, width, height = (1000 * box.double()).tolist()
        bbox = [x - width / 2, y - height / 2, width, height]
        return {"image_id": picture, "category_id": 1, "bbox": bbox, **more}

    true = [
        row(box, k, id=k * 100 + n + 1, area=1.0, iscrowd=0)
        for k in range(40)
        for n, box in enumerate(known.boxes[k][known.real[k]])
    ]
    said = [
        row(box, k, score=float(score))
        for k in range(40)
        for box, score in zip(some.boxes[k][some.real[k]], some.score[k])
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        data = coco.COCO()
        pictures = [{"id": k, "width": 1000, "height": 1000} for k in range(40)]
        data.dataset = {"info": {}, "images": pictures, "annotations": true}
        data.dataset["categories"] = [{"id": 1}]
        data.createIndex()
        theirs = judge.COCOeval(data, data.loadRes(said), "bbox")
        theirs.evaluate()
        theirs.accumulate()
    precision = theirs.eval["precision"][0, :, 0, 0, 2].mean()  # IoU 0.5, all areas, 100 boxes
    assert average_precision(some, known) == pytest.approx(precision, abs=1e-9)


def test_recall_by_the_area_of_the_true_box():
    _, there = matched(found([(A, 0.9), (B, 0.8)]), truth([A, B, C]))
    recalls = recall_by_area(there, truth([A, B, C]))  # areas 0.04, 0.16 and 0.005
    assert recalls == {
        "recall@0-1%": 0.0,
        "recall@1-5%": 1.0,
        "recall@5-20%": 1.0,
        "recall@20-100%": None,
    }


@given(st.integers(0, 10_000), st.sampled_from([0, 4]))
def test_the_best_threshold_is_the_best_of_all(seed: int, levels: int):
    some, known = anything(seed, levels=levels)
    best = best_threshold(some, known)
    total, f1 = int(known.real.sum()), []
    for score in some.score[some.real].tolist():
        right = int(greedily_matched(some.above(score), known).sum())
        listed = int(some.above(score).real.sum())
        f1.append(2 * right / (listed + total))
        if score == best.threshold:
            assert (best.precision, best.recall) == pytest.approx((right / listed, right / total))
    assert best.f1 == pytest.approx(max(f1))


def test_where_nothing_is_right_there_is_no_best_threshold():
    with pytest.raises(px.InputError, match="None of the 1 boxes"):
        best_threshold(found([(C, 0.9)]), truth([A]))


def test_a_row_has_all_metrics_of_what_is_listed():
    some, known = found([(A, 0.9), (C, 0.2)], [(B, 0.8)]), truth([A], [B, A])
    row = row_of(some, known, threshold=0.5)
    assert {k: row[k] for k in ("images", "boxes", "listed", "threshold")} == {
        "images": 2,
        "boxes": 3,
        "listed": 2,
        "threshold": 0.5,
    }
    assert (row["precision"], row["recall"], row["f1"]) == pytest.approx((1.0, 2 / 3, 0.8))
    assert row["ap50"] == pytest.approx(average_precision(some, known))
    perfect = row_of(found([(A, 0.9)], [(B, 0.8), (A, 0.7)]), known)
    assert (perfect["wd"], perfect["wp@0.1"], perfect["ap50"]) == (0.0, 1.0, pytest.approx(1.0))
    assert 0 < row["wd"] < 1


def test_for_the_witnessed_metrics_no_picture_should_be_without_a_box():
    some = found([(A, 0.9), (C, 0.1)], [(B, 0.4), (C, 0.1)])
    known = truth([A], [B])
    threshold = wd_threshold(some, known)
    assert 0.1 < threshold <= 0.4
    row = row_of(some, known, 0.5, wd_threshold=threshold)
    assert (row["recall"], row["wd"], row["wd_threshold"]) == (0.5, 0.0, threshold)
    assert row_of(some, known, 0.5)["wd"] > 0.5
    assert wd_threshold(found([], []), known) == 0


def test_pictures_without_boxes_found_or_true_count_in_the_witnessed_metrics():
    """Two empty sets do not differ; an empty and another one differ by the diameter."""
    for some, known, wd, wp in (
        (found([], []), truth([], []), 0.0, 1.0),
        (found([(A, 0.9)], []), truth([A], []), 0.0, 1.0),
        (found([], []), truth([A], []), 1.0, 0.5),
        (found([(A, 0.9)], [(B, 0.9)]), truth([], []), 2.0, 0.0),
    ):
        row = row_of(some, known)
        assert (row["wd"], row["wp@0.1"]) == pytest.approx((wd, wp))
    no_columns = Solutions(SPACE, *(torch.zeros(2, 0, 4),) * 2, torch.zeros(2, 0).bool())
    some = Solutions.of(SPACE, *(torch.tensor([[A], [B]]),) * 2)
    for one, other, wd in ((no_columns, some, 2.0), (no_columns, no_columns, 0.0)):
        seen = px.metrics.witnessed(one, other, SPACE.sample(5))
        assert seen.divergence.tolist() == [wd, wd]


def test_an_infinite_threshold_lets_all_solutions_count_without_values():
    some, known = (Solutions.of(SPACE, *(SPACE.sample(2, 3),) * 2) for _ in range(2))
    witnesses = SPACE.sample(7)
    all_count = px.metrics.witnessed(some, known, witnesses, threshold=float("inf"))
    assert torch.equal(
        all_count.divergence, px.metrics.witnessed(some, known, witnesses).divergence
    )
    with pytest.raises(px.InputError, match="A threshold needs values"):
        px.metrics.witnessed(some, known, witnesses, threshold=1.0)


class Rectangles(px.Problem):
    """White rectangles on black, each picture with one or two; what is seen is the picture."""

    name = "rectangles"
    space = SPACE
    instances = Images(64)
    corners = ((10, 10, 20, 30), (50, 5, 12, 12))

    def sample(self, count, split, generator):
        which = torch.randint(1, 3, (count,), generator=generator)
        return {"which": which}

    def look_up(self, drawn):
        from PIL import Image

        some = [Image.fromarray(painted(*self.corners[:k])) for k in drawn["which"].tolist()]
        images = torch.stack([pixels(stretched(each, 64)).float() / 255 for each in some])
        sides = torch.tensor([80.0, 60.0, 80.0, 60.0])
        corner, size = torch.tensor(self.corners).split(2, -1)
        boxes = torch.cat((corner + size / 2, size), -1) / sides
        return {"image": images, "boxes": boxes.expand(len(some), 2, 4), "count": drawn["which"]}

    def observe(self, tau):
        return tau["image"]

    def known(self, tau):
        return tau["boxes"], real(tau["count"], 2)


def test_an_operator_is_calibrated_on_training_pictures():
    operator, problem = to_rectangles(), Rectangles()
    best = calibrate(operator, problem, images=6, starts=64)
    assert (best.precision, best.recall, best.f1) == (1.0, 1.0, 1.0)
    assert 0 < best.threshold <= 0.5
    known = operator.provenance["detection"]
    assert known == {
        "threshold": best.threshold, "precision": 1.0, "recall": 1.0, "f1": 1.0, "images": 6,
        "starts": 64,
    }  # fmt: skip
    found = px.detect(painted(*Rectangles.corners), operator, starts=64)
    assert (found.threshold, len(found)) == (best.threshold, 2)


def test_boxes_of_many_pictures_are_those_of_each(monkeypatch: pytest.MonkeyPatch):
    operator, problem = to_rectangles(), Rectangles()
    tau = problem.look_up({"which": torch.tensor([1, 2, 2, 1, 2])})
    whole = found_by(operator, tau["image"], starts=32)
    monkeypatch.setattr("proxlearn.measure.detection.AT_ONCE", 2)
    in_parts = found_by(operator, tau["image"], starts=32)
    for name in ("boxes", "real", "score"):
        assert torch.equal(getattr(whole, name), getattr(in_parts, name))
    row = row_of(whole, truth_of(problem, tau))
    assert (row["precision"], row["recall"], row["ap50"]) == (1.0, 1.0, pytest.approx(1.0))


def test_a_problem_without_known_solutions_has_no_true_boxes():
    with pytest.raises(px.InputError, match="'conic' knows no solutions"):
        truth_of(px.problem("conic"), torch.zeros(1, 6))
