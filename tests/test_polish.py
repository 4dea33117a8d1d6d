"""Polish: to the optimum beside a solution, in the space, never uphill nor along a continuum."""

import sys

import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.calculus.certify import MINIMUM
from proxlearn.calculus.polish import NEWTON_DIM, polish
from proxlearn.problems.base import held_out

NONE = torch.zeros(1, 0)


def single(function, space: px.Space) -> px.Problem:
    return px.Problem.from_function(function, space)


def jittered(points: Tensor, size: float) -> Tensor:
    return points + size * torch.randn(points.shape, generator=torch.Generator().manual_seed(0))


def test_polished_points_are_minimizers_to_single_precision(wells: px.Problem):
    tau = torch.tensor([[1.0, 0.7], [0.6, 1.3]])
    signs = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]).repeat(25, 1)
    truth = signs * tau[:, None]
    found = polish(wells, tau, jittered(truth, 0.03))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, truth, rtol=0, atol=1e-6)


def test_no_value_rises():
    problem = px.problem("conic")
    tau = held_out(problem, 8)
    x = problem.space.sample(8, 200, generator=torch.Generator().manual_seed(0))
    found = polish(problem, tau, x)
    assert (problem.objective(found, tau) <= problem.objective(x, tau)).all()
    assert (found - x).norm(dim=-1).median() > 0.1  # most are far from a conic and do go


def test_a_point_beside_a_continuum_goes_straight_to_it():
    """Onto an ellipse: no farther than to its nearest point, and hardly a bit more."""
    ellipse = single(
        lambda x: (x[..., 0].square() / 9 + x[..., 1].square() - 1).square(), px.Box(-5, 5, dim=2)
    )
    angle = torch.linspace(0, 2 * torch.pi, 400)
    on_it = torch.stack((3 * angle.cos(), angle.sin()), -1)[None]
    away = jittered(on_it, 0.02)
    found = polish(ellipse, NONE, away)
    assert ellipse.objective(found, NONE).max() < 1e-10
    nearest = torch.cdist(away, polish(ellipse, NONE, on_it)).amin(-1)
    assert ((found - away).norm(dim=-1) < 1.2 * nearest + 0.01).all()
    assert torch.cdist(on_it, found).amin(-1).max() < 0.1  # it is still covered all around


def test_a_shallow_valley_is_followed_to_its_end():
    """Curvatures 1 and 10,000: damping must not hold the shallow direction back for ever."""
    valley = single(
        lambda x: x[..., 0].square() + 1e4 * (x[..., 1] - x[..., 0].square()).square(),
        px.Box(-1.0, 1.0, dim=2),
    )
    x = torch.tensor([[[0.1, 0.01], [-0.1, 0.02], [0.05, 0.0]]])
    assert polish(valley, NONE, x, steps=60).abs().max() < 1e-5


def test_points_strung_along_a_valley_all_arrive():
    """An arm of three links reaches a target along a curve of ways; its posture, which weighs
    little, leaves two minima on it. Points go there from anywhere, and far along the curve."""

    def arm(x: Tensor, target: Tensor) -> Tensor:
        turns = torch.view_as_complex(x.unflatten(-1, (3, 2)).contiguous())
        links = torch.view_as_real(turns.cumprod(-1)) * x.new_tensor([[1.0], [0.8], [0.6]])
        return (links.sum(-2) - target).square().sum(-1) + 0.01 * (1 - turns.real).sum(-1)

    problem = px.Problem.from_function(arm, px.Circles(3), px.Box(-2.0, 2.0, dim=2))
    found = px.solve(problem, [1.0, 0.5], "descent", 64, device="cpu", steps=0).polished()
    assert found.certificates is not None
    assert (found.certificates == MINIMUM).all()
    assert len(found.unique()) == 2


def test_bounds_hold_and_a_point_moves_along_the_edge():
    slope = single(
        lambda x: x[..., 0] + 3 * (x[..., 1] - 0.5).square() + 2 * x[..., 0] * x[..., 1],
        px.Box(0.0, 1.0, dim=2),
    )
    x = torch.tensor([[[0.01, 0.48], [0.0, 0.53], [-0.0005, 0.5]]])
    torch.testing.assert_close(
        polish(slope, NONE, x), torch.tensor([0.0, 0.5]).expand(1, 3, 2), rtol=0, atol=1e-6
    )


def test_a_corner_is_kept():
    falling = single(lambda x: x.sum(-1), px.Box(0.0, 1.0, dim=3))
    x = 0.01 * torch.rand(1, 20, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(polish(falling, NONE, x), torch.zeros(1, 20, 3))


@pytest.mark.parametrize(
    ("space", "place"),
    [
        (px.Sphere(3), (0.6, 0.0, 0.8)),
        (px.Circles(2), (0.6, 0.8, 0.0, -1.0)),
        (px.Planes(), (0.6, 0.0, 0.8, 0.3)),
        (px.Product(px.Sphere(3), px.Box(0.0, 1.0, dim=1)), (0.6, 0.0, 0.8, 1.0)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_steps_stay_on_a_manifold(space: px.Space, place: tuple[float, ...]):
    """The nearest point of the space to a place on it, scaled, is that place."""
    target = torch.tensor(place, dtype=torch.float64)
    weights = torch.arange(1.0, space.dim + 1)
    problem = single(lambda x: (weights * (x - target)).square().sum(-1).sin(), space)
    x = space.project(jittered(target.float().expand(1, 30, -1), 0.02))
    found = polish(problem, NONE, x)
    assert space.contains(found, edge=1e-6).all()
    torch.testing.assert_close(found, target.float().expand_as(found), rtol=0, atol=1e-6)


def test_many_dimensions_and_single_gradients_are_polished_too():
    """By L-BFGS: above the largest whole Hessian, and where there is no second derivative."""

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.square().sum(-1)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, slope):
            return 2 * ctx.saved_tensors[0] * slope[..., None]

    d = NEWTON_DIM + 4
    weights = torch.arange(1.0, d + 1)
    large = single(lambda x: (weights * x.square()).sum(-1), px.Box(-1.0, 2.0, dim=d))
    once = single(lambda x: Once.apply(x), px.Box(0.0, 1.0, dim=2))  # a minimum at the corner
    for problem in (large, once):
        x = problem.space.project(jittered(torch.zeros(1, 20, problem.space.dim), 0.02))
        assert polish(problem, NONE, x).abs().max() < 1e-4


def test_a_saddle_repels():
    saddle = single(
        lambda x: x[..., 0].square() - x[..., 1].square() + x[..., 1] ** 4, px.Box(-2.0, 2.0, dim=2)
    )
    found = polish(saddle, NONE, torch.tensor([[[0.1, 0.02], [0.1, -0.02]]]), steps=60)
    assert (found[0, :, 1].sign() == torch.tensor([1.0, -1.0])).all()
    assert saddle.objective(found, NONE).max() < -0.01


def test_what_is_outside_or_not_a_number_is_left_alone():
    bowl = single(lambda x: x.square().sum(-1), px.Box(-1.0, 1.0, dim=2))
    x = torch.tensor([[[1.5, 0.0], [torch.nan, 0.0], [0.01, 0.0]]])
    found = polish(bowl, NONE, x)
    torch.testing.assert_close(found[0, :2], x[0, :2], equal_nan=True, rtol=0, atol=0)
    assert found[0, 2].norm() < 1e-6


def test_an_objective_with_holes_does_no_harm():
    """NaN beyond a line, an infinite slope at it: points there stay, the others arrive."""
    holes = single(
        lambda x: x[..., 0].sqrt() + (x[..., 1] - 0.3).square(), px.Box(-1.0, 1.0, dim=2)
    )
    x = torch.tensor([[[-0.5, 0.0], [0.0, 0.3], [0.5, 0.31]]])
    found = polish(holes, NONE, x)
    assert torch.equal(found[0, 0], x[0, 0])
    assert found.isfinite().all()
    assert holes.objective(found, NONE)[0, 2] < holes.objective(x, NONE)[0, 2]


def test_pieces_are_polished_as_the_whole(monkeypatch: pytest.MonkeyPatch):
    problem = px.problem("springs")
    tau = held_out(problem, 3)
    x = problem.space.sample(3, 10, generator=torch.Generator().manual_seed(0))
    whole = polish(problem, tau, x)
    monkeypatch.setattr(sys.modules["proxlearn.calculus.polish"], "POLISHED_AT_ONCE", 7)
    torch.testing.assert_close(polish(problem, tau, x), whole)


def test_conics_are_kept_apart_and_covered():
    """From 0.05 beside them, points come back to where they were on the conic."""
    problem = px.problem("conic")
    tau = held_out(problem, 6)
    begun = px.solve(problem, tau, "lbfgs", starts=300, device="cpu")
    on_it = begun.inside & (begun.values < 1e-9)
    assert on_it.sum() > 600
    found = polish(problem, tau, jittered(begun.points, 0.03))
    back = problem.objective(found, tau)[on_it]
    assert back.quantile(0.95) < 1e-9
    assert (found - begun.points).norm(dim=-1)[on_it].quantile(0.95) < 0.12


def test_points_have_to_be_those_of_tau(wells: px.Problem):
    with pytest.raises(
        px.InputError, match=r"points has shape \(3, 4, 2\); expected \(1, points, 2\)"
    ):
        polish(wells, [1.0, 0.7], torch.zeros(3, 4, 2))
    one = polish(wells, [1.0, 0.7], torch.tensor([[[0.99, 0.71]]]))  # tau as a user gives it
    torch.testing.assert_close(one, torch.tensor([[[1.0, 0.7]]]))
