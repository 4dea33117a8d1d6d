"""A training that judges itself: the card of an operator, and what is said of a poor one."""

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from making import fixed
from torch import Tensor
from typer.testing import CliRunner

import proxlearn as px
from proxlearn.cli.main import app
from proxlearn.common.files import read_rows
from proxlearn.errors import PoorOperatorWarning
from proxlearn.networks.boxes import Boxes
from proxlearn.operators.bound_operator import Bound
from proxlearn.operators.operator import words_of
from proxlearn.problems.base import held_out
from proxlearn.problems.detection import Detection
from proxlearn.training import judge as judging
from proxlearn.training.judge import Glances, _doubt, at_optimum, judge

pytestmark = [pytest.mark.whole, pytest.mark.judged]
TAU = torch.tensor([[1.0, 1.0]])


@pytest.fixture
def square() -> px.Problem:
    """Four wells at (+-1, +-1), whatever tau."""
    return px.Problem.from_function(
        lambda x, tau: (x.square() - 1).square().sum(-1) + 0 * tau[..., 0],
        px.Box(-2.0, 2.0, dim=2),
        px.Box(0.5, 1.5, dim=2),
        name="square",
    )


def to_the_wells(x: Tensor) -> Tensor:
    return torch.where(x > 0, 1.0, -1.0)


def test_an_operator_that_finds_all_has_a_perfect_card(square: px.Problem):
    card = judge(fixed(square, to_the_wells), square, seconds=1e3)
    assert card is not None
    assert card["instances"] == 8
    for name in ("at_optimum", "at_optimum_polished", "at_optimum_lbfgs", "found"):
        assert card[name] == 1
    assert card["false"] == 0
    assert card["doubtful"] is None


def test_the_card_has_the_witnessed_precision_where_the_truth_is_known(
    square: px.Problem, monkeypatch: pytest.MonkeyPatch
):
    wells = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 2)
    monkeypatch.setattr(square, "truth", lambda tau: [wells] * len(tau), raising=False)
    for goes, expected in ((to_the_wells, 1.0), (lambda x: torch.ones_like(x), 0.25)):
        card = judge(fixed(square, goes), square, seconds=0.0)
        assert card is not None
        assert card["wp"] == pytest.approx(expected, abs=0.08)


def test_one_that_goes_to_a_single_well_misses_three(square: px.Problem):
    card = judge(fixed(square, lambda x: torch.ones_like(x)), square, seconds=0.0)
    assert card is not None
    assert card["instances"] == 3  # a few, however little time there is
    assert card["at_optimum"] == 1
    assert card["found"] == 0.25
    assert "25% of the optima" in card["doubtful"]


def test_a_few_instances_are_judged_unless_they_take_long(square: px.Problem, monkeypatch):
    seen = []
    judge(fixed(square, to_the_wells), square, seconds=0.0, show=lambda *each: seen.append(each))
    assert seen == [(1, 3), (2, 3)]
    monkeypatch.setattr(judging, "PATIENCE", 0.0)
    card = judge(fixed(square, to_the_wells), square, seconds=0.0)
    assert card is not None
    assert card["instances"] == 1


def test_one_that_goes_nowhere_is_doubtful(square: px.Problem):
    card = judge(fixed(square, lambda x: x), square, seconds=0.0)
    assert card is not None
    assert card["at_optimum"] < 0.2
    assert card["false"] > 10
    assert card["doubtful"]


def test_of_a_picture_no_method_is_advised_that_needs_its_boxes():
    problem = Detection(side=16)
    tiny = Boxes(mixed=8, channels=8, width=16, blocks=1)
    card = judge(px.Operator.untrained(problem, tiny), problem, seconds=0.0)
    assert card is not None
    assert "on 3 held-out instances, it calls" in card["doubtful"]
    assert "lbfgs" not in card["doubtful"]


def test_who_says_how_good_its_points_are_is_judged_by_that(monkeypatch: pytest.MonkeyPatch):
    """Of two boxes a point ends in one, with others that are nowhere."""
    problem = Detection(side=16)
    tau = held_out(problem, 1) | {"count": torch.tensor([2])}
    best, nowhere = tau["boxes"][0, 0], torch.tensor([0.9, 0.9, 0.01, 0.01])
    said = torch.tensor([[0.9, 0.5, 0.8, 0.1]])

    def found(*_) -> px.Solutions:
        points = torch.stack((best, best, nowhere, best))[None]
        return replace(px.Solutions.of(problem.space, points, points), quality=said)

    operator = px.Operator.untrained(problem, Boxes(mixed=8, channels=8, width=16, blocks=1))
    monkeypatch.setattr(judging, "held_out", lambda _, count, *__: batches_of(tau, count))
    monkeypatch.setattr(Bound, "run", found)
    card = judge(operator, problem, seconds=0.0)
    assert card is not None
    assert card["called_good"] == pytest.approx(0.75)
    assert card["rightly"] == pytest.approx(2 / 3)
    assert card["found"] == pytest.approx(0.5)  # the other box has no good point
    assert "it calls 75% of its points good, 67% of these are, and 50% of" in card["doubtful"]
    assert "good, 67% of these rightly, 50% of the optima" in words_of(card)
    assert _doubt(card | {"found": 0.6}, operator, problem) is None
    assert _doubt(card | {"found": 0.6, "rightly": 0.59}, operator, problem)
    said.zero_()
    card = judge(operator, problem, seconds=0.0)
    assert card is not None
    assert (card["called_good"], card["rightly"]) == (0, 0)


def batches_of(tau: dict[str, Tensor], count: int) -> dict[str, Tensor]:
    return {name: each.expand(count, *each.shape[1:]) for name, each in tau.items()}


def test_near_is_near_enough_and_a_saddle_is_not(square: px.Problem):
    points = torch.tensor([[[1.0, 1.0], [1.01, -1.0], [1.3, 1.0], [0.0, 1.0], [0.0, 0.0]]])
    found = px.Solutions.of(square.space, points, points).with_values(square, TAU)
    assert at_optimum(found, found.polished()).tolist() == [[True, True, False, False, False]]


def test_looks_in_between_cost_next_to_nothing(square: px.Problem):
    glances = Glances(fixed(square, to_the_wells), square)
    assert glances.look(elapsed=1e3) == 1
    assert 0 < glances.spent < 5
    assert glances.look(elapsed=1e-3) is None


def test_a_training_that_is_too_short_says_so(wells: px.Problem, tiny: dict, tmp_path: Path):
    with pytest.warns(PoorOperatorWarning, match="was trained for 3 steps"):
        operator = px.learn(wells, steps=3, out=tmp_path, **tiny)
    assert operator.doubtful
    assert "do not trust it" in repr(operator)
    loaded = px.load(tmp_path / "operator.safetensors", "cpu")
    assert loaded.card == operator.card
    with pytest.warns(PoorOperatorWarning):
        loaded.solve([1.0, 0.7], 8)


def test_a_good_one_is_not_warned_of(wells: px.Problem, tiny: dict, tmp_path: Path):
    more = tiny | {"architecture": None, "instances": 64, "points": 8}
    with warnings.catch_warnings():
        warnings.simplefilter("error", PoorOperatorWarning)
        operator = px.learn(wells, steps=600, out=tmp_path, **more)
    assert operator.card is not None
    assert operator.card["found"] >= 0.75
    assert any("at_optimum" in row for row in read_rows(tmp_path / "training.jsonl"))


def test_the_command_line_says_it_by_its_status_too(tmp_path: Path):
    short = ["--steps", "2", "--instances", "12", "--points", "4", "--device", "cpu"]
    out = str(tmp_path / "run")
    done = CliRunner().invoke(app, ["train", "cosine", *short, "--out", out])
    assert done.exit_code == 3
    assert "do not trust it" in " ".join(done.output.split())
    solved = CliRunner().invoke(
        app, ["solve", "cosine", "--operator", out, "--device", "cpu", "--starts", "16"]
    )
    assert "Do not trust this" in solved.output
