"""What `reproduce trust` calls true, and what it calls claiming too much."""

from pathlib import Path
from typing import Any

import arm
import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.experiments import trust
from proxlearn.experiments._families import KINDS, families
from proxlearn.experiments._judging import are_isolated, are_optima, true_optima
from proxlearn.experiments._shared import Folder
from proxlearn.networks.coupling import Coupling
from proxlearn.problems.base import held_out
from proxlearn.problems.objectives import check_objective

NONE = torch.zeros(1, 0)
SIZES = trust.Sizes({}, starts=64, many_starts=128, truth_starts=256)
FOLDER = Folder(Path("nowhere"), device="cpu", progress=False)
EVERY = {each.name: each for each in families()}


class Stub(px.Operator):
    """An operator that leads where it is told to, and doubts itself or not."""

    card: Any = None
    doubtful: Any = None
    goes: Any

    def solve(self, tau, starts, seed):  # pyright: ignore[reportIncompatibleMethodOverride]
        found = px.solve(self.problem, tau, "lbfgs", starts, seed, "cpu")
        return px.Solutions.of(found.space, self.goes(found), found.starts)


def well(found: px.Solutions) -> Tensor:
    return found.points


def to_one_place(found: px.Solutions) -> Tensor:
    return torch.full_like(found.points, 0.1)


def judged(name: str, goes: Any, doubtful: str | None = None) -> dict[str, Any]:
    operator = Stub.untrained(EVERY[name].problem, Coupling(blocks=1, width=8, shared=8))
    operator.goes, operator.doubtful = goes, doubtful
    operator.provenance = {"steps": 1, "seconds": 1.0}
    return trust.judge(EVERY[name], operator, SIZES, FOLDER)


def test_there_are_sixty_families_of_five_kinds_and_a_seed_fixes_them():
    again = families()
    assert len(EVERY) == len(again) == 60
    assert {each.kind for each in again} == set(KINDS)
    for one, other in zip(EVERY.values(), again):
        tau = held_out(one.problem, 2)
        x = one.problem.space.sample(2, 8, generator=torch.Generator().manual_seed(0))
        values = one.problem.objective(x, tau)
        assert torch.equal(values, other.problem.objective(x, tau))
        check_objective(one.problem, "cpu")


@pytest.mark.parametrize(
    ("function", "point", "right"),
    [
        (lambda x: x.square().sum(-1), (0.0, 0.0), True),
        (lambda x: x.square().sum(-1), (0.01, 0.0), False),  # still on its way
        (lambda x: x[..., 0].square() - x[..., 1].square(), (0.0, 0.0), False),
        (lambda x: x[..., 0].square() - 1e-4 * x[..., 1].square(), (0.0, 0.0), False),
        (lambda x: x.abs().sum(-1), (0.0, 0.0), True),  # a kink
        (lambda x: -x.sum(-1), (1.0, 1.0), True),  # a corner
        (lambda x: x[..., 1].square() - x[..., 0], (1.0, 0.0), True),  # on an edge
        (lambda x: x[..., 1].square() + x[..., 0], (1.0, 0.0), False),  # the other edge
        (lambda x: x[..., 1].square(), (0.5, 0.0), True),  # flat
        (lambda x: (4e3 * x).cos().sum(-1), (torch.pi / 4e3, torch.pi / 4e3), True),  # narrow
    ],
)
def test_a_minimum_has_nothing_lower_around_it(function: Any, point: Any, right: bool):
    problem = px.Problem.from_function(function, px.Box(-1.0, 1.0, dim=2))
    assert are_optima(problem, NONE, torch.tensor([point])).tolist() == [right]


def test_the_truth_has_the_minima_on_edges_and_counts_them_once():
    truth = true_optima(EVERY["egg-box"].problem, NONE, 1024, 64)
    assert len(truth.optima) == 24
    assert truth.known
    assert 12 < truth.reachable <= 24


def test_too_many_minima_are_not_known():
    truth = true_optima(EVERY["rastrigin-8d"].problem, NONE, 256, 64)
    assert not truth.known
    assert len(truth.optima) > 100


def test_who_finds_everything_claims_what_is_true():
    row = judged("himmelblau", well)
    assert (row["optima"], row["found"], row["listed"], row["false"]) == (4, 4, 4, 0)
    assert (row["near_share"], row["found_share"], row["missed"]) == (1.0, 1.0, 0)
    assert not row["poor"]
    assert not row["too_much"]


def test_who_finds_little_claims_too_much_unless_it_says_so():
    silent = judged("himmelblau", to_one_place)
    assert (silent["found"], silent["leads"], silent["near_share"]) == (1, 1, 0.0)
    assert silent["missed"] == 0  # it speaks of where it leads
    assert silent["poor"]
    assert silent["too_much"]
    honest = judged("himmelblau", to_one_place, "It was trained for too short a time.")
    assert honest["warned"]
    assert not honest["too_much"]
    assert honest["too_much_unjudged"]


def test_an_interval_is_held_against_where_more_starts_lead():
    def more_from_many(found: px.Solutions) -> Tensor:
        return (to_one_place if found.points.shape[1] == SIZES.starts else well)(found)

    row = judged("himmelblau", more_from_many)
    assert (row["found"], row["leads"], row["intervals"], row["missed"]) == (1, 4, "1 to 1", 1)
    assert row["too_much"]


def test_a_plateau_has_no_optima_of_its_own():
    """Where sin^20 is 0 up to rounding, every point is one; the isolated ones are counted."""
    problem = EVERY["michalewicz"].problem
    truth = true_optima(problem, NONE, 512, 64)
    assert are_isolated(problem, NONE, truth.optima).all()
    assert len(truth.optima) < 20
    level = px.Problem.from_function(lambda x: 0 * x.sum(-1), px.Box(-1.0, 1.0, dim=2))
    assert are_optima(level, NONE, torch.zeros(1, 2)).all()
    assert not are_isolated(level, NONE, torch.zeros(1, 2)).any()


def test_a_false_optimum_is_never_excused(monkeypatch: pytest.MonkeyPatch):
    def none(problem: Any, tau: Any, points: Tensor) -> Tensor:
        return torch.zeros(len(points), dtype=torch.bool)

    monkeypatch.setattr(trust, "are_optima", none)
    row = judged("himmelblau", well, "Doubtful.")
    assert row["false"] == 4
    assert row["too_much"]


def test_the_table_counts_families_and_names_those_that_claim_too_much():
    good = judged("mccormick", well)
    poor = good | {"family": "poor", "missed": 1, "poor": True, "too_much_unjudged": True}
    silent = poor | {"family": "silent", "too_much": True, "listed": 1, "found": 1}
    table = trust.table([good, silent, poor | {"kind": "edge", "warned": True}])
    assert "| literature | 2 | 0 | 1 | 1 | 0 of 1 | 0 | 1 (50%) | 1 (50%) |" in table
    assert "| edge | 1 | 0 | 1 | 1 | 1 of 1 | 0 | 0 (0%) | 1 (100%) |" in table
    assert "| all | 3 | 0 | 2 | 2 | 1 of 2 | 0 | 1 (33%) | 2 (67%) |" in table
    assert "\n| silent | 2 | 1 | 0 | 1 |" in table


def test_the_minima_of_an_arm_are_found_and_certified():
    problem, tau = arm.arms(0.03), arm.targets(2, seed=0)
    assert (tau.norm(dim=-1) < arm.REACH).all()
    truth = [true_optima(problem, each, 64, 64).optima for each in tau.split(1)]
    found = px.solve(problem, tau, "lbfgs", 64, device="cpu").polished()
    row = arm.judged("L-BFGS", found, truth)
    assert (row["share"], row["complete"], row["false"], row["unconverged"]) == (1.0, 2, 0, 0.0)
    missing = [torch.cat((each, -each[:1])) for each in truth]
    assert arm.judged("L-BFGS", found, missing)["complete"] == 0
