"""What problems say of their own optima, against brute force."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

import proxlearn as px
from proxlearn.answers import metrics
from proxlearn.problems.base import held_out
from proxlearn.problems.cosine import Cosine
from proxlearn.problems.shrinkage import Shrinkage
from proxlearn.problems.springs.springs import SPAN, Springs

DOTS = str(Path(__file__).parent.parent / "examples" / "dots.py")
TO_REST = {"steps": 400, "rate": 0.1, "adam": False}  # plain descent ends in the basin it begins in


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_shrinkage_proximal_is_the_best_of_a_fine_grid(dim: int):
    problem = Shrinkage(dim)
    x = problem.space.sample(20, generator=torch.Generator().manual_seed(0)).double()
    y = torch.linspace(-1, 1, 20_001, dtype=torch.double)
    # The objective is a sum over coordinates, so each has its own best y.
    loss = y.abs() + problem.lam / 2 * (y - x[..., None]).square()
    torch.testing.assert_close(problem.proximal(x), y[loss.argmin(-1)], atol=1e-4, rtol=0)


def test_shrinkage_is_lowest_at_its_truth():
    problem = Shrinkage(3)
    (truth,) = problem.truth(torch.zeros(1, 0))
    found = px.solve(problem, None, "descent", starts=64, steps=2000)
    assert truth.shape == (1, 3)
    assert (found.points - truth).norm(dim=-1).max() < 0.01


def test_cosine_has_exactly_the_grid():
    problem = Cosine()
    (truth,) = problem.truth(torch.zeros(1, 0))
    found = px.solve(
        problem, None, "descent", starts=4096, seed=1, steps=400, rate=1e-3, adam=False
    )
    distance = problem.space.pairwise(truth, found.points[0][found.inside[0]])
    assert len(truth) == 121
    assert distance.amin(1).max() < 1e-3  # every minimizer is reached
    assert distance.amin(0).max() < 1e-3  # and nothing else is


def test_springs_rest_where_descent_ends():
    problem = Springs()
    tau = held_out(problem, 5)
    found = px.solve(problem, tau, "descent", starts=512, **TO_REST)
    for k, truth in enumerate(problem.truth(tau)):
        distance = problem.space.pairwise(found.points[k], truth)
        assert distance.amin(1).max() < 1e-3  # a start ends nowhere else
        # A rest configuration with a tiny basin may be missed, so each is visited from beside it.
        beside = truth + 1e-4 * torch.randn(truth.shape, generator=torch.Generator())
        back = px.solve(problem, tau[k], "descent", starts=beside, **TO_REST).points[0]
        assert (back - truth).norm(dim=-1).max() < 1e-3


def test_springs_all_at_their_rest_length_cost_nothing():
    tau = torch.tensor([[0.7, 0.6, 0.4, 0.7]])
    (truth,) = Springs().truth(tau)
    relaxed = torch.tensor([0.7, 1.3, 1.7])  # right, right, right, left: back to 1
    assert (truth - relaxed).norm(dim=1).min() < 1e-6
    assert Springs().objective(relaxed[None, None], tau).item() == pytest.approx(0, abs=1e-12)


def test_springs_space_holds_every_rest_configuration():
    """Each joint's extreme position over all rest lengths is a linear program per sign pattern."""
    springs, m = Springs(), 4
    bounds = list(zip(springs.parameters.low, springs.parameters.high))
    reached = []
    for pattern in itertools.product((1.0, -1.0), repeat=m):
        s = np.array(pattern)
        u_of_r = np.diag(s) - np.tile(s / m, (m, 1))  # u = u_of_r @ r + SPAN / m
        pointing = {"A_ub": -s[:, None] * u_of_r, "b_ub": s * SPAN / m, "bounds": bounds}
        for joint, side in itertools.product(range(1, m), (1, -1)):
            position = u_of_r[:joint].sum(0)
            best = linprog(-side * position, **pointing)
            if best.status == 0:
                reached.append((joint, position @ best.x + joint * SPAN / m))
    for joint in range(1, m):
        positions = [p for j, p in reached if j == joint]
        assert springs.space.low[joint - 1] == pytest.approx(min(positions) - 0.25)
        assert springs.space.high[joint - 1] == pytest.approx(max(positions) + 0.25)


def test_dots_are_where_the_objective_and_the_picture_say():
    problem = px.problem(DOTS)
    tau = held_out(problem, 8)
    for k, dots in enumerate(problem.truth(tau)):
        assert 1 <= len(dots) <= 4
        column, row = (dots * 16).long().unbind(-1)
        assert (tau["picture"][k, 0, row, column] > 0.6).all()  # x is the column, y the row
    assert {len(dots) for dots in problem.truth(held_out(problem, 64))} == {1, 2, 3, 4}
    found = px.solve(problem, tau, method="descent", starts=128, steps=2000)
    hits, known = metrics.recall(found, problem.truth(tau), tolerance=0.02)
    assert hits >= 0.9 * known


def test_dots_train_and_their_operator_needs_a_picture_only(tmp_path: Path, tiny):
    problem = px.problem(DOTS)
    trained = px.learn(problem, **tiny | {"steps": 5})
    operator = px.load(trained.save(tmp_path / "dots.safetensors"))
    picture = held_out(problem, 1)["picture"][0]
    solutions = operator.solve(picture, starts=16)
    assert operator.problem is None
    assert solutions.values is None
    assert solutions.points.shape == (1, 16, 2)
    torch.testing.assert_close(solutions.points, trained.solve(picture, starts=16).points)
    with pytest.raises(px.InputError, match="expected a picture"):
        operator.solve(picture[0])
