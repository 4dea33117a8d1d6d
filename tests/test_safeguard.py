"""Iterating with the objective at hand: no step that does not pay, and none after arriving."""

import pytest
import torch
from making import fixed
from torch import Tensor

import proxlearn as px
from proxlearn.operators import applying
from proxlearn.operators.bound_operator import Bound
from proxlearn.problems.base import held_out
from proxlearn.solvers.safeguarded import Safeguarded

TAU = torch.tensor([[1.0, 0.7], [0.6, 1.2]])


def safeguarded(bound: Bound, x: Tensor, steps: int, lam=None) -> tuple[Tensor, Tensor]:
    """Where points end, and after how many applications."""
    (found,) = Safeguarded(lam=lam).along(bound, x, (steps,))
    return found.points, found.applications


def starts(problem: px.Problem, count: int = 40) -> Tensor:
    return problem.space.sample(2, count, generator=torch.Generator().manual_seed(0))


def test_a_step_that_raises_the_objective_is_not_taken(wells: px.Problem):
    """An operator that throws every point to a corner, where the value is high."""
    operator = fixed(wells, lambda x: torch.full_like(x, 2.0))
    x = starts(wells)
    found, _ = safeguarded(operator.bound(wells, TAU), x, 30)
    assert (wells.objective(found, TAU) <= wells.objective(x, TAU)).all()
    assert (found - 2.0).abs().amin(-1).max() > 0.1
    assert wells.objective(found, TAU).median() < 0.5 * wells.objective(x, TAU).median()


def test_a_step_must_pay_for_its_length_as_well(wells: px.Problem):
    """Jumping to another minimum of the same depth lowers nothing; lam says what it costs."""
    at_minimum = torch.tensor([1.0, 0.7]).expand(1, 3, 2)
    operator = fixed(wells, lambda x: -x)
    found, _ = safeguarded(operator.bound(wells, TAU[:1]), at_minimum, 5)
    assert torch.equal(found, at_minimum)


def test_points_that_have_arrived_cost_nothing_more(wells: px.Problem):
    """The operator sees fewer and fewer points, and at last none."""
    seen = []

    def nearer(x: Tensor) -> Tensor:
        seen.append(x.shape[1])
        target = x.sign() * TAU[:, None]
        return x + 0.3 * (target - x)

    found, used = safeguarded(fixed(wells, nearer, lam=0.1).bound(wells, TAU), starts(wells), 200)
    assert len(seen) < 100
    assert seen == sorted(seen, reverse=True)
    assert used.max() == len(seen)
    assert used.float().mean() < used.max()
    assert wells.objective(found, TAU).max() < 1e-4


def test_a_step_is_taken_twice_as_far_where_that_pays_too(wells: px.Problem):
    """Halfway to the minimum, twice: there. Onto the minimum, twice: beyond it, so not taken."""
    x = starts(wells)
    target = x.sign() * TAU[:, None]
    for share in (0.5, 1.0):
        operator = fixed(wells, lambda x, share=share: x + share * (target - x), lam=0.01)
        found, _ = safeguarded(operator.bound(wells, TAU), x, 1)
        pays = wells.objective(x, TAU) > 0.01 * (target - x).square().sum(-1) + 0.01
        torch.testing.assert_close(found[pays], target[pays])
        assert pays.float().mean() > 0.7


def test_some_points_at_a_time_end_where_all_at_once_do(
    wells: px.Problem, monkeypatch: pytest.MonkeyPatch
):
    x, operator = starts(wells), fixed(wells, lambda x: 0.9 * x, lam=0.1)
    whole = safeguarded(operator.bound(wells, TAU), x, 20)
    for most in (7, 40):
        monkeypatch.setattr(applying, "ON_CPU", most)
        for part, all_at_once in zip(safeguarded(operator.bound(wells, TAU), x, 20), whole):
            torch.testing.assert_close(part, all_at_once)


def test_lam_is_one_of_the_range_or_several(wells: px.Problem, tiny: dict):
    operator = px.learn(wells, steps=30, **tiny | {"lam": (0.5, 8.0)})
    found = {
        lam: px.solve(
            wells, TAU, "safeguarded", 16, device="cpu", operator=operator, steps=2, lam=lam
        ).points
        for lam in (None, operator.lam, 0.5, (8.0, 0.5))
    }
    assert torch.equal(found[None], found[operator.lam])
    assert not torch.equal(found[0.5], found[8.0, 0.5])


def test_px_solve_says_how_many_applications_each_start_took(wells: px.Problem, tiny: dict):
    operator = px.learn(wells, steps=1, **tiny)
    some = {"starts": 8, "device": "cpu"}
    by_operator = px.solve(wells, TAU, "operator", operator=operator, steps=3, **some)
    assert (by_operator.applications == 3).all()
    guarded = px.solve(wells, TAU, "safeguarded", operator=operator, steps=30, **some)
    assert guarded.applications.shape == (2, 8)
    assert guarded.applications.max() <= 30
    assert px.solve(wells, TAU, "lbfgs", **some).applications is None


def test_on_conics_a_hundred_applications_are_no_worse_than_five():
    conic, operator = px.problem("conic"), px.pretrained("conic", "cpu")
    tau = held_out(conic, 8)
    x = conic.space.sample(8, 128, generator=torch.Generator().manual_seed(0))
    few, _ = safeguarded(operator.bound(conic, tau), x, 5)
    many, used = safeguarded(operator.bound(conic, tau), x, 100)
    assert (conic.objective(many, tau) <= conic.objective(few, tau) + 1e-6).all()
    assert used.float().mean() < 12


def test_a_number_of_steps_that_is_0_is_the_starts(wells: px.Problem):
    x = starts(wells)
    found, used = safeguarded(fixed(wells, lambda x: x).bound(wells, TAU), x, 0)
    assert torch.equal(found, x)
    assert not used.any()


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_a_lam_that_is_relative_is_brought_to_the_scale_of_each_instance(scale: float):
    problem, operator = px.problem("maxcut"), px.pretrained("maxcut", "cpu")
    weights = held_out(problem, 3)
    both = torch.cat((weights, scale * weights))
    found = px.solve(problem, both, "safeguarded", 16, device="cpu", operator=operator, steps=30)
    first, second = found.values.mean(1).chunk(2)
    torch.testing.assert_close(first, second / scale, rtol=0.02, atol=0)
