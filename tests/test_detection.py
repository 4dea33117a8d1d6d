"""The problem of boxes in images: its objective, its data and its training."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from making import grey_images
from torch import Tensor

import proxlearn as px
from proxlearn.common import batch as batches
from proxlearn.figures.draw import draw
from proxlearn.images.packed import Packed
from proxlearn.networks.boxes import Boxes
from proxlearn.problems.base import drawn, held_out, sampled
from proxlearn.problems.detection import Detection

SIDE = 16


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def image_with(rows: list[list[list[float]]], side: int = 4) -> dict[str, Tensor]:
    """Grey images with these boxes."""
    boxes = torch.full((len(rows), max(1, *map(len, rows)), 4), 7.0)  # padding is never looked at
    for k, own in enumerate(rows):
        boxes[k, : len(own)] = torch.tensor(own).view(-1, 4)
    count = torch.tensor([len(own) for own in rows])
    return {"image": torch.full((len(rows), 3, side, side), 0.5), "boxes": boxes, "count": count}


@pytest.fixture
def packed() -> Packed:
    return grey_images(SIDE)


def greys(tau: dict[str, Tensor]) -> list[int]:
    """Which of the images these are."""
    return (tau["image"][:, 0, SIDE // 2, SIDE // 2] * 255 / 8).round().int().tolist()


def test_the_objective_is_the_distance_to_the_nearest_true_box():
    tau = image_with([[[0.5, 0.5, 0.2, 0.2], [0.1, 0.1, 0.2, 0.2]], [[0.3, 0.3, 0.3, 0.3]], []])
    x = torch.tensor([[0.5, 0.5, 0.2, 0.2], [0.2, 0.1, 0.2, 0.3]]).expand(3, 2, 4)
    values = Detection().objective(x, tau)
    torch.testing.assert_close(values, torch.tensor([[0.0, 0.2], [0.6, 0.4], [0.0, 0.0]]))


def test_images_without_boxes_pull_nowhere():
    tau = image_with([[], [[0.5, 0.5, 0.2, 0.2]]])
    x = torch.rand(2, 9, 4, generator=generator()).requires_grad_()
    (slope,) = torch.autograd.grad(Detection().objective(x, tau).sum(), x)
    assert (slope[0] == 0).all()
    assert (slope[1].abs() == 1).all()
    assert torch.equal(Detection().polished(x, tau)[0], x[0])


def test_quality_is_the_overlap_with_the_best_true_box():
    tau = image_with([[[0.5, 0.5, 0.4, 0.4], [0.1, 0.1, 0.2, 0.2]], []])
    x = torch.tensor(
        [[0.5, 0.5, 0.4, 0.4], [0.7, 0.5, 0.4, 0.4], [0.1, 0.1, 0.1, 0.2], [1, 1, 0, 0]]
    )
    quality = Detection().quality(x.expand(2, 4, 4), tau)
    torch.testing.assert_close(quality[0], torch.tensor([1.0, 1 / 3, 0.5, 0.0]))
    assert (quality[1] == 0).all()


def test_known_solutions_are_the_real_boxes():
    tau = image_with([[[0.5, 0.5, 0.4, 0.4]], [[0.1, 0.1, 0.2, 0.2], [0.3, 0.3, 0.1, 0.1]], []])
    problem = Detection()
    known, real = problem.known(tau)
    assert real.tolist() == [[True, False], [True, True], [False, False]]
    truth = problem.truth(tau)
    assert [len(each) for each in truth] == [1, 2, 0]
    assert all(torch.equal(known[k][real[k]], each) for k, each in enumerate(truth))


def test_points_begin_around_a_box_by_shares_of_its_sides():
    problem, box = Detection(), torch.tensor([0.5, 0.5, 0.02, 0.2])
    known = box.expand(1, 20_000, 4)
    noise = torch.randn(known.shape, generator=generator())
    for far, share in ((0.0, 0.03), (1.0, 0.9)):
        begun = problem.around(known, noise, torch.full((1, 20_000), far))
        assert problem.space.contains(begun).all()
        spread = (begun - box)[0, :, :2].std(0) / box[2:]
        torch.testing.assert_close(spread, torch.full((2,), share), rtol=0.03, atol=0)
    sides = problem.around(known, noise, torch.zeros(1, 20_000))[0, :, 2:].std(0) / box[2:]
    torch.testing.assert_close(sides, torch.full((2,), 0.03), rtol=0.03, atol=0)


def test_all_optima_of_generated_images_are_found_polished_and_certified():
    problem = Detection()
    tau = held_out(problem, 3)
    found = px.solve(problem, tau, "descent", starts=150, steps=5, device="cpu").polished()
    assert found.certificates is not None
    for k, count in enumerate(tau["count"].tolist()):
        assert len(found[k].unique()) == count


def test_an_operator_sees_the_image_alone():
    problem = Detection(side=32)
    tau = sampled(problem, 2, "train", generator())
    assert set(tau) == {"image", "boxes", "count"}
    assert torch.equal(problem.observe(tau), problem.instances.batch(tau["image"]))
    assert problem.is_whole(tau)
    assert not problem.is_whole(tau["image"])
    assert problem.instances.describe() == {"kind": "image", "side": 32}


def test_of_an_image_alone_solutions_are_drawn_and_only_an_operator_finds_them(tmp_path: Path):
    problem, image = Detection(side=16), torch.rand(3, 16, 16)
    operator = px.Operator.untrained(problem, Boxes(mixed=8, channels=8, width=16, blocks=1))
    found = px.solve(problem, image, operator=operator, starts=5, steps=2)
    assert found.plot(tmp_path / "of_image.png").is_file()
    assert draw(problem, image, found, tmp_path / "given.png").is_file()
    with pytest.raises(px.InputError, match=r"have no values: .* needs more than an image"):
        found.polished()
    with pytest.raises(px.InputError, match=r"needs an operator.*train one"):
        px.solve(problem, image)
    for how in ({"method": "lbfgs"}, {"method": "safeguarded", "operator": operator}):
        with pytest.raises(px.InputError, match=r"more than an image .*: give whole instances, as"):
            px.solve(problem, image, **how)


def test_what_stands_for_an_instance_in_a_pool_is_small(packed: Packed):
    """Less than a tenth of the image itself."""
    for problem, side in ((Detection(side=128), 128), (Detection(packed, 64), 64)):
        own = drawn(problem, 1, "train", generator())
        held = sum(each.numel() * each.element_size() for each in batches.leaves(own))
        assert held < 0.1 * 3 * side * side * 4


def test_data_are_split_and_those_to_test_on_are_seen_as_they_are(packed: Packed):
    problem = Detection(packed)
    tau = sampled(problem, 10, "test", generator())
    assert sorted(greys(tau)) == list(range(20, 30))  # each once
    assert sorted(greys(sampled(problem, 25, "test", generator()))[:20]) == sorted(
        [*range(20, 30)] * 2
    )
    for k, grey in enumerate(greys(tau)):
        torch.testing.assert_close(tau["image"][k], torch.full((3, SIDE, SIDE), 8 * grey / 255))
        assert tau["count"][k] == grey % 4
        own = torch.from_numpy(packed.boxes_of(grey))
        torch.testing.assert_close(tau["boxes"][k, : grey % 4], own)


def test_data_to_train_on_are_seen_in_views_that_differ(packed: Packed):
    problem = Detection(packed)
    own = drawn(problem, 400, "train", generator())
    assert set(own["which"].tolist()) == set(range(20))
    tau = problem.look_up(own)
    assert batches.structure(tau) == batches.structure(sampled(problem, 1, "test", generator()))
    first = tau["image"][own["which"] == 5]
    assert len({each.numpy().tobytes() for each in first}) == len(first) > 5
    assert (tau["count"] <= own["which"] % 4).all()
    assert (tau["count"] < own["which"] % 4).any()  # some boxes are outside what is seen


def test_data_without_images_to_test_on_are_tested_on_all(packed: Packed):
    whole = Detection(Packed(**vars(packed) | {"trained": 30}))
    assert sorted(greys(sampled(whole, 30, "test", generator()))) == list(range(30))


def test_a_packed_file_can_be_given_by_its_path(packed: Packed, tmp_path: Path):
    path = packed.save(tmp_path / "packed.npz")
    tau = held_out(Detection(str(path), side=8), 2)
    assert tau["image"].shape == (2, 3, 8, 8)
    with pytest.raises(px.ProxlearnError, match="There is no file at"):
        Detection(tmp_path / "none.npz")


@pytest.mark.usefixtures("any_type")
@pytest.mark.parametrize("side", [0, 1, -8, 37, 2.5, "a", True, float("nan")])
def test_a_side_that_images_cannot_have_is_an_error(side: Any):
    with pytest.raises(px.InputError, match="side must be a"):
        Detection(side=side)


@pytest.mark.usefixtures("any_type")
@pytest.mark.parametrize("data", [3, ["packed.npz"], {}])
def test_data_that_are_no_images_are_an_error(data: Any):
    with pytest.raises(px.InputError, match="data must be packed images"):
        Detection(data)


def test_what_is_no_packed_file_says_how_to_make_one(tmp_path: Path):
    (tmp_path / "annotations.json").write_text("{}")
    for path in (tmp_path, tmp_path / "annotations.json"):
        with pytest.raises(px.FileError, match=r"no file of packed images .* read_coco\(path\)"):
            Detection(path)


@pytest.mark.parametrize(("of", "kept"), [("train", range(20, 30)), ("test", range(20))])
def test_data_without_any_box_to_train_or_to_test_on_are_an_error(
    packed: Packed, of: str, kept: range
):
    files = [packed.content[a:b].tobytes() for a, b in pairwise(packed.offset)]
    boxes = [packed.boxes_of(k)[: 4 * (k in kept)] for k in range(30)]
    with pytest.raises(px.InputError, match=f"None of the .* images to {of} on has a box"):
        Detection(Packed.of(files, boxes, packed.names, 20, SIDE))


@pytest.mark.parametrize("sampling", ["pool", "unfold"])
def test_a_training_on_data_is_resumed_bit_for_bit(
    packed: Packed,
    tiny: dict[str, Any],
    tmp_path: Path,
    interrupt_at,
    same_weights,
    report_each_step,
    sampling: str,
):
    settings = tiny | {"steps": 8, "sampling": sampling}
    straight = px.learn(Detection(packed), **settings)
    px.learn(Detection(packed), out=tmp_path, watch=interrupt_at(3), **settings)
    resumed = px.learn(Detection(packed), out=tmp_path, resume=True, **settings)
    assert same_weights(straight, resumed)
    solved = resumed.solve(torch.rand(3, SIDE, SIDE), starts=5)
    assert solved.points.shape == (1, 5, 4)
    assert solved.values is None


def test_no_step_waits_for_the_device(packed: Packed, monkeypatch: pytest.MonkeyPatch):
    """Nothing that a captured step does reads a number back."""
    problems = (Detection(packed), Detection(side=16))
    for problem in problems:
        sampled(problem, 1, "train", generator())  # images are decoded once, before any step

    def read_back(*_: Any) -> None:
        raise AssertionError("a number was read back")

    for name in ("item", "tolist", "__bool__", "__int__", "__float__", "nonzero", "cpu"):
        monkeypatch.setattr(Tensor, name, read_back)
    for problem in problems:
        tau = problem.look_up(problem.sample(3, "train", generator()))
        x = problem.space.sample(3, 5, generator=generator())
        problem.objective(x, tau)
        problem.quality(x, tau)
        known, _ = problem.known(tau)
        problem.around(known[:, [0] * 5], x, x[..., 0])
