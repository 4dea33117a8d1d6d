"""Objectives as users write them: in double precision, or changing what they are given."""

from pathlib import Path

import pytest
import torch

import proxlearn as px

BOX, RANGE = px.Box(-2.0, 2.0, dim=2), px.Box(0.5, 1.5, dim=2)


def in_double(x, tau):
    return (x.double().square() - tau.double().square()).square().sum(-1)


@pytest.mark.parametrize("rule", ["proximal", "gradient"])
def test_an_objective_in_double_precision_is_learned(rule: str, tiny: dict, tmp_path: Path):
    """Teaching arrival included, which comes last."""
    problem = px.Problem.from_function(in_double, BOX, RANGE)
    settings = tiny | {"applications": None, "lam": None, "rule": rule, "out": tmp_path}
    operator = px.learn(problem, steps=60, **settings)
    assert {each.dtype for each in operator.parameters()} == {torch.float32}
    assert operator.solve([1.0, 0.7], starts=16).points.dtype == torch.float32
    px.load(tmp_path)


@pytest.mark.parametrize("method", ["lbfgs", "descent", "multistart"])
def test_an_objective_in_double_precision_is_solved(method: str):
    problem = px.Problem.from_function(in_double, BOX, RANGE)
    solutions = px.solve(problem, [1.0, 0.7], method, starts=32).polished()
    assert solutions.values is not None
    assert solutions.points.dtype == solutions.values.dtype == torch.float32
    optima = solutions.unique()
    assert optima.certificates == ["minimum"] * 4
    torch.testing.assert_close(optima.points.abs(), torch.tensor([[1.0, 0.7]] * 4))


def shifts_x(x, tau):
    with torch.no_grad():
        x += 1.0
    return x.square().sum(-1)


def scales_data(x, tau):
    x.data *= 2.0
    return x.square().sum(-1)


def scales_tau(x, tau):
    tau *= 2.0
    return (x - tau).square().sum(-1)


@pytest.mark.parametrize("function", [shifts_x, scales_data, scales_tau])
def test_an_objective_that_changes_what_it_is_given_is_refused(function, tiny: dict):
    problem = px.Problem.from_function(function, BOX, RANGE)
    for use in (lambda: px.learn(problem, steps=1, **tiny), lambda: px.solve(problem, [1.0, 0.7])):
        with pytest.raises(px.ObjectiveError, match="changes x or tau in place"):
            use()


def test_arrival_whose_loss_broke_is_left_out(tiny: dict, monkeypatch: pytest.MonkeyPatch):
    from proxlearn.training import arrival

    problem = px.Problem.from_function(in_double, BOX, RANGE)
    monkeypatch.setattr(arrival, "levels", lambda values: values * torch.nan)
    operator = px.learn(problem, steps=5, **tiny | {"applications": None})
    assert operator.arrival is None
    assert operator.finite
