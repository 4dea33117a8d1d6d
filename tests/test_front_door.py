"""`px.solve` picks a method, an operator is applied by calling it, and what is given in place of a
problem is answered by a sentence."""

import numpy as np
import pytest
import torch
from making import untrained

import proxlearn as px
from proxlearn.instances import Vectors
from proxlearn.networks.coupling import Coupling
from proxlearn.problems.maxcut import Maxcut
from proxlearn.problems.shrinkage import Shrinkage
from proxlearn.problems.sparse import Sparse
from proxlearn.solvers.solve import usual_method

CIRCLE = [1.0, 0, 1, 0, 0, -1]


@pytest.fixture
def operator() -> px.Operator:
    torch.manual_seed(0)
    box = px.Box(-1.0, 1.0, dim=2)
    sizes = Coupling(1, 8, 8, start_at_identity=False)
    return untrained(box, Vectors.over(px.Box(-1.0, 1.0, dim=3)), sizes).eval()


# The method that nobody asked for


def test_the_method_is_the_shipped_operator_where_there_is_one(wells: px.Problem):
    assert usual_method(px.problem("conic")) == "operator"
    assert usual_method(px.problem("sparse-mcp")) == "lbfgs"
    assert usual_method(wells) == "lbfgs"
    assert usual_method(wells, operator=px.pretrained("conic")) == "operator"


def test_a_problem_that_is_only_called_like_a_shipped_one_gets_no_operator(wells: px.Problem):
    wells.name = "conic"
    assert usual_method(wells) == "lbfgs"


def test_an_operator_is_not_for_other_measurements_or_dimensions():
    assert usual_method(px.problem("sparse")) == usual_method(Shrinkage()) == "operator"
    assert usual_method(Sparse(torch.eye(8), torch.ones(8))) == "lbfgs"
    assert usual_method(Shrinkage(dim=4)) == "lbfgs"
    assert usual_method(Maxcut(9)) == "operator"  # which is for graphs of any size


def test_solve_without_a_method(wells: px.Problem):
    conic = px.problem("conic")
    found = px.solve(conic, CIRCLE, starts=8).points
    assert torch.equal(found, px.solve(conic, CIRCLE, "operator", starts=8).points)
    assert torch.equal(found, px.pretrained("conic").solve(CIRCLE, starts=8).points)
    assert len(px.solve(wells, [1.0, 0.7], starts=64).unique()) == 4


def test_solve_takes_the_name_of_a_built_in_problem():
    found = px.solve("conic", CIRCLE, starts=8).points
    assert torch.equal(found, px.solve(px.problem("conic"), CIRCLE, starts=8).points)
    with pytest.raises(px.UnknownNameError, match="Did you mean 'conic'"):
        px.solve("conics", CIRCLE)


def test_all_ways_to_solve_with_ones_own_operator_agree(wells: px.Problem, tiny: dict):
    own = px.learn(wells, steps=2, **tiny)
    expected = own.solve([1.0, 0.7], starts=8).points
    for how in ({}, {"method": "operator"}):
        found = px.solve(wells, [1.0, 0.7], operator=own, starts=8, **how)
        assert torch.equal(found.points, expected)


# One application


def test_calling_an_operator_is_one_application(operator: px.Operator):
    tau, x = [0.1, 0.2, 0.3], torch.rand(5, 2)
    expected = operator.solve(tau, starts=x, steps=1).points
    torch.testing.assert_close(operator(x, tau), expected[0])
    torch.testing.assert_close(operator(x[None], tau), expected)
    torch.testing.assert_close(operator(x.double().numpy(), np.array(tau)), expected[0])


def test_calling_an_operator_for_several_taus(operator: px.Operator):
    taus, x = torch.rand(3, 3), torch.rand(3, 5, 2)
    expected = operator.solve(taus, starts=x, steps=1).points
    torch.testing.assert_close(operator(x, taus), expected)
    same = operator.solve(taus, starts=x[0], steps=1).points
    torch.testing.assert_close(operator(x[0], taus), same)


def test_calling_the_operator_of_graphs_of_any_size():
    weights = torch.ones(5, 5) - torch.eye(5)
    operator = px.pretrained("maxcut", "cpu")
    x = px.Circles(5).sample(4)
    expected = operator.solve(weights, starts=x, steps=1).points[0]
    torch.testing.assert_close(operator(x, weights), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (torch.zeros(5, 3), r"x has shape \(5, 3\); expected points \(n, 2\), or \(1, n, 2\)"),
        (torch.zeros(2), r"x has shape \(2,\)"),
        (torch.zeros(2, 5, 2), r"x has shape \(2, 5, 2\); expected .* for 1 instance\."),
        ("here", "x must be points, not 'here'"),
    ],
    ids=["width", "one", "instances", "text"],
)
def test_calling_an_operator_with_no_points(operator: px.Operator, x, words: str):
    with pytest.raises(px.InputError, match=words):
        operator(x, [0.1, 0.2, 0.3])


def test_weights_that_are_no_numbers_solve_nothing(operator: px.Operator):
    with torch.no_grad():
        next(operator.parameters()).view(-1)[0] = torch.nan
    for solve in (operator.solve, lambda tau: operator(torch.zeros(5, 2), tau)):
        with pytest.raises(px.InputError, match="weights of this operator are NaN or infinite"):
            solve([0.1, 0.2, 0.3])
    with pytest.raises(px.InputError, match="NaN or infinite"):
        list(operator.stream(torch.zeros(4, 3)))


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (None, "it was taught to stop, but points would have stopped too early"),
        (5, "it was trained with applications=, which leaves that out; train one without"),
    ],
)
def test_why_an_operator_does_not_know_when_to_stop(
    wells: px.Problem, tiny: dict, monkeypatch: pytest.MonkeyPatch, asked: int | None, why: str
):
    monkeypatch.setattr("proxlearn.training.arrival.pays_off", lambda *given: False)
    own = px.learn(wells, steps=2, **tiny | {"applications": asked})
    with pytest.raises(px.InputError, match=why):
        px.solve(wells, [1.0, 0.7], "arriving", operator=own, starts=4)


@pytest.mark.usefixtures("any_type")
def test_an_operator_is_loaded_from_a_path():
    with pytest.raises(px.InputError, match=r"must be a path, such as .* not None"):
        px.load(None)  # pyright: ignore[reportArgumentType]


# What is no problem


@pytest.mark.usefixtures("any_type")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("springs", r"not the name 'springs': give px.problem\('springs'\)"),
        (lambda x: x, "not a function: give px.Problem.from_function"),
        (px.Problem, r"not the class Problem: .* Problem\(\)"),
        (3, "not int: give px.problem"),
    ],
    ids=["name", "function", "class", "number"],
)
def test_what_is_no_problem(given, words: str):
    points = torch.zeros(1, 5, 2)
    for use in (
        px.learn,
        *([] if isinstance(given, str) else [px.solve]),  # which takes a name
        lambda it: px.polish(it, None, points),
        lambda it: px.certify(it, None, points),
    ):
        with pytest.raises(px.InputError, match=words):
            use(given)


@pytest.mark.usefixtures("any_type")
def test_an_operator_is_no_problem(operator: px.Operator):
    with pytest.raises(px.InputError, match=r"operator\.solve\(tau\)"):
        px.solve(operator, [0.1, 0.2, 0.3])  # pyright: ignore[reportArgumentType]
    with pytest.raises(px.InputError, match="not Operator"):
        px.learn(operator)  # pyright: ignore[reportArgumentType]


@pytest.mark.usefixtures("any_type")
def test_points_to_polish_are_a_tensor(wells: px.Problem):
    with pytest.raises(px.InputError, match="points must be a tensor"):
        px.polish(wells, [1.0, 0.7], [[0.0, 0.0]])  # pyright: ignore[reportArgumentType]


def test_the_package_has_a_version():
    assert px.__version__.count(".") == 2
