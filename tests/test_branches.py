"""Branches over tau: families whose bifurcations are known in closed form."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

import proxlearn as px
from proxlearn.branches.follow import WIDTH
from proxlearn.cli.main import app

HOW = {"samples": 4, "starts": 12, "device": "cpu"}
LINE = px.Box(-2.0, 2.0, dim=1)
ANY = px.Box(-3.0, 3.0, dim=1)
EXACT = 10 * WIDTH


def family(function, space: px.Space = LINE, parameters: px.Box = ANY) -> px.Problem:
    return px.Problem.from_function(function, space, parameters)


@pytest.fixture(scope="module")
def folds() -> px.Branches:
    """`x^4/4 - x^2/2 + tau x`: minima where x^3 - x + tau = 0, with folds at tau = +-2/sqrt(27)."""

    def tilted(x: Tensor, tau: Tensor) -> Tensor:
        return x[..., 0] ** 4 / 4 - x[..., 0] ** 2 / 2 + tau[..., 0] * x[..., 0]

    return px.trace(family(tilted), [-1.0], [1.0], **HOW)


@pytest.fixture(scope="module")
def pitchfork() -> px.Branches:
    """`x^4/4 + tau x^2/2` from tau = -1 to 1: minima at +-sqrt(-tau), then at 0."""

    def fork(x: Tensor, tau: Tensor) -> Tensor:
        return x[..., 0] ** 4 / 4 + tau[..., 0] * x[..., 0] ** 2 / 2

    return px.trace(family(fork), [-1.0], [1.0], **HOW)


def test_folds_are_where_they_are(folds: px.Branches):
    birth, death = folds.events
    fold, half = 2 / math.sqrt(27), 1 / math.sqrt(3)
    assert (birth.kind, birth.how, death.kind, death.how) == ("birth", "fold", "death", "fold")
    assert birth.s == pytest.approx((1 - fold) / 2, abs=EXACT)
    assert death.s == pytest.approx((1 + fold) / 2, abs=EXACT)
    assert birth.tau == pytest.approx([-fold], abs=2 * EXACT)
    assert birth.point == pytest.approx([-half], abs=0.01)
    assert death.point == pytest.approx([half], abs=0.01)
    assert folds.doubts == []
    right, left = folds
    assert (birth.branches, death.branches) == ((1,), (0,))
    assert float(right.s[0]) == 0
    assert float(left.s[-1]) == 1


def test_branches_are_minima_all_the_way(folds: px.Branches):
    for branch in folds:
        tau, x = 2 * branch.s - 1, branch.points[:, 0]
        assert (x**3 - x + tau).abs().max() < 1e-6
        assert torch.allclose(branch.curvature, 3 * x**2 - 1)
        assert torch.allclose(branch.slopes[:, 0], -2 / (3 * x**2 - 1))  # dtau/ds is 2
        assert (branch.s.diff() > 0).all()


def test_a_pitchfork_is_a_merge_and_a_split_the_other_way(pitchfork: px.Branches):
    (merge,) = pitchfork.events
    assert (merge.kind, merge.how, merge.branches) == ("merge", "pitchfork", (0, 1, 2))
    assert merge.s == pytest.approx(0.5, abs=EXACT)
    assert merge.point == pytest.approx([0.0], abs=0.01)
    problem = pitchfork.path.problem
    (split,) = px.trace(problem, [1.0], [-1.0], **HOW).events
    assert (split.kind, split.branches) == ("split", (0, 1, 2))
    assert split.s == pytest.approx(0.5, abs=EXACT)


def test_the_elbow_flips_at_full_reach():
    """Elbow up and elbow down become one where the target is as far as the arm is long."""

    def arm(x: Tensor, tau: Tensor) -> Tensor:
        first, second = x[..., :2], x[..., 2:]  # directions of the two links
        return (first + 0.8 * second - tau).square().sum(-1)

    reach = px.Box(-3.0, 3.0, dim=2)
    found = px.trace(family(arm, px.Circles(2), reach), [1.2, 0.5], [2.0, 0.9], **HOW)
    (flip,) = found.events
    assert (flip.kind, len(found.at(0.0)), len(found.at(1.0))) == ("merge", 2, 1)
    there = torch.tensor([1.2, 0.5]) + flip.s * torch.tensor([0.8, 0.4])
    assert float(there.norm()) == pytest.approx(1.8, abs=1e-4)
    straight = there / there.norm()
    assert torch.tensor(flip.point).view(2, 2) == pytest.approx(straight.expand(2, 2), abs=0.02)


def test_a_summit_that_another_covers_vanishes_suddenly():
    """Of two hills the lower one is swallowed where the other is as high at its summit."""
    low, high = [0.3, 0.5, 0.2, 0.2, 0.2, 0.0], [0.7, 0.5, 0.6, 0.1, 0.1, 0.0]
    nearer = [0.35, *high[1:]]
    found = px.trace(px.problem("peaks"), low + high, low + nearer, "lbfgs", **HOW)
    (death,) = found.events
    assert (death.kind, death.how) == ("death", "sudden")
    assert death.point == pytest.approx([0.3, 0.5], abs=1e-6)
    away = 0.1 * math.sqrt(0.8 / 0.6 - 1)  # 0.8 / (1 + (away / 0.1)^2) = 0.6
    assert death.s == pytest.approx((0.4 - away) / 0.35, abs=EXACT)


def test_an_optimum_may_leave_an_open_box_and_stays_on_the_edge_of_a_closed_one():
    def well(x: Tensor, tau: Tensor) -> Tensor:
        return (x - tau).square().sum(-1)

    window, walls = px.Box(-1.0, 1.0, dim=1, open=True), px.Box(-1.0, 1.0, dim=1)
    (left,) = px.trace(family(well, window), [0.0], [2.0], **HOW).events
    assert (left.kind, left.how) == ("death", "edge")
    assert left.s == pytest.approx(0.5, abs=2e-3)  # what counts as inside has a margin
    stays = px.trace(family(well, walls), [0.0], [2.0], **HOW)
    assert (len(stays), stays.events, float(stays.at(1.0)[0, 0])) == (1, [], 1.0)
    assert stays[0].slopes[-1].tolist() == [0.0]


def test_the_optima_at_any_s_are_those_of_the_branches(folds: px.Branches):
    at = folds.at(0.45)
    assert len(at) == 2
    x = at[:, 0]
    assert (x**3 - x + (2 * 0.45 - 1)).abs().max() < 1e-9


def test_what_cannot_be_followed_is_said():
    conic = px.trace(
        px.problem("conic"), [0.3, 0, 0.5, 0, 0, -1], [0.5, 0, 0.5, 0, 0, -1], "lbfgs", **HOW
    )
    assert len(conic) == 0
    assert "continuum" in conic.doubts[0]
    kinked = px.trace(family(lambda x, tau: (x - tau).abs().sum(-1)), [0.1], [0.7], **HOW)
    assert len(kinked) == 0
    assert any("kinks" in each for each in kinked.doubts)


@pytest.mark.parametrize(
    ("name", "ends", "said"),
    [
        (
            "peaks",
            ([[0.5, 0.5, 0.5, 0.1, 0.1, 1.0]], [[0.5, 0.5, 0.5, 0.1, 0.1, 1.0]] * 3),
            "different sizes",
        ),
        ("conic", ([[0.0] * 6] * 2, [0.0] * 6), "one instance"),
    ],
)
def test_errors_are_sentences(name: str, ends: tuple, said: str):
    with pytest.raises(px.InputError, match=said):
        px.trace(px.problem(name), *ends, **HOW)


def test_what_is_discrete_is_not_followed():
    cuts = family(lambda x, tau: x.square().sum(-1))
    cuts.discrete = True
    with pytest.raises(px.InputError, match="discrete"):
        px.trace(cuts, [0.0], [1.0], **HOW)


def test_optima_are_differentiated_through():
    """Of Himmelblau's function, by both constants: against finite differences of solving anew."""

    def himmelblau(x: Tensor, tau: Tensor) -> Tensor:
        (u, v), (a, b) = x.unbind(-1), tau.unbind(-1)
        return (u**2 + v - a) ** 2 + (u + v**2 - b) ** 2

    problem = family(himmelblau, px.Box(-5.0, 5.0, dim=2), px.Box([9.0, 5.0], [13.0, 9.0]))
    x = px.polish(problem, [11.0, 7.0], torch.tensor([[[2.9, 2.1], [-2.8, 3.1]]]).double())

    def optima(tau: Tensor) -> Tensor:
        return px.differentiable(problem, tau, x)

    tau = torch.tensor([11.0, 7.0])
    slopes = torch.autograd.functional.jacobian(optima, tau)[0]  # (2 optima, 2, 2 constants)
    for k in range(2):
        step = 0.125 * torch.eye(2)[k]  # exact in single precision
        ahead, behind = (px.polish(problem, (tau + s * step).tolist(), x) for s in (1, -1))
        assert torch.allclose(slopes[..., k].double(), (ahead - behind)[0] / 0.25, atol=2e-3)
    assert torch.equal(optima(tau), x)


def test_derivatives_keep_to_bounds_and_manifolds():
    def well(x: Tensor, tau: Tensor) -> Tensor:
        return (x - tau).square().sum(-1)

    plane = px.Box(-3.0, 3.0, dim=2)
    box, circle = px.Box(-1.0, 1.0, dim=2), px.Circles(1)
    tau = torch.tensor([2.0, 0.5], requires_grad=True)
    at = px.differentiable(family(well, box, plane), tau, torch.tensor([[[1.0, 0.5]]]))
    (slope,) = torch.autograd.grad(at.sum(), tau)
    assert slope.tolist() == pytest.approx([0.0, 1.0])  # the first is held by its bound
    tau = torch.tensor([2.0, 0.0], requires_grad=True)
    at = px.differentiable(family(well, circle, plane), tau, torch.tensor([[[1.0, 0.0]]]))
    (slope,) = torch.autograd.grad(at[..., 1].sum(), tau)
    assert slope.tolist() == pytest.approx([0.0, 0.5])  # tau / |tau| turns by 1 / |tau|


def test_what_has_no_derivative_is_an_error(pitchfork: px.Branches):
    problem = pitchfork.path.problem
    with pytest.raises(px.InputError, match="no curvature"):
        px.differentiable(problem, torch.tensor([0.0]), torch.zeros(1, 1, 1))
    with pytest.raises(px.InputError, match="no optimum"):
        px.differentiable(problem, torch.tensor([1.0]), torch.full((1, 1, 1), 0.5))


def test_pictures_and_files(folds: px.Branches, pitchfork: px.Branches, tmp_path: Path):
    folds.plot(tmp_path / "folds.png")
    assert (tmp_path / "folds.png").stat().st_size > 5000
    pitchfork.plot(tmp_path / "fork.svg")
    assert "1 merge" in (tmp_path / "fork.svg").read_text()
    told = json.loads(folds.save(tmp_path / "folds.json").read_text())
    assert [each["kind"] for each in told["events"]] == ["birth", "death"]
    assert len(told["branches"]) == 2
    assert "1 birth, 1 death" in repr(folds)


def test_the_command(tmp_path: Path):
    file = tmp_path / "fork.py"
    file.write_text(
        "import proxlearn as px\n\n\n"
        "class Fork(px.Problem):\n"
        "    name, space, parameters = 'fork', px.Box(-2, 2, dim=1), px.Box(-1, 1, dim=1)\n\n"
        "    def objective(self, x, tau):\n"
        "        return x[..., 0] ** 4 / 4 + tau[:, None, 0] * x[..., 0] ** 2 / 2\n"
    )
    ends = ["--from", "-1", "--to", "1", "--samples", "5", "--starts", "16", "--device", "cpu"]
    out = ["--out", str(tmp_path / "a.png"), "--json", str(tmp_path / "a.json")]
    done = CliRunner().invoke(app, ["trace", str(file), *ends, *out])
    assert done.exit_code == 0, done.output
    assert "merge" in done.output
    assert json.loads((tmp_path / "a.json").read_text())["events"][0]["kind"] == "merge"
    assert (tmp_path / "a.png").is_file()
