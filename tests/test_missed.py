"""How many were missed: formulas by hand, the interval by simulation, starts until it is few."""

import io
import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from making import fixed as operator_that_applies
from rich.console import Console
from torch import Tensor

import proxlearn as px
from proxlearn.answers import starts as beginning
from proxlearn.answers.starts import UNSEEN_LEVEL
from proxlearn.answers.unseen import unseen, unseen_mass
from proxlearn.networks.coupling import Coupling
from proxlearn.problems.base import held_out

SMALL = Coupling(blocks=1, width=8, shared=8)


def test_small_cases_by_hand():
    few = unseen([10, 2, 1, 1, 1])  # n = 15, f1 = 3, f2 = 1
    assert (few.starts, few.seen, few.singletons, few.doubletons) == (15, 5, 3, 1)
    assert few.unseen_mass == pytest.approx(3 / 15)
    assert few.total == pytest.approx(5 + 14 / 15 * 3 * 2 / (2 * 2))
    assert few.low == 5
    assert few.high >= 8
    many = unseen([50, 30, 20])
    assert (many.total, many.unseen_mass, many.low, many.high) == (3, 0, 3, 3)
    one = unseen([1])
    assert (one.seen, one.total, one.unseen_mass) == (1, 1, 1)
    assert one.high > 1  # one hit of one optimum says nothing against others
    assert unseen([3, 0, 3]) == unseen([3, 3])


def test_the_interval_is_chaos():
    """n = 100, f1 = 6, f2 = 2, written out: T = 0.99 * 6 * 5 / 6 and its variance."""
    hits = [1] * 6 + [2] * 2 + [45, 45]
    extra = 0.99 * 6 * 5 / (2 * 3)
    variance = extra + 0.99**2 * 6 * 11**2 / (4 * 9) + 0.99**2 * 36 * 2 * 25 / (4 * 81)
    factor = math.exp(1.96 * math.sqrt(math.log(1 + variance / extra**2)))
    found = unseen(hits)
    assert found.total == pytest.approx(10 + extra)
    assert found.low == math.floor(10 + extra / factor)
    assert found.high == math.ceil(10 + extra * factor)


def test_nothing_found_says_so():
    none = unseen([])
    assert (none.seen, none.unseen_mass, none.total) == (0, 1.0, 0.0)
    assert repr(none) == "No optimum was found, so the number missed cannot be estimated."
    with pytest.raises(px.InputError, match="0 or more, but there is -1"):
        unseen([3, -1])


def test_the_estimate_is_a_sentence():
    assert repr(unseen([50, 30, 20, 9])) == (
        "Found 4 of an estimated 4.0 optima (95% interval: 4 to 4). The chance that another start "
        "finds a new one is 0.00% (with 95% confidence at most 2.75%)."
    )
    said = repr(unseen([10, 2, 1, 1, 1]))
    assert said.startswith("Found 5 of an estimated 6.4 optima (95% interval: 5 to ")
    assert said.endswith("finds a new one is 20.00% (with 95% confidence at most 51.69%).")
    assert repr(unseen([9])).startswith("Found 1 of an estimated 1.0 optima ")


SHARES = {
    "equal": np.full(20, 1 / 20),
    "uneven": np.linspace(1, 5, 20) / np.linspace(1, 5, 20).sum(),
    "skewed": 0.85 ** np.arange(15) / (0.85 ** np.arange(15)).sum(),
}


@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES.keys())
def test_the_interval_covers_the_true_number(shares: np.ndarray):
    """Basins of known shares, with three to ten starts for each on average."""
    generator = np.random.default_rng(0)
    for starts in (3 * len(shares), 10 * len(shares)):
        drawn = [unseen(generator.multinomial(starts, shares).tolist()) for _ in range(300)]
        assert np.mean([each.low <= len(shares) <= each.high for each in drawn]) >= 0.9
        assert np.mean([each.high - each.low for each in drawn]) < len(shares)  # and is no yawn


def test_the_unseen_mass_is_right_on_average():
    generator, shares = np.random.default_rng(0), SHARES["skewed"]
    estimated, true = [], []
    for _ in range(400):
        hits = generator.multinomial(30, shares)
        estimated.append(unseen(hits.tolist()).unseen_mass)
        true.append(shares[hits == 0].sum())
    assert np.mean(estimated) == pytest.approx(np.mean(true), rel=0.1)


def test_the_interval_covers_the_peaks_of_random_landscapes():
    problem = px.problem("peaks")
    tau = held_out(problem, 200)
    found = px.solve(problem, tau, "lbfgs", starts=64, device="cpu", steps=50)
    known = [len(each) for each in problem.truth(tau)]
    estimates = [unseen(found[k]) for k in range(200)]
    covered = [each.low <= k <= each.high for each, k in zip(estimates, known)]
    assert sum(covered) >= 0.9 * 200
    assert len(set(known)) >= 4
    assert sum(each.seen < k for each, k in zip(estimates, known)) >= 10  # some do miss a peak


def test_peaks_have_their_summits_and_cover_each_other():
    """On a fine grid, the lowest points around are the truth."""
    problem = px.problem("peaks")
    tau = held_out(problem, 10)
    side = torch.linspace(0, 1, 401)
    grid = torch.cartesian_prod(side, side)
    for k, truth in enumerate(problem.truth(tau)):
        value = problem.objective(grid[None], tau[k : k + 1])[0].reshape(401, 401)
        around = [
            value[1 + a : 400 + a, 1 + b : 400 + b]
            for a, b in itertools.product((-1, 0, 1), repeat=2)
            if (a, b) != (0, 0)
        ]
        low = (value[1:-1, 1:-1] < torch.stack(around).amin(0)).nonzero()
        lowest = (low + 1) / 400
        distance = torch.cdist(lowest, truth)
        assert distance.amin(1).max() < 0.003
        assert distance.amin(0).max() < 0.003


def test_hits_count_every_start_that_arrived(wells: px.Problem):
    found = px.solve(wells, [1.0, 0.7], "lbfgs", starts=300, device="cpu")
    estimate = unseen(found)
    assert estimate.of_optima
    assert estimate.seen == 4
    assert estimate.starts == int(found.inside.sum())


def test_auto_draws_few_starts_for_few_optima_and_more_for_many(wells: px.Problem):
    few = px.solve(wells, [1.0, 0.7], "lbfgs", starts="auto", device="cpu", steps=40)
    assert few.points.shape == few.starts.shape == (1, 256, 2)
    fixed = px.solve(wells, [1.0, 0.7], "lbfgs", starts=256, device="cpu", steps=40)
    assert torch.equal(few.points, fixed.polished().points)
    grid = px.problem("cosine")
    plain = {"steps": 100, "rate": 1e-3, "adam": False, "device": "cpu"}
    many = px.solve(grid, None, "descent", starts="auto", **plain)
    assert many.points.shape[1] == many.values.shape[1] == many.inside.shape[1] > 256
    assert len(many.unique(smallest_share=0.0)) >= 120
    loose = px.solve(grid, None, "descent", starts="auto", unseen_level=0.5, **plain)
    assert loose.points.shape[1] < many.points.shape[1]
    assert torch.equal(loose.starts, many.starts[:, : loose.starts.shape[1]])


def test_auto_counts_where_points_lead_and_not_where_they_are(wells: px.Problem):
    """After a few steps of descent no two points are alike, but few optima are near."""
    short = {"steps": 60, "rate": 0.01, "device": "cpu"}
    found = px.solve(wells, [1.0, 0.7], "descent", starts="auto", **short)
    on_the_way = px.solve(wells, [1.0, 0.7], "descent", starts=256, **short)
    assert torch.equal(found.starts, on_the_way.starts)
    assert unseen(on_the_way.unique(smallest_share=0.0, verify=False)).unseen_mass > UNSEEN_LEVEL
    assert unseen_mass(found) < UNSEEN_LEVEL
    assert found.unique().certificates == ["minimum"] * 4


def test_auto_gives_up_at_the_limit(monkeypatch: pytest.MonkeyPatch):
    """Every start an optimum of its own: without end, but for the limit."""
    monkeypatch.setattr(beginning, "MOST_STARTS", 1000)
    monkeypatch.setattr(beginning, "unseen_mass", lambda solutions: 1.0)
    flat = px.Problem.from_function(lambda x: 1e-9 * x.sum(-1), px.Box(0.0, 1.0, dim=2))
    found = px.solve(flat, None, "descent", starts="auto", device="cpu", steps=0)
    assert found.points.shape[1] == 1024


def test_an_operator_draws_starts_too(wells: px.Problem, tiny: dict, monkeypatch):
    monkeypatch.setattr(beginning, "MOST_STARTS", 1024)
    operator = px.learn(wells, steps=200, **tiny)
    found = operator.solve([[1.0, 0.7], [0.8, 0.8]], starts="auto", unseen_level=0.2)
    assert found.points.shape[0] == 2
    assert found.points.shape[1] in [256 * 2**k for k in range(3)]
    assert (found.applications == operator.applications).all()
    assert found.tau.shape == (2, 2)


def operator_that_goes(wells: px.Problem, to: Callable[[Tensor], Tensor]) -> px.Operator:
    operator = operator_that_applies(wells, to)
    operator.applications = 1
    return operator


def nearly_there(x: Tensor) -> Tensor:
    return x.sign() * x.new_tensor((0.8, 0.5)) + 0.2 * x


def test_auto_means_the_same_for_an_operator_and_for_its_method(wells: px.Problem):
    operator = operator_that_goes(wells, nearly_there)
    ours = operator.solve([1.0, 0.7], starts="auto")
    how = {"starts": "auto", "device": "cpu", "operator": operator}
    theirs = px.solve(wells, [1.0, 0.7], "operator", **how)
    assert ours.points.shape == (1, 256, 2)
    for name in ("points", "certificates", "doubts"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name))
    unpolished = operator.solve([1.0, 0.7], starts=256)
    plain = unseen(unpolished.unique(smallest_share=0.0, verify=False))
    assert not plain.of_optima
    assert "where this operator leads" in repr(plain)
    assert plain.unseen_mass > UNSEEN_LEVEL > unseen_mass(ours)


def test_without_an_objective_auto_counts_points_as_they_are(wells: px.Problem):
    operator = operator_that_goes(wells, nearly_there)
    operator.problem = None
    found = operator.solve([1.0, 0.7], starts="auto")
    fixed = operator.solve([1.0, 0.7], starts=256)
    assert found.points.shape[1] > 256
    assert found.certificates is None
    assert torch.equal(found.points[:, :256], fixed.points)


def test_auto_keeps_doubts_though_polish_mends_what_the_operator_did(wells: px.Problem):
    """Doubts are of where the operator led, not of where polish led from there."""
    up = operator_that_goes(wells, lambda x: torch.full_like(x, 1.8))
    how = {"starts": "auto", "device": "cpu", "operator": up}
    found = px.solve(wells, [1.0, 0.7], "operator", **how)
    assert found.doubts.tolist() == [2]
    trusted = px.solve(wells, [1.0, 0.7], "operator", fallback=True, **how)
    assert trusted.doubts.tolist() == [0]
    assert trusted.certificates is not None
    assert len(trusted.unique()) == 4


def test_auto_says_how_far_it_is_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    screen = io.StringIO()
    monkeypatch.setattr(beginning, "MOST_STARTS", 512)
    monkeypatch.setattr(
        beginning, "Console", lambda stderr: Console(file=screen, force_terminal=True, width=200)
    )
    waves = px.Problem.from_function(lambda x: (40 * x).cos().sum(-1), px.Box(0.0, 1.0, dim=6))
    px.solve(waves, None, "descent", starts="auto", device="cpu", steps=0)
    assert "256 starts: one more would find a new optimum with a chance of" in screen.getvalue()


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, math.nan])
def test_a_level_is_a_share(wells: px.Problem, level: float):
    with pytest.raises(px.InputError, match="a share between 0 and 1"):
        px.solve(wells, [1.0, 0.7], "lbfgs", starts="auto", unseen_level=level, device="cpu")


def test_auto_is_the_only_word_for_starts(wells: px.Problem):
    with pytest.raises(px.InputError, match="a whole number, points or 'auto', not 'many'"):
        px.solve(wells, [1.0, 0.7], "lbfgs", starts="many", device="cpu")


def test_the_chance_of_a_new_one_is_bounded():
    """By the rule of three where no optimum was hit once."""
    assert unseen([100, 200]).unseen_most == pytest.approx(3 / 300, rel=0.01)
    rng, share = np.random.default_rng(0), np.array([0.6, 0.3] + [0.01] * 10)
    held = 0
    for _ in range(200):
        hits = rng.multinomial(150, share)
        held += share[hits == 0].sum() <= unseen(hits.tolist()).unseen_most
    assert held >= 190


def test_an_operator_counts_what_it_leads_to_and_a_descent_all(wells: px.Problem):
    tau = [1.0, 0.7]
    by_descent = px.solve(wells, tau, "lbfgs", starts=64).polished()
    assert unseen(by_descent).of_all
    one = operator_that_applies(wells, lambda x: torch.ones_like(x))
    found = px.solve(wells, tau, "operator", starts=64, operator=one).polished()
    estimate = unseen(found)
    assert (estimate.seen, estimate.of_optima, estimate.of_all) == (1, True, False)
    assert "It may pass over others" in repr(estimate)
    assert not unseen(one.solve(tau, starts=64).valued(wells, tau).polished()).of_all


def test_auto_counts_cuts():
    """Of a relaxation it counts what solutions mean, until these are unlikely to be more."""
    problem = px.problem("maxcut")
    weights = held_out(problem, 1, 5)
    found = px.solve(problem, weights, starts="auto", unseen_level=0.01, device="cpu")
    assert unseen(found.rounded()).unseen_mass <= 0.01
    listed = found.rounded().unique()
    assert unseen(listed).unseen_mass <= 0.01  # which is what is printed
    assert not unseen(listed).of_optima
