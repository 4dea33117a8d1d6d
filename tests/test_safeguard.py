"""Iterating with the objective at hand: no step that does not pay, and none after arriving."""

import torch
from torch import Tensor

import proxlearn as px
from proxlearn.encoders.vector import Vector
from proxlearn.network import Architecture
from proxlearn.problem import held_out
from proxlearn.solvers.safeguarded import safeguarded

TAU = torch.tensor([[1.0, 0.7], [0.6, 1.2]])


class Fixed(px.Operator):
    """An operator whose application is a given function of x."""

    def __init__(self, problem: px.Problem, apply, lam: float = 1.0):
        encoder = Vector.over(problem.parameters)
        super().__init__(problem.space, encoder, Architecture(blocks=1, width=8, shared=8), lam)
        self.apply_to = apply

    def forward(self, x, prepared):
        return self.apply_to(x)


def starts(problem: px.Problem, count: int = 40) -> Tensor:
    return problem.space.sample(2, count, generator=torch.Generator().manual_seed(0))


def test_a_step_that_raises_the_objective_is_not_taken(wells: px.Problem):
    """An operator that throws every point to a corner, where the value is high."""
    operator = Fixed(wells, lambda x: torch.full_like(x, 2.0))
    x = starts(wells)
    found, _ = safeguarded(operator, wells, TAU, x, 30)
    assert (wells.objective(found, TAU) <= wells.objective(x, TAU)).all()
    assert (found - 2.0).abs().amin(-1).max() > 0.1
    assert wells.objective(found, TAU).median() < 0.5 * wells.objective(x, TAU).median()


def test_a_step_must_pay_for_its_length_as_well(wells: px.Problem):
    """Jumping to another minimum of the same depth lowers nothing; lam says what it costs."""
    at_minimum = torch.tensor([1.0, 0.7]).expand(1, 3, 2)
    operator = Fixed(wells, lambda x: -x)
    found, _ = safeguarded(operator, wells, TAU[:1], at_minimum, 5)
    assert torch.equal(found, at_minimum)


def test_points_that_have_arrived_cost_nothing_more(wells: px.Problem):
    """The operator sees fewer and fewer points, and at last none."""
    seen = []

    def halfway(x: Tensor) -> Tensor:
        seen.append(x.shape[1])
        target = x.sign() * TAU[:, None]
        return (x + target) / 2

    found, used = safeguarded(Fixed(wells, halfway, lam=0.1), wells, TAU, starts(wells), 200)
    assert len(seen) < 100
    assert seen == sorted(seen, reverse=True)
    assert used.max() == len(seen)
    assert used.float().mean() < used.max()
    assert wells.objective(found, TAU).max() < 1e-4


def test_on_conics_a_hundred_applications_are_no_worse_than_five():
    conic, operator = px.problem("conic"), px.pretrained("conic", "cpu")
    tau = held_out(conic, 8)
    x = conic.space.sample(8, 128, generator=torch.Generator().manual_seed(0))
    few, _ = safeguarded(operator, conic, tau, x, 5)
    many, used = safeguarded(operator, conic, tau, x, 100)
    assert (conic.objective(many, tau) <= conic.objective(few, tau) + 1e-6).all()
    assert used.float().mean() < 12


def test_a_number_of_steps_that_is_0_is_the_starts(wells: px.Problem):
    x = starts(wells)
    found, used = safeguarded(Fixed(wells, lambda x: x), wells, TAU, x, 0)
    assert torch.equal(found, x)
    assert not used.any()
