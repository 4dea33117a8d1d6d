"""Advice on lam: constants that are known, the theorem's bound, and what a person reads."""

import json
import math

import pytest
import torch

import proxlearn as px
from proxlearn.calculus.curvature import Curvature, extreme_curvatures, survey
from proxlearn.calculus.derivatives import in_double
from proxlearn.measure.advise import Advice, Measured, _measure, advise, proximal_gap
from proxlearn.problems.base import held_out
from proxlearn.problems.maxcut.maxcut import Maxcut
from proxlearn.problems.shrinkage import Shrinkage

NONE = torch.zeros(1, 0)


def quadratic(matrix: torch.Tensor, space: px.Space | None = None) -> px.Problem:
    return px.Problem.from_function(
        lambda x: ((x @ matrix.to(x.dtype)) * x).sum(-1) / 2,
        space or px.Box(-1.0, 1.0, dim=len(matrix)),
    )


def rotated(*eigenvalues: float) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    size = len(eigenvalues)
    turn, _ = torch.linalg.qr(torch.randn(size, size, generator=generator, dtype=torch.float64))
    return turn @ torch.diag(torch.tensor(eigenvalues, dtype=torch.float64)) @ turn.T


@pytest.mark.parametrize(
    "eigenvalues",
    [(-3.0, 0.5, 2.0), (1.0, 4.0), (2.0,) * 5, (0.0, 0.0, 7.0), (-1.0, -1.0, -1.0, 5.0, 5.0)],
    ids=str,
)
def test_lanczos_gives_the_extreme_eigenvalues(eigenvalues: tuple[float, ...]):
    """Repeated ones included, where its vectors run out early."""
    problem = quadratic(rotated(*eigenvalues))
    x = problem.space.sample(1, 7, generator=torch.Generator().manual_seed(0)).double()
    least, most = extreme_curvatures(problem, x, NONE)
    torch.testing.assert_close(least, torch.full_like(least, min(eigenvalues)))
    torch.testing.assert_close(most, torch.full_like(most, max(eigenvalues)))


def test_lanczos_is_close_in_many_dimensions():
    values = [-5.0, *torch.linspace(0, 1, 58).tolist(), 9.0]
    problem = quadratic(rotated(*values))
    least, most = extreme_curvatures(problem, torch.zeros(1, 1, 60, dtype=torch.float64), NONE)
    assert least.item() == pytest.approx(-5, abs=1e-3)
    assert most.item() == pytest.approx(9, abs=1e-3)


def test_on_a_sphere_the_curvature_is_that_of_the_sphere():
    """`x' A x / 2` at an eigenvector of A curves by the differences of its eigenvalues."""
    problem = quadratic(torch.diag(torch.tensor([1.0, 4.0, 9.0])), px.Sphere(3))
    least, most = extreme_curvatures(
        problem, torch.tensor([[[0.0, 1.0, 0.0]]], dtype=torch.float64), NONE
    )
    torch.testing.assert_close((least.item(), most.item()), (-3.0, 5.0))


def test_the_cosine_grid_has_its_constants():
    found = survey(px.problem("cosine"))
    assert found.weak_convexity == pytest.approx(40 * math.pi**2, rel=1e-3)
    assert found.lipschitz == pytest.approx(40 * math.pi**2, rel=1e-3)
    assert (found.kinked, found.ridged) == (False, False)


def test_a_convex_quadratic_and_a_line_have_no_negative_curvature():
    found = survey(quadratic(rotated(0.5, 4.0)))
    assert found.weak_convexity == 0
    assert found.lipschitz == pytest.approx(4, rel=1e-3)
    line = survey(px.Problem.from_function(lambda x: 3 * x.sum(-1), px.Box(-1.0, 1.0, dim=2)))
    assert line.slope == pytest.approx(3 * math.sqrt(2))
    assert line == Curvature(0.0, 0.0, line.slope, False, False)


def test_kinks_are_seen_and_ridges_told_from_ditches():
    ditch = survey(Shrinkage(2))
    assert (ditch.weak_convexity, ditch.kinked, ditch.ridged) == (0, True, False)
    ridge = survey(px.problem("springs"))
    assert (ridge.kinked, ridge.ridged) == (True, True)


def test_the_search_goes_beyond_the_sample():
    """Random points and taus, many more of them, do not find a worse place."""
    problem = px.problem("conic")
    tau = held_out(problem, 500)
    x = problem.space.sample(500, 200, generator=torch.Generator().manual_seed(0))
    least, most = extreme_curvatures(problem, *in_double(problem, x, tau))
    found = survey(problem)
    assert found.weak_convexity > -least.min()
    assert found.lipschitz > most.max()


def test_the_gap_to_a_known_proximal_step_is_right():
    """Of the l1 norm, where Newton's method comes near the kinks: the loss by hand."""
    problem, lam = Shrinkage(2), 2.0
    x = problem.space.sample(1, 40, generator=torch.Generator().manual_seed(0)).double()
    true = problem.proximal(x)
    gap, error = proximal_gap(problem, NONE, x, true, torch.tensor([lam]))
    assert gap == pytest.approx(0, abs=1e-6)
    assert error == pytest.approx(0, abs=1e-6)
    off = true + 0.1

    def loss(y):
        return (problem.objective(y, NONE) + lam / 2 * (y - x).square().sum(-1)).mean().item()

    gap, _ = proximal_gap(problem, NONE, x, off, torch.tensor([lam]))
    assert gap == pytest.approx(loss(off) - loss(true), rel=0.05)


def test_the_bound_is_tight_on_a_quadratic_and_needs_lam_above_xi():
    """All curvature is -1: at lam = 3 the loss is 1-strongly convex times 2, so bound = error."""
    window = px.Box(-1.0, 1.0, dim=2, open=True)
    dome = px.Problem.from_function(lambda x: -x.square().sum(-1) / 2, window)
    x = dome.space.sample(1, 50, generator=torch.Generator().manual_seed(0)).double()
    exact = 3 / (3 - 1) * x  # the proximal step of -|y|^2/2: lam x / (lam - 1)
    gap, error = proximal_gap(dome, NONE, x, exact + 0.05, torch.tensor([3.0]))
    assert error == pytest.approx(2 * 0.05**2, rel=1e-6)
    assert 2 * gap / (3 - survey(dome).weak_convexity) == pytest.approx(error, rel=1e-3)


def test_a_lam_that_is_relative_is_brought_to_the_scale_of_each_instance():
    """How far an operator for graphs of any size is off does not depend on their scale."""

    class Light(Maxcut):
        def sample(self, count, split, generator):
            return 1e-3 * super().sample(count, split, generator)

    operator, curvature = px.pretrained("maxcut", "cpu"), Curvature(1.0, 1.0, 1.0, False, False)
    usual, light = (
        _measure(problem, operator, 2.5, curvature, seed=0) for problem in (Maxcut(4), Light(4))
    )
    assert light.error == pytest.approx(usual.error, rel=0.01)
    assert light.gap == pytest.approx(1e-3 * usual.gap, rel=0.01)


def test_an_operator_keeps_the_bound(tiny: dict):
    """However badly it is trained, as the theorem says."""
    grid = px.Problem.from_function(
        lambda x: -(2 * x).cos().sum(-1) + x.square().sum(-1), px.Box(-2.0, 2.0, dim=2), name="egg"
    )
    operator = px.learn(grid, steps=30, **tiny | {"lam": 4.0})
    advice = advise(grid, operator, device="cpu")
    seen = advice.operator
    assert advice.curvature.weak_convexity == pytest.approx(2, rel=1e-2)
    assert advice.lam == seen.lam == 4.0
    assert advice.holds
    assert 0 < seen.error <= seen.bound
    assert seen.bound == pytest.approx(2 * seen.gap / (4 - advice.curvature.weak_convexity))
    small = px.learn(grid, steps=1, **tiny | {"lam": 0.5})
    assert advise(grid, small, device="cpu").operator.bound is None


def test_an_operator_for_a_range_is_measured_at_the_lam_asked_for(wells: px.Problem, tiny: dict):
    operator = px.learn(wells, steps=5, **tiny | {"lam": (0.5, 8.0)})
    usual, large = (advise(wells, operator, lam, device="cpu") for lam in (None, 8.0))
    assert (usual.operator.lam, large.operator.lam) == (operator.lam, 8.0)
    assert usual.operator.error != large.operator.error
    one = px.learn(wells, steps=5, **tiny)
    assert advise(wells, one, 8.0, device="cpu").operator.lam == one.lam


def test_the_lam_is_the_one_given_or_the_problems_or_estimated(wells: px.Problem):
    cosine = px.problem("cosine")
    assert advise(cosine, device="cpu").lam == 400
    less = advise(cosine, lam=10.0, device="cpu")
    assert (less.lam, less.holds) == (10, False)
    assert less.applications(400.0) == 40 * less.lam * less.distance // less.curvature.slope + 1
    assert advise(wells, device="cpu").lam > 0
    with pytest.raises(px.InputError, match="lam must be a number, 0 or more, not -1"):
        advise(cosine, lam=-1.0, device="cpu")


def made(lam: float, operator: Measured | None = None, **changes: bool) -> Advice:
    curvature = {"weak_convexity": 2.0, "lipschitz": 8.0, "slope": 4.0} | {
        "kinked": False,
        "ridged": False,
    }
    return Advice("a", lam, Curvature(**curvature | changes), 10.0, operator)


@pytest.mark.parametrize(
    ("advice", "said"),
    [
        (made(3.0), "holds, as lam > xi = 2; with lam = 3 it takes about 8 applications"),
        (made(1.0), "does not hold: it asks for lam > xi = 2, with which it would take about 5"),
        (made(0.1), "with lam = 0.1 it takes about one application to cross a basin"),
        (made(3.0, ridged=True, kinked=True), "no lam meets the condition"),
        (made(3.0), "Lipschitz constant of at least 8"),
        (made(3.0, kinked=True), "The gradient jumps somewhere"),
        (made(3.0, Measured(3.0, 0.1, 0.05, 0.2)), "2 eps / (lam - xi) is 0.2"),
        (made(1.0, Measured(1.0, 0.1, 0.05, None)), "no bound for it, as lam <= xi"),
    ],
)
def test_the_sentences_say_what_holds(advice: Advice, said: str):
    assert said in " ".join(advice.sentences())


def test_the_numbers_are_json():
    found = json.loads(json.dumps(made(3.0, Measured(3.0, 0.1, 0.05, 0.2)).as_dict()))
    assert found["curvature"]["weak_convexity"] == 2
    assert (found["holds"], found["applications"], found["operator"]["bound"]) == (True, 8, 0.2)
