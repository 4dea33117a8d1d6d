"""What every solver promises, whichever it is: found by being in `solvers/`."""

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import proxlearn as px
from proxlearn.networks.coupling import Coupling
from proxlearn.solvers.base import Learned, Stepwise, solver, solvers
from proxlearn.solvers.descent import Descent
from proxlearn.solvers.solve import curve
from proxlearn.solvers.swarm.network import Swarm
from proxlearn.training.arrival import Lessons

pytestmark = pytest.mark.whole
QUICK = {  # what a test has time for
    "descent": {"steps": 500, "rate": 0.02},
    "swarm": {"training": 20, "steps": 40},
}

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU"
))]  # fmt: skip
HEIGHT = px.Problem.from_function(
    lambda x, tau: (x * tau).sum(-1), px.Sphere(3), px.Box(-1.0, 1.0, dim=3), name="height"
)
ANGLES = px.Problem.from_function(
    lambda x: (x[..., 0] - 0.6).square() + (x[..., 3] + 0.8).square(), px.Circles(2), name="angles"
)
WELLS = px.Problem.from_function(
    lambda x, tau: (x.square() - tau.square()).square().sum(-1),
    px.Box(-2.0, 2.0, dim=2),
    px.Box(0.5, 1.5, dim=2),
    name="wells",
)
BOWL = px.Problem.from_function(lambda x: x.square().sum(-1), px.Box(-1.0, 1.0, dim=2), name="bowl")
REASONS = {name: solver(name).refuses(HEIGHT) for name in solvers.names()}
LEARNED = [name for name in REASONS if issubclass(solvers[name], Learned)]
METHODS = [name for name, reason in REASONS.items() if reason is None or name in LEARNED]
BRIEFLY = (*LEARNED, "swarm")  # trained too briefly here to arrive
every_method = pytest.mark.parametrize("method", METHODS)
stepwise = [name for name in METHODS if issubclass(solvers[name], Stepwise)]


def settings_of(method: str, operator: px.Operator | None = None) -> dict[str, Any]:
    return QUICK.get(method, {}) | ({"operator": operator} if method in LEARNED else {})


def trained(problem: px.Problem, steps: int) -> px.Operator:
    """A quickly trained operator, for the methods that need one."""
    operator = px.learn(
        problem,
        steps=steps,
        lam=1.0,
        rate=5e-3,
        instances=12,
        points=16,
        depth=2,
        applications=10,
        architecture=Coupling(blocks=1, width=16, shared=16),
        device="cpu",
        progress=False,
    )
    taught = Lessons(operator, problem, (12, 16), seed=0)
    for _ in range(steps // 10):
        taught.round()
    operator.arrival = taught.arrival
    return operator


@pytest.fixture(scope="module")
def operators() -> dict[str, px.Operator]:
    """Trained once for all methods that need one."""
    lengths = {HEIGHT: 600, ANGLES: 600, WELLS: 800, BOWL: 300}
    return {each.name: trained(each, steps) for each, steps in lengths.items()}


def test_the_methods_that_have_to_exist_do():
    assert {"operator", "descent", "lbfgs", "multistart", "swarm"} <= set(METHODS)
    # For one problem, for sums of two parts, or where solutions are known.
    few = {"fixed_number", "pairs", "proximal_gradient", "skglm"}
    assert few == set(REASONS) - set(METHODS)


@pytest.mark.parametrize("method", [name for name, reason in REASONS.items() if reason])
def test_a_method_that_does_not_apply_says_why(method: str):
    """In a sentence that names the problem and what to do, which is the error of `px.solve`."""
    reason = REASONS[method]
    assert "'height'" in reason
    assert "use " in reason or "operator=" in reason
    with pytest.raises(px.InputError, match=re.escape(reason)):
        px.solve(HEIGHT, [0.1, 0.2, 0.3], method, starts=2, device="cpu")


def test_what_a_method_lacked_is_enough_once_it_is_there(operators: dict[str, px.Operator]):
    assert LEARNED
    for name in LEARNED:
        assert solver(name, operator=operators["height"]).refuses(HEIGHT) is None
        assert solver(name).refuses(px.problem("conic")) is None  # an operator is shipped
    assert solver("proximal_gradient").refuses(px.problem("sparse-half")) is None


def test_a_solver_file_may_import_the_class_of_another(tmp_path: Path, monkeypatch):
    """The class of a file is the one that it defines."""
    (tmp_path / "hasty.py").write_text(
        "from dataclasses import dataclass\n"
        "from proxlearn.solvers.descent import Descent\n"
        "@dataclass(frozen=True)\n"
        "class Hasty(Descent):\n"
        "    steps: int = 3\n"
    )
    package = importlib.import_module("proxlearn.solvers")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    try:
        assert solver("hasty", rate=0.1).steps == 3
        found = px.solve(HEIGHT, [0.1, 0.2, 0.3], "hasty", starts=2, device="cpu")
        again = px.solve(HEIGHT, [0.1, 0.2, 0.3], "descent", starts=2, device="cpu", steps=3)
        assert torch.equal(found.points, again.points)
    finally:
        sys.modules.pop("proxlearn.solvers.hasty", None)


@pytest.mark.parametrize("method", stepwise)
def test_a_curve_in_one_pass_is_what_single_runs_give(method: str):
    settings, tau = settings_of(method), torch.tensor([[1.0, 0.7], [0.6, 1.3]])
    if method == "swarm":
        settings = {"swarm": Swarm(WELLS.space, 1.0)}
    how = {"starts": 10, "seed": 3, "device": "cpu"}
    at = (0, 1, 4, 9)
    every = curve(WELLS, tau, method, at, **how, **settings)
    assert torch.equal(every[0].points, every[0].starts)
    for k, found in zip(at, every, strict=True):
        alone = px.solve(WELLS, tau, method, **how, **settings | {"steps": k})
        assert torch.equal(found.points, alone.points)
        assert torch.equal(found.values, alone.values)
        assert torch.equal(found.starts, alone.starts)


def test_a_curve_solves_once(monkeypatch: pytest.MonkeyPatch):
    steps, one_step = [], Descent.one_step
    monkeypatch.setattr(Descent, "one_step", lambda *each: steps.append(1) or one_step(*each))
    curve(WELLS, [1.0, 0.7], "descent", (0, 10, 20, 50), starts=4, device="cpu")
    assert len(steps) == 50


def test_a_method_that_solves_in_one_go_has_no_curve():
    with pytest.raises(px.InputError, match="Multistart solves in one go and cannot be read"):
        curve(WELLS, [1.0, 0.7], "multistart", (0, 10), starts=4, device="cpu")


@every_method
def test_smooth_problem_is_solved_from_the_same_starts(
    method: str, operators: dict[str, px.Operator]
):
    settings = settings_of(method, operators["wells"])
    tau = torch.tensor([[1.0, 0.7], [0.6, 1.3]])
    found = px.solve(WELLS, tau, method, starts=16, seed=4, device="cpu", **settings)
    assert found.points.shape == found.starts.shape == (2, 16, 2)
    assert found.values.shape == found.inside.shape == (2, 16)
    same = px.solve(WELLS, tau, "descent", starts=16, seed=4, device="cpu", steps=0)
    assert torch.equal(found.starts, same.points)
    at_the_starts = WELLS.objective(found.starts, tau)
    assert found.values.mean() < 0.2 * at_the_starts.mean()
    torch.testing.assert_close(found.values, WELLS.objective(found.points, tau))
    if method not in BRIEFLY:
        torch.testing.assert_close(
            found.points.abs(), tau[:, None].expand(2, 16, 2), rtol=0, atol=0.02
        )


@every_method
def test_no_start_ends_worse_than_it_began(method: str, operators: dict[str, px.Operator]):
    """On a convex bowl, every single start gets nearer; an operator is trained, not exact."""
    settings = settings_of(method, operators["bowl"])
    found = px.solve(BOWL, None, method, starts=25, device="cpu", **settings)
    before = BOWL.objective(found.starts, torch.zeros(1, 0))
    slack = 0.02 if method in LEARNED else 1e-6
    assert (found.values <= before + slack).all()


@every_method
def test_solutions_stay_on_a_sphere(method: str, operators: dict[str, px.Operator]):
    """The lowest point of the sphere in the direction of tau is -tau / |tau|."""
    tau = torch.tensor([[0.3, -0.9, 0.1]])
    settings = settings_of(method, operators["height"])
    found = px.solve(HEIGHT, tau, method, starts=20, device="cpu", **settings)
    torch.testing.assert_close(found.points.norm(dim=-1), torch.ones(1, 20))
    assert found.inside.all()
    assert (found.values <= HEIGHT.objective(found.starts, tau) + 1e-3).all()
    lowest = -tau / tau.norm()
    tolerance = 0.3 if method in BRIEFLY else 0.01
    assert HEIGHT.space.pairwise(lowest, found.points[0]).max() < tolerance


@every_method
def test_solutions_stay_on_circles(method: str, operators: dict[str, px.Operator]):
    settings = settings_of(method, operators["angles"])
    found = px.solve(ANGLES, None, method, starts=20, device="cpu", **settings)
    torch.testing.assert_close(
        found.points.unflatten(-1, (2, 2)).norm(dim=-1), torch.ones(1, 20, 2)
    )
    before = ANGLES.objective(found.starts, torch.zeros(1, 0))
    assert found.values.mean() < 0.2 * before.mean()
    if method not in BRIEFLY:
        assert found.values.max() < 1e-3  # every minimum of this objective has the value 0


@every_method
def test_solving_is_repeatable_and_starts_may_be_given(
    method: str, operators: dict[str, px.Operator]
):
    settings = settings_of(method, operators["wells"])
    starts = WELLS.space.sample(6, generator=torch.Generator().manual_seed(0))
    given = starts.clone()
    first, again = (
        px.solve(WELLS, [1.0, 0.7], method, starts=starts, device="cpu", **settings)
        for _ in range(2)
    )
    assert torch.equal(first.points, again.points)
    assert torch.equal(first.starts[0], given)
    assert torch.equal(starts, given)  # the caller's tensor is left alone


@pytest.mark.parametrize("adam", [True, False])
def test_descent_follows_gradients_however_they_lie_in_memory(adam: bool):
    """Of a sum they are one number repeated, of a product with a matrix they are transposed."""
    matrix = torch.tensor([[2.0, 1.0], [1.0, 3.0], [0.0, 1.0]])
    how = {"starts": 8, "device": "cpu", "steps": 300, "rate": 0.02, "adam": adam}
    for objective, best in (
        (lambda x: (matrix @ x.mT).square().sum(-2), 0.0),
        (lambda x: x.sum(-1) + (x * x).sum(-1), -0.5),
    ):
        bowl = px.Problem.from_function(objective, px.Box(-2.0, 2.0, dim=2), name="bowl")
        found = px.solve(bowl, None, "descent", **how)
        assert (found.values - best).abs().max() < 1e-2
    window = px.Box(-2.0, 2.0, dim=2, open=True)
    slope = px.Problem.from_function(lambda x: x.sum(-1), window, name="slope")
    with pytest.warns(px.OutsideWarning):
        found = px.solve(slope, None, "descent", **how)
    assert torch.allclose(found.points - found.starts, torch.full((1, 8, 2), -6.0), atol=1e-2)


def test_plain_descent_is_gradient_descent():
    tau = torch.tensor([[1.0, 0.7]])
    found = px.solve(WELLS, tau, "descent", starts=5, device="cpu", steps=3, rate=0.01, adam=False)
    x = found.starts
    for _ in range(3):
        x = x - 0.01 * 4 * x * (x.square() - tau.square())
    torch.testing.assert_close(found.points, x)


@pytest.mark.parametrize("adam", [True, False])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("error::proxlearn.errors.SpeedWarning")  # on a GPU it is captured
def test_a_falling_rate_settles_in_kinks_where_a_constant_one_does_not(adam: bool, device: str):
    """`|x|_1` around a place that no step of one length ends at."""
    place = torch.tensor([0.3137, -0.4271], device=device)
    kinks = px.Problem.from_function(
        lambda x: (x - place).abs().sum(-1), px.Box(-1.0, 1.0, dim=2), name="kinks"
    )
    how = {"starts": 16, "device": device, "steps": 400, "rate": 0.02, "adam": adam}
    constant = px.solve(kinks, None, "descent", **how)
    falling = px.solve(kinks, None, "descent", falling=True, **how)
    assert constant.values.median() > 5e-3
    assert falling.values.max() < 2e-4
    assert falling.values.max() < 0.02 * constant.values.median()


def test_a_rate_that_has_fallen_to_0_moves_nothing_more():
    """The fall is over `steps`, however many are made: a race may make more."""
    method = Descent(steps=20, rate=0.02, falling=True)
    starts = WELLS.space.sample(1, 6, generator=torch.Generator().manual_seed(0))
    short, after = method.curve(WELLS, torch.tensor([[1.0, 0.7]]), starts, (20, 30))
    assert (short.points != starts).any()
    assert torch.equal(short.points, after.points)


def test_multistart_keeps_to_the_bounds_of_a_box():
    slope = px.Problem.from_function(lambda x: x.sum(-1), px.Box((-1.0, 2.0), (1.0, 3.0)))
    found = px.solve(slope, None, "multistart", starts=4, device="cpu")
    torch.testing.assert_close(found.points, torch.tensor([-1.0, 2.0]).expand(1, 4, 2))


@pytest.mark.parametrize("method", ["descent", "lbfgs", "multistart"])
def test_the_objective_is_checked_before_solving(method: str):
    flat = px.Problem.from_function(lambda x: x.square(), px.Box(-1.0, 1.0, dim=2))
    with pytest.raises(px.ObjectiveError, match="one value for each point"):
        px.solve(flat, None, method, starts=4, device="cpu")
