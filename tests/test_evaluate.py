"""The protocol on cases that can be worked out by hand."""

import copy
import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.answers import metrics
from proxlearn.answers.solutions import Solutions
from proxlearn.common.files import write_rows
from proxlearn.common.provenance import row
from proxlearn.measure.evaluate import Candidate, compare, evaluate, over_trials, solve_timed
from proxlearn.problems.base import held_out

DESCENT = {"steps": 300, "rate": 0.05, "adam": False}  # ends in the wells, to within rounding
STAY = {"steps": 0}  # every start stays where it is
SIZES = {"instances": 3, "starts": 64, "witnesses": 32, "device": "cpu"}


def solutions_at(points: list[list[float]], space: px.Space, values: list[float] | None = None):
    x = torch.tensor([points])
    found = Solutions.of(space, x, x)
    if values is None:
        return found
    return Solutions(space, x, x, found.inside, torch.tensor([values]))


def is_flat_json(rows: list[dict]) -> bool:
    """Flat, and the same after writing and reading; NaN and infinity are no JSON."""
    plain = all(isinstance(v, str | int | float | None) for r in rows for v in r.values())
    return plain and json.loads(json.dumps(rows, allow_nan=False)) == rows


def test_a_method_that_finds_what_the_reference_found_has_no_divergence(wells: px.Problem):
    (found,) = evaluate(
        wells, [("descent", "descent", DESCENT)], reference=("descent", DESCENT), trials=2, **SIZES
    )
    assert found["wd"] < 1e-3
    assert found["wp@0.05"] == found["rho"] == found["rho_gt"] == 1
    assert found["value"] == pytest.approx(0, abs=1e-6)


def test_the_reference_begins_elsewhere(wells: px.Problem):
    """Otherwise a method that does nothing would agree with itself."""
    (found,) = evaluate(
        wells, [("starts", "descent", STAY)], reference=("descent", STAY), trials=2, **SIZES
    )
    assert found["wd"] > 0.05


def test_rows_are_per_candidate_and_threshold_and_flat(wells: px.Problem):
    candidates = [("descent", "descent", DESCENT), Candidate("starts", "descent", STAY)]
    rows = evaluate(
        wells,
        candidates,
        reference=("descent", DESCENT),
        thresholds=(1e-3, None),
        deltas=(0.01, 0.25),
        trials=3,
        **SIZES,
    )
    assert [(r["label"], r["threshold"]) for r in rows] == [
        ("descent", 1e-3),
        ("descent", None),
        ("starts", 1e-3),
        ("starts", None),
    ]
    assert is_flat_json(rows)
    assert {"wp@0.01", "wp_std@0.25", "wd_std", "seconds", "torch", "machine"} <= rows[0].keys()
    assert rows[0]["instances"] == 3
    assert rows[0]["reference"] == "descent(steps=300, rate=0.05, adam=False)"
    assert rows[2]["rho"] < 0.1 < rows[2]["rho_gt"] == 1  # hardly a start is below the threshold


def test_trials_give_mean_and_spread_of_the_witnessed_metrics():
    """Truth {0, 10} on a line, found {0}: a witness sees 0 on the left of 5 and 5 on the right."""
    line = px.Box(0.0, 10.0, dim=1)
    found, truth = solutions_at([[0.0]], line), solutions_at([[0.0], [10.0]], line)
    left, right = [[1.0]], [[9.0]]
    witnesses = torch.tensor([left * 3 + right, left + right * 3])  # two trials of four
    seen = over_trials(found, truth, witnesses, None, (1.0, 6.0))
    assert seen["wd"] == pytest.approx(5 * (1 / 4 + 3 / 4) / 2)
    assert seen["wd_std"] == pytest.approx(5 * (1 / 2) / math.sqrt(2))
    assert seen["wp@1"] == pytest.approx(0.5)
    assert seen["wp@6"] == 1
    each = [metrics.witnessed(found, truth, w, deltas=(1.0,)) for w in witnesses]
    assert [m.divergence.item() for m in each] == pytest.approx([1.25, 3.75])


def test_thresholds_leave_out_the_worse_solutions():
    line = px.Box(0.0, 10.0, dim=1)
    found = solutions_at([[0.0], [7.0]], line, values=[0.0, 1.0])
    truth = solutions_at([[0.0]], line, values=[0.0])
    witnesses = line.sample(2, 50)
    assert over_trials(found, truth, witnesses, 0.5, ())["wd"] == 0
    assert over_trials(found, truth, witnesses, 0.5, ())["rho"] == 0.5
    assert over_trials(found, truth, witnesses, None, ())["wd"] > 0


def test_recall_counts_the_known_minimizers_that_are_near_a_solution():
    square = px.Box(0.0, 1.0, dim=2)
    found = solutions_at([[0.5, 0.5], [0.1, 0.1], [3.0, 3.0]], square)
    known = [torch.tensor([[0.5, 0.505], [0.9, 0.9], [3.0, 3.0]])]  # the last is outside
    assert metrics.recall(found, known) == (1, 3)
    assert metrics.recall(found, known, tolerance=0.6) == (2, 3)


def test_a_problem_that_knows_its_truth_gets_found_and_known():
    springs = px.problem("springs")
    rows = evaluate(
        springs,
        [("descent", "descent", DESCENT), ("starts", "descent", STAY)],
        reference=("descent", DESCENT),
        trials=2,
        **SIZES,
    )
    known = sum(len(each) for each in springs.truth(held_out(springs, 3)))  # pyright: ignore
    assert rows[0]["known"] == rows[1]["known"] == known
    assert rows[1]["found"] < rows[0]["found"] <= known


def test_a_single_objective_is_one_instance():
    (found,) = evaluate(
        px.problem("cosine"),
        [("starts", "descent", STAY)],
        reference=("descent", STAY),
        trials=1,
        **SIZES,
    )
    assert found["instances"] == 1
    assert found["wd_std"] == 0


def test_a_candidate_that_leaves_the_space_has_no_value_but_a_row(wells: px.Problem):
    """Steps of a whole kilometre: nothing inside, the divergence is the diameter."""
    wells = copy.copy(wells)
    wells.space = wells.space.opened
    away = {"steps": 1, "rate": 1e3}
    (found,) = evaluate(
        wells, [("away", "descent", away)], reference=("descent", DESCENT), trials=1, **SIZES
    )
    assert found["value"] is None
    assert found["rho"] == 0
    assert found["wd"] == pytest.approx(wells.space.diameter)
    assert is_flat_json([found])


def test_operators_say_how_often_they_are_applied_and_trained(wells: px.Problem, tiny):
    operator = px.learn(wells, **tiny | {"steps": 3, "applications": 7})
    rows = evaluate(
        wells,
        [("default", "operator", {"operator": operator}), ("two", "operator", _two(operator))],
        reference=("descent", STAY),
        trials=1,
        **SIZES,
    )
    assert [r["applications"] for r in rows] == [7, 2]
    assert rows[0]["trained_steps"] == 3


def _two(operator: px.Operator) -> dict:
    return {"operator": operator, "steps": 2}


def test_compare_has_a_row_for_each_and_solutions_from_the_same_starts(wells: px.Problem):
    rows, solved = compare(
        wells,
        [("descent", "descent", DESCENT), ("starts", "descent", STAY)],
        tau=[1.0, 1.0],
        reference=("descent", DESCENT),
        starts=64,
        device="cpu",
    )
    assert [r["label"] for r in rows] == ["descent", "starts"]
    assert rows[0]["optima"] == 4  # (+-1, +-1)
    assert rows[0]["best"] == pytest.approx(0, abs=1e-9)
    assert rows[0]["wp@0.05"] == 1
    assert rows[1]["optima"] < 4  # a start is an optimum only where it is beside one
    assert is_flat_json(rows)
    assert torch.equal(solved[0].solutions.starts, solved[1].solutions.starts)
    assert torch.equal(solved[1].solutions.points, solved[1].solutions.starts)


def test_compare_takes_test_instances_without_tau(wells: px.Problem):
    candidates = [("starts", "descent", STAY)]
    (found,), _ = compare(wells, candidates, reference=("descent", STAY), **SIZES)
    assert found["instances"] == 3


def test_solving_is_timed(wells: px.Problem):
    tau = held_out(wells, 2)
    solved = solve_timed(wells, Candidate("d", "descent", DESCENT), tau, 8, 0, "cpu")
    assert solved.seconds > 0
    assert solved.solutions.points.shape == (2, 8, 2)


def test_unknown_settings_are_said(wells: px.Problem):
    with pytest.raises(px.UnknownNameError, match="stepz"):
        evaluate(wells, [("d", "descent", {"stepz": 1})], reference=("descent", STAY), **SIZES)


def test_plain_points_need_a_space_and_as_many_instances():
    x: Tensor = torch.zeros(1, 3, 2)
    witnesses = torch.rand(5, 2)
    with pytest.raises(px.InputError, match="space="):
        metrics.witnessed(x, x, witnesses)
    with pytest.raises(px.InputError, match="instances"):
        metrics.witnessed(x, torch.zeros(2, 3, 2), witnesses, space=px.Box(0.0, 1.0, dim=2))
    same = metrics.witnessed(x, x[0], witnesses, space=px.Box(0.0, 1.0, dim=2))
    assert same.divergence.item() == 0


def test_rows_carry_versions_and_replace_what_was_there(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    write_rows(path, [row(answer=1), row(answer=2)])
    write_rows(path, [row(answer=3)])
    (only,) = map(json.loads, path.read_text().splitlines())
    assert only["answer"] == 3
    assert {"proxlearn", "torch", "python", "machine"} <= only.keys()
