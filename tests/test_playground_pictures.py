"""The picture to drop, in the playground: in a real browser, beside what Python says."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _browsing import SETTLED
from playing import CLOSE, made
from rectangles import SPACE, ToRectangles, painted

import proxlearn as px
from proxlearn.answers.solutions import Solutions
from proxlearn.detections.detected import DETECTION, in_pixels, solved
from proxlearn.detections.distinct import distinct_boxes
from proxlearn.instances.image import Images
from proxlearn.playground.pictures import scenes
from proxlearn.playground.shown import own
from proxlearn.problems.detection import Detection

pytestmark = pytest.mark.whole
SIDE, THRESHOLD = 48, 0.16


@pytest.fixture(scope="module")
def operator() -> px.Operator:
    """One that moves and rates boxes in a way of its own, and is applied three times: where one
    stops when ratings do not rise, a rounding of these may decide."""
    sizes = {"kind": "boxes", "mixed": 8, "channels": 4, "width": 16, "blocks": 1}
    about = {"training": {"applications": 3}, DETECTION: {"threshold": THRESHOLD}}
    how = {"applications": 3, "precision": "fp32", "provenance": about}
    made = px.Operator.untrained(Detection(side=SIDE), sizes, **how)
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(0.03 * torch.randn(weight.shape, generator=draw))
    return made


@pytest.fixture(scope="module")
def looking(tmp_path_factory: pytest.TempPathFactory, operator: px.Operator) -> Path:
    return made(tmp_path_factory.mktemp("looking"), [own(operator, "mine")])


def test_the_boxes_of_a_picture_are_those_that_python_finds(
    looking: Path, operator: px.Operator, visit: Callable[..., Any]
):
    page = visit((looking / "index.html").as_uri())
    x = operator.space.sample(1, 150, generator=torch.Generator().manual_seed(0))
    for k, image in enumerate(scenes(SIDE)):
        told = page.evaluate("([k, x]) => App.answer([k], x)", [k, x.flatten().tolist()])
        found = solved(operator.instances.batch(image), operator, x[0])
        points = torch.tensor(told["points"]).view_as(found.points)
        assert points.isclose(found.points, rtol=0, atol=CLOSE).all()
        listed = [
            each
            for each in in_pixels(distinct_boxes(found), 0, SIDE, SIDE)
            if each.score >= THRESHOLD
        ]
        assert listed
        assert len(told["optima"]) == len(listed)
        for one, other in zip(told["optima"], listed):
            sides = (other.x, other.y, other.width, other.height)
            np.testing.assert_allclose(one["pixels"], sides, atol=CLOSE * SIDE)
            assert one["value"] == pytest.approx(other.score, abs=CLOSE)
            assert one["share"] == pytest.approx(other.share, abs=1e-6)


def test_a_picture_of_ones_own_is_taken_from_a_file(
    looking: Path, tmp_path: Path, visit: Callable[..., Any]
):
    image = pytest.importorskip("PIL.Image")
    page = visit((looking / "index.html").as_uri())
    image.fromarray(painted((100, 30, 60, 40), size=(120, 240))).save(tmp_path / "one.png")
    page.set_input_files("#file", tmp_path / "one.png")
    page.wait_for_function("App.state.tau[0] === 3")
    page.wait_for_function(SETTLED)
    assert page.input_value("#preset") == "one.png"
    assert page.evaluate("[Pictures.picture([3]).width, Pictures.picture([3]).height]") == [
        240,
        120,
    ]
    seen = torch.tensor(page.evaluate("[...Pictures.observed([3])]")).view(3, SIDE, SIDE)
    white = (seen[0] > 0.5).nonzero().float()
    low, high = white.amin(0) / SIDE, (white.amax(0) + 1) / SIDE
    expected = torch.tensor([[30 / 120, 100 / 240], [70 / 120, 160 / 240]])
    assert (torch.stack((low, high)) - expected).abs().max() < 1.5 / SIDE
    (tmp_path / "notes.png").write_text("no picture")
    page.set_input_files("#file", tmp_path / "notes.png")
    page.wait_for_function("document.getElementById('status').textContent.includes('no picture')")


# Halfway to a place at every application, by an engine that needs no operator.
RISING = """async ([x, goals]) => {
    const engine = { apply: async (x, dim, stale, quality) => x.map((each, k) => {
        const goal = goals[Math.round(10 * x[k - k % dim]) % goals.length];
        const far = goal.reduce((sum, to, i) => sum + (x[k - k % dim + i] - to) ** 2, 0);
        quality[Math.floor(k / dim)] = 1 / (1 + 40 * far);
        return each + 0.5 * (goal[k % dim] - each);
    }) };
    const about = { dim: 4, applications: 100 };
    const found = await Flow.rising(engine, about, Float32Array.from(x), () => false, () => {});
    return [[...found.at(-1)], [...found.quality], found.length];
}"""


class Halfway(ToRectangles):
    """The same in Python."""

    rates = True
    goals = ((0.2, 0.7, 0.3, 0.3), (0.6, 0.4, 0.2, 0.5), (0.5, 0.5, 0.1, 0.1))

    def encode(self, observed):
        return observed.new_tensor(self.goals).expand(len(observed), -1, -1)

    def rated(self, x, prepared):
        own = (1 + x) / 2  # from unit coordinates
        which = (10 * own[..., :1]).add(0.5).floor().long() % len(self.goals)
        goal = prepared.gather(1, which.expand(x.shape))
        quality = 1 / (1 + 40 * (own - goal).square().sum(-1))
        return own + 0.5 * (goal - own) + (own + 0.5 * (goal - own)) - 1, quality.logit()


def test_boxes_stop_when_their_rating_does_not_rise_as_in_python(
    looking: Path, visit: Callable[..., Any]
):
    page = visit((looking / "index.html").as_uri(), "() => true")
    operator = px.Operator(SPACE, Images(SIDE), Halfway(), lam=1.0, precision="fp32")
    x = operator.space.sample(1, 90, generator=torch.Generator().manual_seed(2))
    found = solved(torch.zeros(1, 3, SIDE, SIDE), operator, x[0])
    points, quality, length = page.evaluate(RISING, [x.flatten().tolist(), Halfway.goals])
    same = torch.tensor(points).view(90, 4).isclose(found.points[0], rtol=0, atol=CLOSE).all(-1)
    assert same.float().mean() > 0.97
    assert found.quality is not None
    assert torch.tensor(quality)[same].isclose(found.quality[0][same], atol=CLOSE).all()
    assert 5 < length < 40


DISTINCT = "([points, quality]) => Boxes.distinct(points, quality)"


def test_boxes_are_told_apart_as_in_python(looking: Path, visit: Callable[..., Any]):
    """Crowds of boxes, some of which overlap, and boxes strewn anywhere."""
    page = visit((looking / "index.html").as_uri(), "() => true")
    draw, space = torch.Generator().manual_seed(4), px.Box(0.0, 1.0, dim=4)
    for k in range(6):
        middles = space.sample(1, 6, generator=draw) * 0.6 + 0.2
        which = torch.randint(6, (120,), generator=draw)
        crowds = middles[:, which] + 0.004 * k * torch.randn(1, 120, 4, generator=draw)
        points = space.project(torch.cat((crowds, space.sample(1, 20, generator=draw)), 1))
        quality = torch.rand(1, 140, generator=draw) if k % 2 else None
        solutions = Solutions.of(space, points, points)
        found = distinct_boxes(replace(solutions, quality=quality))
        rating = None if quality is None else quality[0].tolist()
        told = page.evaluate(DISTINCT, [points[0].tolist(), rating])
        real = found.real[0]
        scores = torch.tensor([each["value"] for each in told])
        assert len(scores) == int(real.sum())
        torch.testing.assert_close(scores, found.score[0][real], atol=1e-5, rtol=0)
