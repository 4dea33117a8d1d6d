"""Objectives written with NumPy: the classical methods solve them by finite differences, and what
needs more than that says so."""

import numpy as np
import pytest
import torch
from scipy.optimize import rosen

import proxlearn as px
from proxlearn.calculus.derivatives import gradient

BOX, RANGE = px.Box(-5.0, 5.0, dim=2), px.Box([9.0, 5.0], [13.0, 9.0])


def himmelblau(x, tau):  # of one point of NumPy, or of points of torch
    u, v = x[..., 0], x[..., 1]
    return (u**2 + v - tau[..., 0]) ** 2 + (u + v**2 - tau[..., 1]) ** 2


TORCH = px.Problem.from_function(himmelblau, BOX, RANGE)
ONE_BY_ONE = px.Problem.from_numpy(himmelblau, BOX, RANGE)
VECTORIZED = px.Problem.from_numpy(himmelblau, BOX, RANGE, vectorized=True)


@pytest.mark.parametrize("problem", [ONE_BY_ONE, VECTORIZED], ids=["one by one", "vectorized"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients_are_those_of_torch(problem: px.Problem, dtype: torch.dtype):
    tau = RANGE.sample(3, generator=torch.Generator().manual_seed(0)).to(dtype)
    x = BOX.sample(3, 20, generator=torch.Generator().manual_seed(1)).to(dtype)
    x[:, 0] = 5.0  # on two bounds
    values, slope = gradient(problem, x, tau)
    expected, exact = gradient(TORCH, x.double(), tau.double())
    assert slope.dtype == values.dtype == dtype
    torch.testing.assert_close(values.double(), expected, rtol=1e-6, atol=0)
    # A second derivative of some hundreds times half a step of 6e-6, on the bounds.
    torch.testing.assert_close(slope.double(), exact, rtol=1e-5, atol=3e-3)
    torch.testing.assert_close(slope[:, 1:].double(), exact[:, 1:], rtol=2e-6, atol=1e-4)


def test_nothing_outside_the_bounds_is_looked_at():
    problem = px.Problem.from_numpy(lambda x: np.sqrt(x).sum(), px.Box([(0, 1), (0, 2)]))
    with np.errstate(all="raise"):
        solutions = px.solve(problem, method="lbfgs", starts=16, steps=20)
    assert solutions.values is not None
    assert solutions.values.max() == 0.0  # the edge, with values of no number beyond


@pytest.mark.parametrize("method", ["lbfgs", "descent", "multistart"])
def test_classical_methods_find_the_optima(method: str):
    settings = {"descent": {"steps": 250, "rate": 0.03}, "lbfgs": {"steps": 30}}
    optima = px.solve(VECTORIZED, [11, 7], method, starts=16, **settings.get(method, {})).unique()
    expected = px.solve(TORCH, [11, 7], "lbfgs", starts=32).unique()
    assert len(optima) == 4
    far = torch.cdist(optima.points, expected.points)
    assert far.amin(1).max() < 1e-3


def test_polish_and_certificates_work_by_differences():
    polished = px.solve(VECTORIZED, [11, 7], starts=16, steps=20).polished()
    assert polished.unique().certificates == ["minimum"] * 4
    saddle = torch.tensor([[[-0.1280, -1.9537]]])
    assert px.certify(VECTORIZED, [11.0, 7.0], px.polish(TORCH, [11.0, 7.0], saddle))[0, 0] < 2


def test_a_function_of_scipy_is_an_objective():
    best = px.solve(px.Problem.from_numpy(rosen, px.Box(-2.0, 2.0, dim=3)), starts=2, steps=60).best
    assert best.success
    np.testing.assert_allclose(best.x, 1.0, atol=1e-3)


def test_what_it_is_given_may_be_changed():
    def shifts(x):
        x -= 1.0
        return (x**2).sum()

    best = px.solve(px.Problem.from_numpy(shifts, BOX), starts=2, steps=10).best
    np.testing.assert_allclose(best.x, 1.0, atol=1e-3)


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda: px.learn(ONE_BY_ONE, steps=1), "A training needs the gradients.*torch functions"),
        (lambda: px.solve(ONE_BY_ONE, [11, 7], "swarm"), "needs the gradients"),
        (lambda: px.solve(ONE_BY_ONE, [11, 7], "operator"), "needs an operator"),
        (lambda: px.solve(ONE_BY_ONE, [11, 7], device="cuda"), "computes on the CPU"),
    ],
)
def test_what_cannot_be_is_said(use, said: str):
    with pytest.raises(px.InputError, match=said):
        use()


@pytest.mark.parametrize(
    ("function", "vectorized", "said"),
    [
        (lambda x: x, False, r"returned \(2,\) for one point \(2,\); it must return a number"),
        (lambda x: x[:3, 0], True, r"returned \(3,\) for points \(5, 2\); it must return \(5,\)"),
        (lambda x: "word", False, "must return a number"),
        (lambda x: x @ np.ones(3), False, "px.Problem.from_numpy says"),
    ],
)
def test_a_wrong_result_is_said(function, vectorized: bool, said: str):
    with pytest.raises(px.ObjectiveError, match=said):
        px.solve(px.Problem.from_numpy(function, BOX, vectorized=vectorized), starts=4)


def test_numpy_in_a_problem_of_torch_is_told_the_way():
    problem = px.Problem.from_function(lambda x: np.sin(x).sum(-1), BOX)
    with pytest.raises(px.ObjectiveError, match=r"px\.Problem\.from_numpy"):
        px.solve(problem, starts=4)
