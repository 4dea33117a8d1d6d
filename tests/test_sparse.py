"""Sparse recovery: the problems against their formulas, proximal gradient against known
solutions."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import proxlearn as px
from proxlearn.calculus.certify import CERTIFICATES
from proxlearn.common.seeds import generator_for
from proxlearn.problems.base import held_out
from proxlearn.problems.sparse import recovery as _sparse
from proxlearn.problems.sparse import thresholds
from proxlearn.problems.sparse.recovery import WELL, Recovery, smoothed_power
from proxlearn.problems.sparse.sparse import Sparse
from proxlearn.problems.sparse.sparse_general import SparseGeneral
from proxlearn.problems.sparse.sparse_half import SparseHalf
from proxlearn.problems.sparse.sparse_mcp import SparseMcp
from proxlearn.solvers.solve import curve

KINDS = [Sparse, SparseHalf, SparseMcp, SparseGeneral]
NAMES = ["sparse", "sparse-half", "sparse-mcp", "sparse-general"]
every_problem = pytest.mark.parametrize("problem", [kind() for kind in KINDS], ids=NAMES)


def gradient_of(function, x):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(function(x).sum(), x)[0]


# The problems


def test_the_problems_are_listed_and_their_shared_file_is_not():
    assert set(NAMES) <= set(px.problems.names())
    assert not [name for name in px.problems.names() if name.startswith(("_", "-"))]


def test_measurements_are_the_papers_kind():
    matrix, measured = _sparse.draw_measurements(20_000, generator_for(0, "test"))
    assert matrix.shape == (20_000, 4, 8)
    assert matrix.mean().abs() < 0.01
    assert (matrix.std() - 1).abs() < 0.01
    # Half of 8 entries are uniform in [-2, 2], of variance 4/3; noise adds 0.01.
    assert measured.var().item() == pytest.approx(4 * 4 / 3 + 0.01, rel=0.03)


def test_objectives_are_sums_of_squares_and_the_penalties_of_the_paper():
    x = torch.tensor([[0.0, 0.5, -1.5, 0.0, 2.0, 0.02, 0.0, -0.3]]).double()
    mcp = sum(v - 1.25 * v * v if v <= 0.4 else 0.2 for v in x[0].abs().tolist())
    for problem, tau, penalty in (
        (Sparse(), [0.7, 0.3], 0.7 * (x.abs() ** 0.3).sum()),
        (SparseHalf(), [0.4], 0.4 * x.abs().sqrt().sum()),
        (SparseMcp(), [1.25], mcp),
    ):
        residual = problem.matrix.double() @ x[0] - problem.measured.double()
        value = problem.objective(x[None], torch.tensor([tau]).double())[0, 0]
        assert float(value) == pytest.approx(float(residual.square().sum() + penalty))


@every_problem
def test_the_objective_is_its_two_parts(problem: Recovery):
    tau = held_out(problem, 3)
    x = problem.space.sample(3, 50, generator=torch.Generator().manual_seed(0))
    parts = problem.smooth(x, tau) + problem.penalty(x, tau)
    torch.testing.assert_close(problem.objective(x, tau), parts)


@every_problem
def test_prox_is_of_the_penalty(problem: Recovery):
    """No point of a fine grid along a coordinate has a lower `penalty + |y - x|^2 / (2 step)`."""
    tau = held_out(problem, 4).double()
    x = problem.space.sample(4, 30, generator=torch.Generator().manual_seed(1)).double()
    step = torch.tensor([0.01, 0.04, 0.1, 0.3]).double()[:, None, None]
    y = problem.prox(x, tau, step)

    def loss(y):
        return problem.penalty(y, tau) + (y - x).square().sum(-1) / (2 * step[..., 0])

    ours = loss(y)
    for other in torch.arange(-200, 201).double() / 100:
        trial = y.clone()
        trial[..., 3] = other
        assert (ours <= loss(trial) + 1e-9).all()


@given(st.floats(0.05, 1.0), st.floats(-2.0, 2.0))
def test_smoothed_power_is_exact_but_in_its_well(p: float, x: float):
    at, exponent = (torch.tensor([[[each]]], dtype=torch.double) for each in (x, p))
    ours = float(smoothed_power(at, exponent))
    if x == 0 or abs(x) >= WELL:
        assert ours == pytest.approx(abs(x) ** p, rel=1e-9)
    assert 0 <= ours <= 2**p + 1e-9
    slope = gradient_of(lambda y: smoothed_power(y, exponent), at)
    curve = gradient_of(lambda y: _slope(y, exponent), at)
    assert (slope * at >= 0).all()  # it only ever rises from 0
    assert slope.abs() <= 3 * WELL ** (p - 1)
    assert curve.abs() <= 6 * WELL ** (p - 2)  # nor is the Hessian infinite


def _slope(x, p):
    return torch.autograd.grad(smoothed_power(x, p).sum(), x, create_graph=True)[0]


@pytest.mark.parametrize("p", [0.2, 0.5, 1.0])
def test_smoothed_power_has_no_step_and_no_kink(p: float):
    x = torch.tensor([[[WELL - 1e-9, WELL + 1e-9]]]).double()
    exponent = torch.tensor([[[p]]]).double()
    (before, after), (left, right) = (
        each[0, 0].tolist()
        for each in (
            smoothed_power(x, exponent),
            gradient_of(lambda y: smoothed_power(y, exponent), x),
        )
    )
    assert before == pytest.approx(after, rel=1e-5)
    assert left == pytest.approx(right, rel=1e-5)


def test_rounded_points_have_the_exact_objective():
    problem, tau = Sparse(), torch.tensor([[0.8, 0.25]])
    x = torch.tensor([[[0.004, -0.009, 0.5, 1.0, -0.02, 0.0, 0.3, 0.001]]])
    _, zeros = problem.rounded(x, tau)
    assert (zeros != 0).tolist() == [[[False, False, True, True, True, False, True, False]]]
    exact = problem.smooth(zeros, tau) + 0.8 * (zeros.abs() ** 0.25).sum(-1)
    torch.testing.assert_close(problem.objective(zeros, tau), exact)


def test_rounded_solutions_keep_what_is_known_of_them():
    solved = px.solve(Sparse(), [0.8, 0.25], "proximal_gradient", 64, device="cpu", steps=1500)
    polished = solved.polished()
    meant = polished.rounded()
    assert torch.equal(meant.certificates, polished.certificates)
    reached = meant.unique(smallest_share=0.02).certificates
    assert reached is not None
    assert set(reached) == {"minimum"}  # however stiff zeros are beside the others
    assert (meant.points != 0).logical_and(meant.points.abs() < WELL).sum() == 0


def test_zeros_are_pinned_and_the_other_entries_decide_what_a_point_is():
    """Two measurements alike of the first two entries: along their difference nothing is measured,
    and where neither is 0 the penalty curves down."""
    matrix, tau = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), torch.tensor([[0.5]])
    problem = SparseHalf(matrix, torch.tensor([1.2, 1.0]))
    starts = torch.tensor([[0.6, 0.6, 0.9], [1.1, 0.0, 0.9], [0.0, 1.1, 0.0]])
    x = px.solve(problem, tau, "proximal_gradient", starts, device="cpu", steps=3000).points
    codes = px.certify(problem, tau, x)[0]
    assert [CERTIFICATES[k] for k in codes] == ["saddle", "minimum", "minimum"]
    assert (x[0, 1:] == 0).any(1).all()


def test_general_is_sparse_with_its_measurements_in_tau():
    own, general = Sparse(), SparseGeneral()
    tau = general.tau(own.matrix, own.measured, 0.6, 0.4)
    x = own.space.sample(1, 40, generator=torch.Generator().manual_seed(2))
    expected = own.objective(x, torch.tensor([[0.6, 0.4]]))
    torch.testing.assert_close(general.objective(x, general.batch(tau)), expected)
    step = torch.full((1, 1, 1), 0.05)
    theirs = own.prox(x, torch.tensor([[0.6, 0.4]]), step)
    torch.testing.assert_close(general.prox(x, general.batch(tau), step), theirs)


def test_general_draws_instances_in_its_range():
    general = SparseGeneral()
    inside = general.parameters.contains(held_out(general, 2000))
    assert inside.float().mean() > 0.99


def test_general_has_one_code_for_measurements_that_say_the_same():
    own, general = Sparse(), SparseGeneral()
    turn = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(0)))[0]
    taus = torch.stack(
        [
            general.tau(own.matrix, own.measured, 0.6, 0.4),
            general.tau(turn @ own.matrix, turn @ own.measured, 0.6, 0.4),
            general.tau(own.matrix, own.measured + 1, 0.6, 0.4),
        ]
    )
    encoder = general.encoder()
    code = encoder(general.instances.batch(taus))
    assert code.shape == (3, encoder.size) == (3, 2 + 64 + 8)
    torch.testing.assert_close(code[0], code[1], rtol=1e-4, atol=1e-5)
    assert (code[0] - code[2]).abs().max() > 0.1


def test_measurements_travel_to_a_device_once():
    problem, x = Sparse(), torch.zeros(1, 2, 8)
    first = problem.measurements(x, None)
    assert all(a is b for a, b in zip(first, problem.measurements(x, None)))
    assert problem.measurements(x.double(), None)[0].dtype == torch.double


# Proximal gradient


@pytest.mark.parametrize("accelerated", [False, True])
def test_with_orthogonal_measurements_one_threshold_solves_it(accelerated: bool):
    """`|x - y|^2 + penalty` is the proximal operator itself, with half the weight."""
    y = torch.tensor([1.5, -0.4, 0.05, 0.0])
    settings = {"steps": 300, "accelerated": accelerated, "device": "cpu"}
    for problem, tau, solution in (
        (SparseHalf(torch.eye(4), y), [0.3], thresholds.half(y, 0.15)),
        (Sparse(torch.eye(4), y), [0.3, 0.4], thresholds.power(y, 0.15, 0.4)),
        (SparseMcp(torch.eye(4), y), [0.7], thresholds.mcp(y, 0.5, 0.7)),
    ):
        found = px.solve(problem, tau, "proximal_gradient", starts=y[None], **settings)
        torch.testing.assert_close(found.points[0, 0], solution, rtol=1e-4, atol=1e-4)


@every_problem
@pytest.mark.parametrize("accelerated", [False, True])
def test_proximal_gradient_never_rises(problem: Recovery, accelerated: bool):
    how = {"starts": 64, "device": "cpu", "accelerated": accelerated}
    every = curve(problem, held_out(problem, 4), "proximal_gradient", (0, 1, 2, 5, 20, 200), **how)
    values = [found.rounded().values for found in every]
    for earlier, later in itertools.pairwise(values):
        assert (later <= earlier + 1e-4).all()
    assert values[-1].mean() < 0.3 * values[0].mean()


def test_where_proximal_gradient_rests_the_nonzero_entries_are_stationary():
    problem, tau = SparseHalf(), torch.tensor([[0.627]])
    found = px.solve(problem, tau, "proximal_gradient", starts=64, device="cpu", steps=2000)
    x = found.points.double()
    assert ((x == 0).sum(-1) >= 4).all()  # no more entries than there are measurements
    slope = gradient_of(lambda y: problem.objective(y, tau.double()), x)
    assert slope[x != 0].abs().quantile(0.99) < 1e-2


def test_a_step_that_is_given_is_taken():
    problem, tau = SparseMcp(), torch.tensor([[1.0]])
    one = {"steps": 1, "step": 0.03, "device": "cpu"}
    found = px.solve(problem, tau, "proximal_gradient", starts=16, **one)
    x = found.starts
    slope = gradient_of(lambda y: problem.smooth(y, tau), x)
    torch.testing.assert_close(found.points, thresholds.mcp(x - 0.03 * slope, 0.03, 1.0))


def test_a_problem_in_one_part_is_told_what_it_lacks(wells: px.Problem):
    with pytest.raises(px.InputError, match=r"'wells' does not say .* define smooth.*prox.*lbfgs"):
        px.solve(wells, [1.0, 0.7], "proximal_gradient", starts=3, device="cpu")


# skglm


def test_without_skglm_the_method_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("proxlearn.solvers.skglm.find_spec", lambda name: None)
    with pytest.raises(px.ProxlearnError, match=r"pip install 'proxlearn\[sparse\]'"):
        px.solve(SparseHalf(), [0.5], "skglm", starts=2, device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize("problem", [SparseHalf(), SparseMcp()], ids=["half", "mcp"])
def test_skglm_minimizes_the_same_objective(problem: Recovery):
    """Where it rests, proximal gradient has nowhere lower to go."""
    pytest.importorskip("skglm")
    tau = held_out(problem, 2)
    found = px.solve(problem, tau, "skglm", starts=20, device="cpu")
    on = px.solve(problem, tau, "proximal_gradient", starts=found.points, device="cpu", steps=500)
    assert (on.values >= found.values - 1e-4).float().mean() > 0.9
    assert (found.values < problem.objective(found.starts, tau)).all()


def test_skglm_says_what_it_cannot_solve():
    with pytest.raises(px.InputError, match="'sparse-half' and 'sparse-mcp'"):
        px.solve(Sparse(), [0.5, 0.3], "skglm", starts=2, device="cpu")


# Bad input


@pytest.mark.parametrize(
    ("matrix", "measured", "words"),
    [
        (np.ones((4, 8)), np.ones(3), r"A has shape \(4, 8\) and y \(3,\); expected"),
        (np.ones(4), np.ones(4), r"A has shape \(4,\)"),
        (np.ones((0, 8)), np.ones(0), "A has shape"),
        (np.full((2, 3), np.nan), np.ones(2), "NaN or infinite"),
        ("A", "y", "A must be rows of numbers"),
        (np.ones((4, 8)), None, "both A and y"),
    ],
)
def test_measurements_that_do_not_fit(matrix, measured, words: str):
    with pytest.raises(px.InputError, match=words):
        Sparse(matrix, measured)


def test_a_rank_deficient_matrix_is_solved_with_a_warning():
    matrix = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    matrix[3] = matrix[0] - 2 * matrix[1]
    with pytest.warns(UserWarning, match="A has rank 3 where 4 is possible"):
        problem = SparseHalf(matrix, torch.ones(4))
    found = px.solve(problem, [0.5], "proximal_gradient", starts=32, steps=100, device="cpu")
    assert (found.values <= problem.objective(found.starts, torch.tensor([[0.5]]))).all()
    with pytest.warns(UserWarning, match="A has rank 3"):
        SparseGeneral().tau(matrix, torch.ones(4), 0.5, 0.3)


@pytest.mark.filterwarnings("error")  # it is not called a guess first
@pytest.mark.parametrize(
    ("problem", "tau", "words"),
    [
        (Sparse(), [0.5, 1.2], r"p = 1\.2 is not .* above 0 and at most 1"),
        (Sparse(), [0.5, 0.0], "p = 0 is not"),
        (Sparse(), [[0.5, 0.3], [0.5, -0.3]], r"p = -0\.3 is not"),
        (Sparse(), [-0.5, 0.3], r"alpha = -0\.5 would reward"),
        (Sparse(), [0.5], "tau must be 2 numbers"),
        (SparseHalf(), [-1.0], "alpha = -1"),
        (SparseMcp(), [0.0], "above 0"),
        (SparseGeneral(), [0.5, 0.3], "tau must be 38 numbers"),
    ],
)
def test_taus_that_are_no_penalty(problem: Recovery, tau, words: str):
    with pytest.raises(px.InputError, match=words):
        px.solve(problem, tau, "descent", starts=2, steps=1, device="cpu")


def test_general_is_for_one_size_and_says_where_to_go():
    with pytest.raises(px.InputError, match=r"\(5, 9\); 'sparse-general' is for \(4, 8\)"):
        SparseGeneral().tau(np.random.default_rng(0).normal(size=(5, 9)), np.ones(5), 0.5, 0.3)
    own, general = Sparse(), SparseGeneral()
    with pytest.raises(px.InputError, match=r"p = 2 is not"):
        general.tau(own.matrix, own.measured, 0.5, 2.0)
    tau = general.tau(own.matrix, own.measured, 0.5, 0.3)
    tau[1] = 2.0
    with pytest.raises(px.InputError, match=r"p = 2 is not"):
        general.batch(tau)
    with pytest.raises(px.InputError, match=r"alpha and p must be numbers, not 'x' and 0\.3"):
        general.tau(own.matrix, own.measured, "x", 0.3)


def test_a_penalty_outside_the_range_is_said_to_be_a_guess():
    with pytest.warns(px.RangeWarning, match=r"This tau, \[0\.5, 0\.9\], lies outside .* a guess"):
        assert Sparse().batch([0.5, 0.9]).shape == (1, 2)


@pytest.mark.parametrize("wrong", [-1, 0, float("nan"), float("inf"), "a"])
@pytest.mark.parametrize(
    ("method", "name"),
    [("proximal_gradient", "step"), ("skglm", "tolerance"), ("descent", "rate")],
)
def test_settings_that_are_no_length(method: str, name: str, wrong, any_type: None):
    with pytest.raises(px.InputError, match=f"{name} must be a positive number, not"):
        px.solve(SparseHalf(), [0.5], method, starts=2, device="cpu", **{name: wrong})


def test_other_sizes_are_problems_of_their_own():
    problem = Sparse(np.random.default_rng(0).normal(size=(5, 12)), np.ones(5))
    assert problem.space.dim == 12
    found = px.solve(problem, [0.5, 0.3], "proximal_gradient", starts=4, steps=50, device="cpu")
    assert found.points.shape == (1, 4, 12)
