"""Bounds bind: on a box every method finds the minima on its edge, and none leaves it; of an open
box, a window on a problem without bounds, points leave and are seen to have left."""

import copy
import warnings

import pytest
import torch
from making import fixed
from torch import Tensor

import proxlearn as px
from proxlearn.calculus.certify import CERTIFICATES
from proxlearn.networks.coupling import Coupling
from proxlearn.problems.base import Problem
from proxlearn.solvers.descent import Descent
from proxlearn.solvers.swarm.learn import learn_swarm
from proxlearn.training.loss import Loss, Proximal
from proxlearn.training.sampling import Pool

NONE = torch.zeros(1, 0)
SQUARE = px.Box(-1.0, 1.0, dim=2)
HOW = {"starts": 64, "device": "cpu"}
SETTINGS = {"descent": {"steps": 400, "rate": 0.02}, "lbfgs": {}, "multistart": {}}


def single(objective, space: px.Space = SQUARE) -> Problem:
    return Problem.from_function(objective, space, name="single")


def bowl(x: Tensor) -> Tensor:
    """Its minimum, (2, 2), is cut off; the best point of the square is its corner (1, 1)."""
    return (x - 2).square().sum(-1)


def waves(x: Tensor) -> Tensor:
    """Of its 24 minima on [-3, 3]^2, twelve are on the edge."""
    return (3 * x).cos().prod(-1) + 0.05 * x.square().sum(-1)


@pytest.fixture(scope="module")
def trained() -> px.Operator:
    """Of the bowl, whose minimum lies outside: it has to learn to stop at the edge."""
    small = Coupling(blocks=1, width=32, shared=32)
    return px.learn(single(bowl), steps=60, device="cpu", progress=False, architecture=small)


@pytest.mark.parametrize("method", SETTINGS)
def test_a_minimum_that_is_cut_off_gives_the_corner(method: str):
    found = px.solve(single(bowl), None, method, **HOW, **SETTINGS[method])
    assert torch.equal(found.points, torch.ones(1, 64, 2))
    optima = found.polished().unique()
    assert optima.points.tolist() == [[1.0, 1.0]]
    assert optima.certificates == ["boundary"]


@pytest.mark.parametrize("method", ["operator", "safeguarded"])
def test_an_operator_learns_to_rest_in_the_corner(trained: px.Operator, method: str):
    found = px.solve(single(bowl), None, method, operator=trained, **HOW)
    assert found.inside.all()
    torch.testing.assert_close(found.points, torch.ones(1, 64, 2), atol=0.02, rtol=0)
    assert found.polished().unique().certificates == ["boundary"]


def test_a_swarm_finds_the_corner():
    swarm = learn_swarm(single(bowl), steps=30, device="cpu", progress=False)
    found = px.solve(single(bowl), None, "swarm", swarm=swarm, **HOW)
    assert found.inside.all()
    torch.testing.assert_close(found.points, torch.ones(1, 64, 2), atol=0.02, rtol=0)


def test_minima_on_the_edge_are_listed_beside_those_inside():
    space = px.Box(-3.0, 3.0, dim=2)
    axis = torch.linspace(-3, 3, 601, dtype=torch.float64)
    around = torch.nn.functional.pad(
        waves(torch.cartesian_prod(axis, axis)).view(1, 601, 601), (1, 1, 1, 1), value=torch.inf
    )
    lowest = -torch.nn.functional.max_pool2d(-around, 3, stride=1)
    assert (lowest == around[:, 1:-1, 1:-1]).sum() == 24
    optima = px.solve(single(waves, space), None, "lbfgs", starts=512, device="cpu")
    optima = optima.polished().unique(smallest_share=0.0)
    assert len(optima) == 24
    assert optima.certificates.count("boundary") == optima.certificates.count("minimum") == 12
    on_edge = (optima.points.abs() == 3).any(-1)
    assert on_edge.tolist() == [each == "boundary" for each in optima.certificates]


@pytest.mark.parametrize("method", ["descent", "lbfgs"])
def test_from_an_open_box_points_leave_and_that_is_said(method: str):
    with pytest.warns(px.OutsideWarning, match="None of the 64 solutions is inside"):
        found = px.solve(single(bowl, SQUARE.opened), None, method, **HOW, **SETTINGS[method])
    torch.testing.assert_close(found.points, torch.full((1, 64, 2), 2.0), atol=1e-2, rtol=0)
    assert not found.inside.any()


def test_an_operator_whose_points_all_leave_warns():
    away = fixed(single(bowl, SQUARE.opened), lambda x: x + 5)
    with pytest.warns(px.OutsideWarning, match=r"open=False"):
        away.solve(starts=4)


def test_no_warning_where_some_are_inside():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        px.solve(single(lambda x: x[..., 0], SQUARE.opened), None, "descent", steps=3, **HOW)


def test_descent_leaves_an_edge_as_soon_as_downhill_does():
    """While y falls to 0, x is pushed hard against its edge, and then gently away from it."""

    def pushed(x: Tensor) -> Tensor:
        push = torch.where(x[..., 1] > 0, 1e3, -1.0).detach()
        return push * x[..., 0] + x[..., 1]

    start = torch.tensor([[[-1.0, 1.0]]])
    before, after = Descent(rate=0.01).curve(single(pushed), NONE, start, (90, 400))
    assert before.points[0, 0, 0] == -1.0
    assert after.points[0, 0].tolist() == [1.0, -1.0]


@pytest.mark.parametrize("dim", [2, 20])
def test_lbfgs_solves_a_bounded_quadratic_exactly(dim: int):
    """Ill-conditioned and coupled: where a bound holds, the slope points out, and else it is 0."""
    generator = torch.Generator().manual_seed(dim)
    root = torch.randn(dim, dim, generator=generator) + 0.5
    target = 2 * torch.randn(dim, generator=generator)
    problem = single(lambda x: ((x - target) @ root).square().sum(-1), px.Box(-1.0, 1.0, dim=dim))
    found = px.solve(problem, None, "lbfgs", starts=32, device="cpu", steps=200).polished()
    assert {CERTIFICATES[code] for code in found.certificates.flatten()} == {"boundary"}
    spread = (found.points - found.points[:, :1]).abs().max()
    assert spread < 1e-3  # it is convex: there is one minimum


def test_a_valley_that_ends_at_the_edge_is_certified():
    """Almost flat along the valley: what a bound holds back is little, and still held."""
    curved = single(
        lambda x: (x[..., 1] - x[..., 0].square()).square() + 1e-3 * x[..., 0], px.Box(0.5, 2.0, 2)
    )
    optima = px.solve(curved, None, "lbfgs", **HOW).polished().unique()
    assert optima.certificates == ["boundary"]
    assert optima.points[0].tolist() == pytest.approx([0.5**0.5, 0.5], abs=1e-3)


def test_nothing_is_asked_for_outside_a_box():
    """Neither by methods nor by certificates nor by what estimates lam: there is no number."""

    def strict(x: Tensor) -> Tensor:
        assert ((x >= -1) & (x <= 1)).all()
        return bowl(x)

    problem = single(strict)
    for method, settings in SETTINGS.items():
        found = px.solve(problem, None, method, starts=8, device="cpu", **settings)
        assert found.polished().unique().certificates == ["boundary"]
    tiny = Coupling(blocks=1, width=16, shared=16)
    operator = px.learn(problem, steps=20, device="cpu", progress=False, architecture=tiny)
    assert px.solve(problem, None, "safeguarded", operator=operator, **HOW).inside.all()


def test_the_loss_is_least_on_the_edge():
    """Beyond it only the pull is left, which leads back; inside, downhill leads out."""
    problem, loss = single(bowl), Loss(Proximal(1.0), single(bowl))
    x = torch.zeros(1, 3, 2)
    y = torch.tensor([[[0.9, 0.0], [1.5, 0.0], [1.0, 1.0]]])
    terms, slope = loss(y, x, NONE, torch.ones(1))
    assert slope[0, 0, 0] < 0 < slope[0, 1, 0]
    expected = bowl(problem.space.project(y)) + y.square().sum(-1) / 2
    torch.testing.assert_close(terms["loss"], expected.mean())
    opened, _ = Loss(Proximal(1.0), single(bowl, SQUARE.opened))(y, x, NONE, torch.ones(1))
    torch.testing.assert_close(opened["loss"], (bowl(y) + y.square().sum(-1) / 2).mean())


def test_the_pool_keeps_points_on_the_edge():
    problem, seen = single(bowl), []
    outwards = fixed(problem, lambda x: x + 5)

    def loss(y: Tensor, x: Tensor, tau: Tensor, lam: Tensor):
        seen.append((x, y))
        return {"loss": x.mean()}, torch.ones_like(y)

    pool = Pool(problem, 4, 8, 1, (1.0, 1.0), 0, torch.device("cpu"))
    for _ in range(2 * pool.chunks):
        pool.apply(outwards, loss)
        pool.refill()
    kept = pool.x.amax((1, 2)) == 1  # and not drawn afresh
    assert kept.sum() == len(kept) - pool.group  # whose turn is next, and which is
    assert (seen[-1][1] > 1).any()  # the loss sees where they went


def test_an_operator_of_an_older_file_is_bound_by_its_problem(trained: px.Operator):
    old = copy.copy(trained)
    old.space, old.problem = trained.space.opened, None
    bound, free = old.bind(None, single(bowl)), old.bind(None)
    assert bound.space == SQUARE
    assert free.space == SQUARE.opened
    assert px.solve(single(bowl), None, "operator", operator=old, **HOW).inside.all()
