"""Certificates: every kind of point, by objectives whose points are known."""

import sys

import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.calculus.certify import CERTIFICATES, certify
from proxlearn.calculus.polish import polish
from proxlearn.problems.base import held_out

NONE = torch.zeros(1, 0)


def kinds(problem: px.Problem, points: list | Tensor, tau: Tensor = NONE) -> list[str]:
    codes = certify(problem, tau, torch.as_tensor(points)[None])
    assert codes.dtype == torch.int8
    return [CERTIFICATES[code] for code in codes[0].tolist()]


def single(function, space: px.Space) -> px.Problem:
    return px.Problem.from_function(function, space)


def test_the_codes_have_the_order_that_files_hold():
    assert CERTIFICATES == ("minimum", "saddle", "flat", "boundary", "unconverged")


def test_a_smooth_landscape_has_its_minima_saddles_and_slopes(wells: px.Problem):
    tau = torch.tensor([[1.0, 0.7]])
    points = [[1.0, 0.7], [-1.0, 0.7], [0.0, 0.7], [0.0, 0.0], [0.9, 0.7], [1.002, 0.7]]
    found = kinds(wells, points, tau)
    assert found == ["minimum", "minimum", "saddle", "saddle", "unconverged", "unconverged"]


def test_all_minima_of_the_cosine_grid_are_certified_with_those_on_the_edge():
    problem = px.problem("cosine")
    (truth,) = problem.truth(NONE)
    generator = torch.Generator().manual_seed(0)
    beside = problem.space.project(truth + 0.1 * torch.randn(truth.shape, generator=generator))
    found = polish(problem, NONE, beside[None])[0]
    torch.testing.assert_close(found, truth, rtol=0, atol=1e-5)
    on_edge = (truth.abs() == 5).any(-1).tolist()
    assert kinds(problem, found) == ["boundary" if each else "minimum" for each in on_edge]
    assert sum(on_edge) == 40
    assert set(kinds(problem, truth[:50] + 0.5)) <= {"saddle", "unconverged"}


def test_a_continuum_is_flat_and_a_lone_minimum_is_not():
    ring = single(lambda x: (x.square().sum(-1) - 1).square(), px.Box(-2.0, 2.0, dim=2))
    angle = torch.linspace(0, 6, 40)
    circle = torch.stack((angle.cos(), angle.sin()), -1)
    assert kinds(ring, circle) == ["flat"] * 40
    assert kinds(ring, [[0.0, 0.0]]) == ["saddle"]  # a maximum
    plateau = single(lambda x: 0 * x.sum(-1), px.Box(-2.0, 2.0, dim=2))
    assert kinds(plateau, [[0.3, 0.4]]) == ["flat"]
    long = single(lambda x: x[..., 0].square() + 100 * x[..., 1].square(), ring.space)
    assert kinds(long, [[0.0, 0.0]]) == ["minimum"]


def test_polished_conics_are_flat():
    problem = px.problem("conic")
    tau = held_out(problem, 8)
    found = px.solve(problem, tau, "lbfgs", starts=100, device="cpu")
    points = polish(problem, tau, found.points)
    on_it = found.inside & (problem.objective(points, tau) < 1e-8)
    codes = certify(problem, tau, points)
    assert (codes[on_it] == CERTIFICATES.index("flat")).float().mean() > 0.97
    assert (codes[~found.inside] == CERTIFICATES.index("unconverged")).all()


def test_a_bound_holds_only_where_the_slope_pushes_against_it():
    tilted = single(lambda x: x[..., 0] + (x[..., 1] - 0.5).square(), px.Box(0.0, 1.0, dim=2))
    points = [[0.0, 0.5], [1.0, 0.5], [0.0, 0.6], [0.5, 0.5]]
    assert kinds(tilted, points) == ["boundary", "unconverged", "unconverged", "unconverged"]
    arched = single(lambda x: x[..., 0] - (x[..., 1] - 0.5).square(), tilted.space)
    assert kinds(arched, [[0.0, 0.5], [0.0, 0.0]]) == ["saddle", "boundary"]


def test_kinks_are_minima_where_the_slopes_point_at_them():
    l1 = px.problem("shrinkage")
    assert kinds(l1, [[0.0, 0.0], [1e-7, -1e-7], [0.3, 0.0], [1.0, 0.0]]) == [
        "minimum",
        "minimum",
        "unconverged",
        "unconverged",
    ]
    ridge = single(lambda x: -x.abs().sum(-1), l1.space)
    assert kinds(ridge, [[0.0, 0.0], [1.0, 1.0]]) == ["saddle", "boundary"]


@pytest.mark.parametrize(
    ("space", "lowest", "highest"),
    [
        (px.Sphere(3), (0.0, 0.0, -1.0), (0.0, 0.0, 1.0)),
        (
            px.Product(px.Sphere(3), px.Box(-1.0, 1.0, dim=1)),
            (0.0, 0.0, -1.0, 0.0),
            (0.0, 0.0, 1.0, 0.0),
        ),
    ],
    ids=["sphere", "product"],
)
def test_on_a_sphere_it_is_the_tangent_space_that_counts(space, lowest, highest):
    """The height, whose Hessian in the embedding is zero."""
    height = single(lambda x: x[..., 2] + x[..., 3:].square().sum(-1), space)
    sideways = (1.0, 0.0, 0.0, 0.0)[: space.dim]
    assert kinds(height, [lowest, highest, sideways]) == ["minimum", "saddle", "unconverged"]


def test_equal_heights_on_a_sphere_are_flat():
    equator = single(lambda x: x[..., 2].square(), px.Sphere(3))
    assert kinds(equator, [[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]) == ["flat", "saddle"]


def test_a_space_without_directions_has_only_stationary_points():
    assert kinds(single(lambda x: x[..., 0], px.Sphere(1)), [[1.0], [-1.0]]) == ["minimum"] * 2


def test_what_is_not_a_number_is_unconverged():
    holes = single(lambda x: x[..., 0].sqrt() + x[..., 1].square(), px.Box(-1.0, 1.0, dim=2))
    points = [[torch.nan, 0.0], [-0.5, 0.0], [0.0, 0.0], [3.0, 0.0]]
    assert kinds(holes, points) == ["unconverged"] * 4


def test_an_objective_of_single_precision_is_certified_too():
    """Its own weights are of single precision, so that it cannot be computed in double."""
    turn = torch.tensor([[0.6, 0.8], [-0.8, 0.6]])
    bowl = single(
        lambda x: ((x @ turn) * torch.tensor([1.0, 3.0])).square().sum(-1), px.Box(-1.0, 1.0, dim=2)
    )
    ditch = single(lambda x: (x @ turn)[..., 0].square(), bowl.space)
    assert kinds(bowl, [[0.0, 0.0], [0.1, 0.0]]) == ["minimum", "unconverged"]
    assert kinds(ditch, [[0.0, 0.0], [0.4, 0.3]]) == ["flat", "flat"]


def test_pieces_are_certified_as_the_whole(monkeypatch: pytest.MonkeyPatch):
    problem = px.problem("springs")
    tau = held_out(problem, 3)
    found = px.solve(problem, tau, "lbfgs", starts=11, device="cpu")
    points = polish(problem, tau, found.points)
    whole = certify(problem, tau, points)
    assert (whole == CERTIFICATES.index("minimum")).sum() > 20
    monkeypatch.setattr(sys.modules["proxlearn.calculus.certify"], "GRADIENTS_AT_ONCE", 30)
    assert torch.equal(certify(problem, tau, points), whole)


def test_a_saddle_without_curvature_is_no_optimum():
    """Where `x^2 - y^6` has neither slope nor curvature in y, values fall all the same."""
    box = px.Box(-1.0, 1.0, dim=2)
    ridge = single(lambda x: x[..., 0].square() - x[..., 1].pow(6), box)
    slide = single(lambda x: x[..., 0].square() + x[..., 1].pow(5), box)
    valley = single(lambda x: x[..., 0].square() + x[..., 1].pow(6), box)
    assert kinds(ridge, [[0.0, 0.0]]) == kinds(slide, [[0.0, 0.0]]) == ["saddle"]
    assert kinds(valley, [[0.0, 0.0]]) == ["flat"]


@pytest.mark.parametrize("bound", [0.25, 0.3])  # in single precision 0.3 is a little inside
def test_a_minimum_in_a_corner_is_one_of_the_boundary(bound: float):
    rising = single(lambda x: (x + 0.1 * (5 * x).cos()).sum(-1), px.Box(bound, 2.0, dim=2))
    assert kinds(rising, torch.full((1, 2), bound)) == ["boundary"]
