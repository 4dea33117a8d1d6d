"""Knowing when not to trust an operator, and what to do then."""

from pathlib import Path

import pytest
import torch
from making import fixed

import proxlearn as px
from proxlearn.answers.solutions import DOUBTS
from proxlearn.errors import RangeWarning

INSIDE, OUTSIDE = [1.0, 0.7], [3.0, 0.7]


def said(solutions: px.Solutions) -> list[str]:
    return [DOUBTS[code] for code in solutions.doubts.tolist()]


def down(x: torch.Tensor) -> torch.Tensor:
    """Towards the nearest corner of the unit square, where the wells are about."""
    return (x + x.sign()) / 2


def up(x: torch.Tensor) -> torch.Tensor:
    return torch.full_like(x, 2.0)


def test_a_tau_outside_the_trained_range_is_in_doubt(wells: px.Problem):
    with pytest.warns(RangeWarning):
        found = fixed(wells, down).solve([INSIDE, OUTSIDE], starts=64)
    assert said(found) == ["none", "outside the trained range"]
    assert "1 doubtful" in repr(found)
    assert said(found[1]) == ["outside the trained range"]


def test_steps_that_do_not_lower_the_objective_are_in_doubt(wells: px.Problem):
    assert said(fixed(wells, down).solve(INSIDE, starts=64)) == ["none"]
    assert said(fixed(wells, up).solve(INSIDE, starts=64)) == ["steps do not lower the objective"]


def test_without_an_objective_the_range_is_all_there_is(wells: px.Problem):
    operator = fixed(wells, up)
    operator.problem = None
    assert said(operator.solve(INSIDE, starts=8)) == ["none"]


def test_fallback_solves_what_is_in_doubt_by_multistart(wells: px.Problem):
    given = {"operator": fixed(wells, up), "starts": 64, "device": "cpu"}
    doubtful = px.solve(wells, INSIDE, "operator", **given)
    assert said(doubtful) == ["steps do not lower the objective"]
    solved = px.solve(wells, INSIDE, "operator", fallback=True, **given)
    assert said(solved) == ["none"]
    assert torch.equal(solved.starts, doubtful.starts)
    assert len(solved.unique()) == 4
    assert solved.values.max() < 1e-6


def test_fallback_leaves_alone_what_is_trusted(wells: px.Problem):
    given = {"operator": fixed(wells, down), "starts": 64, "device": "cpu"}
    with pytest.warns(RangeWarning):
        plain = px.solve(wells, [INSIDE, OUTSIDE], "operator", **given)
    with pytest.warns(RangeWarning):
        both = px.solve(wells, [INSIDE, OUTSIDE], "operator", fallback=True, **given)
    assert torch.equal(both.points[0], plain.points[0])
    assert not torch.equal(both.points[1], plain.points[1])


def test_a_method_that_is_not_trained_has_no_doubts(wells: px.Problem):
    assert px.solve(wells, INSIDE, "lbfgs", starts=8, device="cpu").doubts is None
    with pytest.raises(px.InputError, match="'lbfgs' has none"):
        px.solve(wells, INSIDE, "lbfgs", starts=8, device="cpu", fallback=True)


def test_points_that_begin_at_an_optimum_are_not_in_doubt(wells: px.Problem):
    nearly = torch.tensor(INSIDE).expand(1, 50, 2).contiguous()
    rounded = fixed(wells, lambda x: x + 1e-5)
    starts = torch.cat((nearly, wells.space.sample(1, 14)), 1)
    assert said(rounded.solve(INSIDE, starts=starts, steps=1)) == ["none"]


def test_a_safeguarded_operator_is_in_doubt_as_well(wells: px.Problem):
    with pytest.warns(RangeWarning):
        found = px.solve(
            wells, OUTSIDE, "safeguarded", starts=8, device="cpu", operator=fixed(wells, down)
        )
    assert said(found) == ["outside the trained range"]


def test_the_shipped_operator_is_trusted_on_its_own_family():
    conic = px.problem("conic")
    taus = conic.sample(64, "test", torch.Generator().manual_seed(0))
    found = px.pretrained("conic", "cpu").solve(taus, starts=128)
    assert (found.doubts == 0).float().mean() > 0.95


def test_a_file_keeps_doubts(wells: px.Problem, tmp_path: Path):
    found = fixed(wells, up).solve(INSIDE, starts=8)
    assert said(px.Solutions.load(found.save(tmp_path / "a.npz"))) == said(found)
