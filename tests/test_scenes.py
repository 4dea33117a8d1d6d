"""Boxes, generated images, and views of images: boxes stay where things are."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from proxlearn.images import boxes, scenes, views

SIDE = 96


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_boxes(count: int, number: int, seed: int = 0) -> Tensor:
    low, high = torch.rand(2, count, number, 2, generator=generator(seed)).sort(0).values
    return boxes.from_corners(torch.cat((low, high), -1))


def test_corners_are_taken_apart_and_put_together():
    box = torch.tensor([0.5, 0.25, 1.0, 0.5])
    assert boxes.corners(box).tolist() == [0.0, 0.0, 1.0, 0.5]
    every = random_boxes(3, 7)
    torch.testing.assert_close(boxes.from_corners(boxes.corners(every)), every)


def test_overlaps_of_boxes_that_are_easy_to_see():
    one = torch.tensor([[0.25, 0.25, 0.5, 0.5]])
    others = torch.tensor(
        [[0.25, 0.25, 0.5, 0.5], [0.5, 0.25, 0.5, 0.5], [0.75, 0.75, 0.5, 0.5], [0.25, 0.25, 0, 0]]
        + [[0.25, 0.25, 0.25, 0.25]]
    )
    expected = torch.tensor([[1.0, 1 / 3, 0.0, 0.0, 1 / 4]])
    torch.testing.assert_close(boxes.overlaps(one, others), expected)
    nothing = torch.zeros(1, 4)
    assert boxes.overlaps(nothing, nothing).item() == 0


def test_overlaps_are_those_of_areas_counted_in_pixels():
    a, b = random_boxes(4, 3, 1), random_boxes(4, 5, 2)
    unit = (torch.arange(400) + 0.5) / 400

    def filled(every: Tensor) -> Tensor:
        low_x, low_y, high_x, high_y = boxes.corners(every)[..., None, None].unbind(2)
        across = (unit > low_x) & (unit < high_x)
        return (across & (unit[:, None] > low_y) & (unit[:, None] < high_y)).flatten(2)

    some, others = filled(a)[:, :, None], filled(b)[:, None]
    expected = (some & others).sum(-1) / (some | others).sum(-1)
    torch.testing.assert_close(boxes.overlaps(a, b), expected, atol=0.02, rtol=0)


def test_rows_that_are_kept_come_first_in_their_order():
    rows = torch.arange(12.0).view(2, 3, 2)
    kept = torch.tensor([[False, True, True], [True, False, False]])
    expected = [[[2.0, 3.0], [4.0, 5.0], [0.0, 0.0]], [[6.0, 7.0], [0.0, 0.0], [0.0, 0.0]]]
    assert boxes.in_front(kept, rows).tolist() == expected


def drawn(count: int = 400, seed: int = 0) -> tuple[dict[str, Tensor], Tensor]:
    """Scenes, and which of their boxes are real."""
    made = scenes.scenes(count, generator(seed))
    return made, boxes.real(made["count"], scenes.MOST)


def test_scenes_have_one_to_ten_boxes_of_all_sizes_inside_the_image():
    made, real = drawn()
    assert made["count"].min() == 1
    assert made["count"].max() == scenes.MOST
    low, high = boxes.corners(made["boxes"])[real].split(2, -1)
    assert low.min() >= -1e-6
    assert high.max() <= 1 + 1e-6
    area = boxes.areas(made["boxes"])[real]
    assert area.min() > 0.9 * scenes.SMALLEST
    assert area.max() <= scenes.LARGEST + 1e-6
    assert (area < 0.01).double().mean() > 0.1
    assert (area > 0.1).double().mean() > 0.1
    assert (made["boxes"][~real] == 0).all()


def test_shapes_hide_little_of_each_other():
    made, real = drawn()
    shared = boxes.shared_areas(made["boxes"], made["boxes"])
    area = boxes.areas(made["boxes"])
    smaller = torch.minimum(area[:, :, None], area[:, None])
    pairs = real[:, :, None] & real[:, None] & ~torch.eye(scenes.MOST, dtype=torch.bool)
    assert (shared / smaller.clamp(min=1e-9))[pairs].max() < scenes.HIDDEN + 1e-4


def test_scenes_are_those_of_their_generator():
    first, second, other = (drawn(5, seed)[0] for seed in (0, 0, 1))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["boxes"], other["boxes"])


@pytest.mark.parametrize("kind", range(len(scenes.KINDS)), ids=lambda k: scenes.KINDS[k].__name__)
def test_a_shape_fills_exactly_its_box(kind: int):
    """What is painted differs from the same scene without shapes there, and nowhere else."""
    made, _ = drawn(40)
    alone = made | {
        "kind": torch.full_like(made["kind"], kind),
        "count": torch.ones_like(made["count"]),
        "colours": 1 - made["ground"].round()[:, None].expand_as(made["colours"]),
    }
    side, empty = 256, made | {"count": torch.zeros_like(made["count"])}
    changed = (scenes.painted(alone, side) - scenes.painted(empty, side)).abs().amax(1) > 0.02
    for seen, box in zip(changed, made["boxes"][:, 0]):
        rows, columns = seen.any(1).nonzero(), seen.any(0).nonzero()
        found = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        expected = boxes.corners(box) * side
        torch.testing.assert_close(torch.stack(found).float(), expected, atol=2.5, rtol=0)
        share = seen.float().mean() / boxes.areas(box)
        assert 0.2 < share < 1.2


def test_shapes_can_be_told_from_the_ground():
    made, real = drawn()
    unlike = (made["colours"] - made["ground"][:, None]).norm(dim=-1)[real]
    assert unlike.min() > 4 * scenes.ROUGH
    assert unlike.mean() > 0.7


def test_images_are_in_range_and_each_its_own():
    made, _ = drawn(6)
    images = scenes.painted(made, SIDE)
    assert images.shape == (6, 3, SIDE, SIDE)
    assert images.min() >= 0
    assert images.max() <= 1
    alone = scenes.painted({name: each[3:4] for name, each in made.items()}, SIDE)
    torch.testing.assert_close(alone[0], images[3])


def marked(box: Tensor) -> Tensor:
    """Images (i, 3, SIDE, SIDE) that are white in a box (i, 4) and grey elsewhere."""
    unit = (torch.arange(SIDE) + 0.5) / SIDE
    low_x, low_y, high_x, high_y = boxes.corners(box)[..., None, None].unbind(1)
    across = (unit > low_x) & (unit < high_x)
    inside = across & (unit[:, None] > low_y) & (unit[:, None] < high_y)
    return (0.5 + 0.5 * inside.float())[:, None].repeat(1, 3, 1, 1)


def test_a_plain_view_shows_the_image_as_it_is():
    images = torch.rand(3, 3, SIDE, SIDE, generator=generator())
    view = views.plain(3, images.device)
    torch.testing.assert_close(views.seen(images, view), images, atol=1e-4, rtol=0)
    every = random_boxes(3, 5)
    kept, count = views.boxes_seen(every, torch.tensor([5, 2, 0]), view["window"])
    assert count.tolist() == [5, 2, 0]
    torch.testing.assert_close(kept[0], every[0])
    assert (kept[2] == 0).all()


def test_boxes_follow_their_images():
    """In random views, what is white in an image that is white in a box is white in its box."""
    box = random_boxes(300, 1, 3).clamp(0.02, 0.98)
    view = views.views(300, generator())
    plain = view | {"contrast": torch.ones(300, 1), "shift": torch.zeros(300, 3)}
    white = views.seen(marked(box[:, 0]), plain)[:, 0] > 0.75
    kept, count = views.boxes_seen(box, torch.ones(300, dtype=torch.int64), view["window"])
    assert 100 < count.sum() < 300
    for seen, own in zip(white[count > 0], kept[count > 0, 0]):
        low_x, low_y, high_x, high_y = (boxes.corners(own) * SIDE).tolist()
        if min(high_x - low_x, high_y - low_y) < 4:
            continue  # too thin to be seen in pixels
        rows, columns = seen.any(1).nonzero(), seen.any(0).nonzero()
        found = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        expected = torch.tensor([low_x, low_y, high_x, high_y])
        torch.testing.assert_close(torch.stack(found).float(), expected, atol=2.0, rtol=0)


def test_a_window_crops_and_mirrors_by_hand():
    every = torch.tensor([[[0.5, 0.5, 0.2, 0.2], [0.25, 0.5, 0.1, 0.1], [0.9, 0.9, 0.1, 0.1]]])
    right = torch.tensor([[0.55, 0.0, 0.5, 1.0]])
    kept, count = views.boxes_seen(every, torch.tensor([3]), right)
    assert count.tolist() == [1]  # of the first box only a quarter is seen
    torch.testing.assert_close(kept[0, 0], torch.tensor([0.7, 0.9, 0.2, 0.1]))
    most = torch.tensor([[0.45, 0.0, 0.5, 1.0]])
    kept, count = views.boxes_seen(every, torch.tensor([3]), most)
    assert count.tolist() == [2]
    torch.testing.assert_close(kept[0, 0], torch.tensor([0.15, 0.5, 0.3, 0.2]))
    mirror = torch.tensor([[1.0, 0.0, -1.0, 1.0]])
    kept, count = views.boxes_seen(every, torch.tensor([2]), mirror)
    torch.testing.assert_close(kept[0, :2, 0], torch.tensor([0.5, 0.75]))
    assert count.tolist() == [2]


@given(st.integers(0, 10_000))
def test_views_show_most_of_an_image_and_boxes_stay_inside(seed: int):
    view = views.views(8, generator(seed))
    width, height = view["window"][:, 2].abs(), view["window"][:, 3]
    slack = 1.2
    assert views.ZOOM[0] / slack < min(width.min(), height.min())
    assert max(width.max(), height.max()) < views.ZOOM[1] * slack
    left = view["window"][:, 0] + view["window"][:, 2].clamp(max=0)
    inside = (left >= -1e-6) & (left + width <= 1 + 1e-6)
    around = (left <= 1e-6) & (left + width >= 1 - 1e-6)
    assert (inside | around).all()
    kept, count = views.boxes_seen(random_boxes(8, 6, seed), torch.full((8,), 6), view["window"])
    real = boxes.real(count, 6)
    corners = boxes.corners(kept)[real]
    assert ((corners >= -1e-5) & (corners <= 1 + 1e-5)).all()
    assert (boxes.areas(kept)[real] > 0).all()
    assert (kept[~real] == 0).all()


def test_half_of_the_views_are_mirrored_and_colours_change_a_little():
    view = views.views(2_000, generator())
    assert 0.45 < (view["window"][:, 2] < 0).double().mean() < 0.55
    grey = torch.full((2_000, 3, 4, 4), 0.5)
    mean = views.seen(grey, view).mean((2, 3)) - 0.5
    assert 0.08 < mean.abs().max() <= views.SHIFT + 1e-6
    assert mean.mean().abs() < 0.01
    assert (mean[:, 0] - mean[:, 1]).abs().mean() > 0.03  # each colour by itself
