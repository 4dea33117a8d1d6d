"""From solutions to distinct boxes: what gathers, what overlaps, shares and scores."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rectangles import SPACE, solutions_at

import proxlearn as px
from proxlearn.answers.solutions import Solutions
from proxlearn.detections import distinct
from proxlearn.detections.distinct import POWER, SAME, DistinctBoxes, distinct_boxes
from proxlearn.images.boxes import overlaps

LEFT, RIGHT = (0.3, 0.3, 0.2, 0.2), (0.8, 0.7, 0.1, 0.3)


def listed(found: DistinctBoxes, k: int = 0) -> list[list[float]]:
    return [[round(each, 4) for each in box] for box in found.boxes[k][found.real[k]].tolist()]


def test_solutions_at_one_place_are_one_box_with_their_share():
    found = distinct_boxes(solutions_at(LEFT, LEFT, RIGHT, LEFT))
    assert listed(found) == [list(LEFT), list(RIGHT)]
    assert found.share[0].tolist() == pytest.approx([0.75, 0.25])
    assert torch.equal(found.score, found.share)  # without a predicted quality


def test_boxes_that_overlap_are_one_and_the_best_stays_with_the_shares_of_all():
    beside = (0.32, 0.3, 0.2, 0.2)  # an overlap of 0.82, too far apart for mean shift
    found = distinct_boxes(solutions_at(LEFT, LEFT, beside, RIGHT))
    assert listed(found) == [list(LEFT), list(RIGHT)]
    assert found.share[0].tolist() == pytest.approx([0.75, 0.25])
    rated = distinct_boxes(solutions_at(LEFT, LEFT, beside, RIGHT, quality=[0.3, 0.3, 0.9, 0.8]))
    assert listed(rated) == [list(beside), list(RIGHT)]
    assert rated.share[0].tolist() == pytest.approx([0.75, 0.25])
    expected = [0.9 * 0.75**POWER, 0.8 * 0.25**POWER]
    assert rated.score[0].tolist() == pytest.approx(expected)


def test_boxes_that_overlap_less_stay_two():
    beside = (0.35, 0.3, 0.2, 0.2)  # an overlap of 0.6
    assert len(listed(distinct_boxes(solutions_at(LEFT, beside)))) == 2


def test_the_quality_of_a_box_is_the_mean_over_its_solutions():
    found = distinct_boxes(solutions_at(LEFT, LEFT, quality=[0.2, 0.6]))
    assert found.score[0].tolist() == pytest.approx([0.4])


def test_a_good_box_that_few_starts_reached_comes_before_a_poor_one():
    found = distinct_boxes(solutions_at(LEFT, LEFT, LEFT, RIGHT, quality=[0.1, 0.1, 0.1, 0.9]))
    assert listed(found) == [list(RIGHT), list(LEFT)]


def test_solutions_outside_and_boxes_without_an_area_count_for_nothing():
    bad = [(2.0, 0.3, 0.2, 0.2), (0.3, 0.3, 0.0, 0.2), (0.3, 0.3, 0.2, -1e-4), (torch.nan,) * 4]
    found = distinct_boxes(solutions_at(LEFT, *bad))
    assert listed(found) == [list(LEFT)]
    assert found.share[0].tolist() == pytest.approx([0.2])
    rated = distinct_boxes(solutions_at(LEFT, *bad, quality=[0.5, 1.0, 1.0, 1.0, torch.nan]))
    assert rated.score[0].tolist() == pytest.approx([0.5 * 0.2**POWER])
    none = distinct_boxes(solutions_at(*bad))
    assert listed(none) == []
    assert none.score.sum() == none.share.sum() == 0


def test_boxes_end_at_the_edge_of_the_picture():
    over = (0.0, 0.5, 0.4, 0.2)  # half of it is outside
    assert listed(distinct_boxes(solutions_at(over))) == [[0.1, 0.5, 0.2, 0.2]]


def test_pictures_do_not_see_each_other(monkeypatch: pytest.MonkeyPatch):
    """However many are worked on at once."""
    x = SPACE.sample(5, 40, generator=torch.Generator().manual_seed(0))
    x[0, :30] = torch.tensor(LEFT)
    every = Solutions.of(SPACE, x, x)
    together = distinct_boxes(every)
    monkeypatch.setattr(distinct, "AT_ONCE", 2 * 40 * 40)
    in_parts = distinct_boxes(every)
    for k in range(5):
        alone = distinct_boxes(every[k])
        for found in (together, in_parts):
            assert listed(found, k) == listed(alone)
            torch.testing.assert_close(found.score[k][found.real[k]], alone.score[0])


@given(st.integers(0, 10_000), st.booleans())
def test_what_is_listed_is_apart_in_order_and_shares_sum_to_the_starts_that_count(
    seed: int, rated: bool
):
    generator = torch.Generator().manual_seed(seed)
    places = torch.rand(5, 4, generator=generator)
    x = places[torch.randint(5, (30,), generator=generator)]
    x = x + 0.05 * torch.rand(30, 1, generator=generator) ** 3
    quality = torch.rand(30, generator=generator).tolist() if rated else None
    solutions = solutions_at(*map(tuple, x.tolist()), quality=quality)
    found = distinct_boxes(solutions)
    boxes, real = found.boxes[0], found.real[0]
    overlap = overlaps(boxes[real], boxes[real]).fill_diagonal_(0)
    assert overlap.numel() == 0 or overlap.max() < SAME
    assert (found.score[0].diff() <= 1e-6).all()
    counts = float(solutions.inside.float().mean())
    assert float(found.share.sum()) == pytest.approx(counts, abs=1e-5)
    assert (found.score[~found.real] == 0).all()
    shuffled = torch.randperm(30, generator=generator)
    again = solutions_at(
        *map(tuple, x[shuffled].tolist()),
        quality=[quality[k] for k in shuffled.tolist()] if quality else None,
    )
    assert int(distinct_boxes(again).real.sum()) == int(real.sum())


def test_a_threshold_leaves_out_what_scores_less():
    found = distinct_boxes(solutions_at(LEFT, LEFT, RIGHT)).above(0.5)
    assert listed(found) == [list(LEFT)]


def test_points_that_are_no_boxes_are_an_error():
    x = torch.rand(1, 3, 2)
    with pytest.raises(px.InputError, match=r"\(cx, cy, w, h\)"):
        distinct_boxes(Solutions.of(px.Box(0.0, 1.0, dim=2), x, x))
