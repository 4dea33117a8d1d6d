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


def clamps_x(x, tau):
    """In the box it changes nothing."""
    x.data.clamp_(-2.0, 2.0)
    return (x - tau).square().sum(-1)


def test_an_objective_that_changes_points_outside_is_refused(tiny: dict):
    window = px.Box(-2.0, 2.0, dim=2, open=True)
    problem = px.Problem.from_function(clamps_x, window, RANGE)
    with pytest.raises(px.ObjectiveError, match="in place where it is outside the space"):
        px.learn(problem, steps=1, **tiny)
    closed = px.Problem.from_function(clamps_x, BOX, RANGE)  # which no point leaves
    assert px.solve(closed, [1.0, 0.7], starts=4).inside.all()


def far(x, tau):
    return (x - tau).square().sum(-1)


COUPLED = {
    "softmax": lambda x, tau: far(x, tau).softmax(1),
    "mean over points": lambda x, tau: far(x, tau) - far(x, tau).mean(1, keepdim=True),
    "mean over instances": lambda x, tau: far(x, tau) - far(x, tau).mean(0),
    "batch normalization": lambda x, tau: torch.nn.functional.batch_norm(
        far(x, tau), None, None, training=True
    ),
}


@pytest.mark.parametrize("function", COUPLED.values(), ids=COUPLED)
def test_an_objective_in_which_points_mix_is_refused(function, tiny: dict):
    problem = px.Problem.from_function(function, BOX, RANGE)
    for use in (lambda: px.learn(problem, steps=1, **tiny), lambda: px.solve(problem, [1.0, 0.7])):
        with pytest.raises(px.ObjectiveError, match=r"another value|failed on 1 instance "):
            use()


def test_an_objective_that_draws_is_refused(tiny: dict):
    for function in (
        lambda x, tau: far(x, tau) * torch.rand(()),
        lambda x, tau: far(torch.nn.functional.dropout(x), tau),
    ):
        with pytest.raises(px.ObjectiveError, match="other values when it is called again"):
            px.learn(px.Problem.from_function(function, BOX, RANGE), steps=1, **tiny)


WRONG = {
    "NoneType": lambda values: None,
    "numbers of type complex64": lambda values: values * 1j,
    "numbers of type int64": lambda values: values.long(),
    "a sparse tensor": lambda values: values.to_sparse(),
    "a tensor on the device meta": lambda values: values.to("meta"),
    r"\(\)": torch.sum,
    r"\(2, 5, 1\)": lambda values: values[..., None],
}


@pytest.mark.parametrize(("said", "wrong"), WRONG.items(), ids=WRONG)
def test_values_that_are_none(said: str, wrong, tiny: dict):
    problem = px.Problem.from_function(lambda x, tau: wrong(far(x, tau)), BOX, RANGE)
    with pytest.raises(px.ObjectiveError, match=f"returned {said} for 2 instances of 5 points"):
        px.learn(problem, steps=1, **tiny)


class Turning:
    """An objective that does what it should so many times."""

    def __init__(self, wrong, good: int = 40):
        self.wrong, self.left = wrong, good

    def __call__(self, x, tau):
        self.left -= 1
        values = far(x, tau)
        return values if self.left >= 0 else self.wrong(values)


def fails(values):
    raise KeyError("weights")


@pytest.mark.parametrize("wrong", [lambda values: None, torch.sum, torch.Tensor.item, fails])
def test_what_was_learned_before_an_objective_fails_is_kept(wrong, tiny: dict, tmp_path: Path):
    problem = px.Problem.from_function(Turning(wrong), BOX, RANGE)
    with pytest.raises(px.ObjectiveError, match=r"after \d+ steps .*, and they are kept in"):
        px.learn(problem, steps=60, out=tmp_path, **tiny)
    mended = px.Problem.from_function(far, BOX, RANGE)
    steps = []
    watch = lambda report, _: steps.append(report.step)  # noqa: E731
    operator = px.learn(mended, steps=60, out=tmp_path, resume=True, watch=watch, **tiny)
    assert operator.finite
    assert steps[-1] == 60


@pytest.mark.parametrize("wrong", [torch.sum, fails, lambda values: values * 1j])
@pytest.mark.parametrize("method", ["lbfgs", "descent"])
def test_an_objective_that_fails_while_it_is_solved_is_said(wrong, method: str):
    problem = px.Problem.from_function(Turning(wrong), BOX, RANGE)
    with pytest.raises(px.ObjectiveError, match=r"The objective of .* (failed on|returned)"):
        px.solve(problem, [1.0, 0.7], method, starts=4)


def test_without_a_folder_it_is_said_that_all_is_lost(tiny: dict):
    problem = px.Problem.from_function(Turning(fails), BOX, RANGE)
    with pytest.raises(px.ObjectiveError, match=r"'weights' .* lost: give out="):
        px.learn(problem, steps=60, **tiny)


def test_an_objective_that_is_no_number_from_some_step_on(tiny: dict, tmp_path: Path):
    problem = px.Problem.from_function(Turning(torch.log), BOX, RANGE)
    problem.function.wrong = lambda values: values * torch.nan
    with pytest.raises(px.TrainingError, match=r"finite everywhere .* No checkpoint had been"):
        px.learn(problem, steps=60, out=tmp_path, **tiny)


def test_points_that_only_training_reaches_are_looked_at(tiny: dict):
    """Here those of the pool, at every checkpoint."""
    seen = []

    def function(x, tau):
        seen.append(tuple(x.shape[:2]))
        return far(x, tau)

    px.learn(px.Problem.from_function(function, BOX, RANGE), steps=20, **tiny)
    assert seen.count((2, 5)) >= 4  # beforehand, and at the end
    assert seen.count((1, 5)) == 2


@pytest.mark.parametrize("value", [torch.nan, -torch.inf])
def test_solutions_without_a_value_are_said_and_are_no_optima(value: float):
    """A small region has none, which the few points that are looked at beforehand did not meet."""

    def function(x, tau):
        return torch.where((x - tau).norm(dim=-1) < 0.05, value, far(x, tau))

    problem = px.Problem.from_function(function, BOX, RANGE)
    starts = torch.tensor([[1.0, 0.7], [1.0, -1.0]])
    with pytest.warns(px.NotFiniteWarning, match="NaN or infinite at 1 of 2 solutions inside"):
        solutions = px.solve(problem, [1.0, 0.7], "descent", starts=starts, steps=1)
    assert solutions.values is not None
    assert solutions.values.isfinite().tolist() == [[False, True]]
    optima = solutions.unique(verify=False)
    assert len(optima) == 1
    assert optima.values is not None
    assert optima.values.isfinite().all()
