"""The loop around methods that go step by step: parts, points that stop, curves, time."""

import time
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.calculus import loop
from proxlearn.solvers.base import solver

TAU = torch.tensor([[1.0, 0.7], [0.6, 1.3], [1.2, 1.2]])


class Left(NamedTuple):
    x: Tensor
    steps: int


class CountDown(loop.Method):
    """Points count down to 0 and stop there, in steps of tau."""

    def __init__(self, most: int = 100):
        self.most, self.seen, self.prepared = most, [], 0

    def prepare(self, problem, tau, starts):
        self.prepared += 1
        return tau

    def init(self, prepared, x):
        return Left(x, 0)

    def one_step(self, prepared, state):
        self.seen.append(tuple(state.x.shape[:2]))
        return Left((state.x - prepared[:, None]).clamp(min=-1), state.steps + 1)

    def moving(self, state):
        return state.x[..., 0] >= 0

    def found(self, prepared, state):
        return state.x + 0 * state.steps

    def at_once(self, x):
        return self.most


STEP, LEFT = torch.ones(2, 1), torch.tensor([[3.0, 0.0, 1.0], [0.0, 2.0, 0.0]])[..., None]


def test_only_what_moves_is_computed():
    """The busiest instance decides how many columns there are; what stopped stays as it is."""
    method = CountDown()
    reached = loop.run(method, None, STEP, LEFT, 10)
    assert (reached.x == -1).all()
    assert reached.arrived.all()
    assert reached.steps.tolist() == [[4, 1, 2], [1, 3, 1]]
    assert method.seen == [(2, 3), (2, 2), (2, 1), (2, 1)]
    assert LEFT[0, 0] == 3  # the starts are left alone


def test_a_curve_says_who_has_arrived_by_then():
    none, two, all_of_them = loop.trace(CountDown(), None, STEP, LEFT, (0, 2, 9))
    assert torch.equal(none.x, LEFT)
    assert not none.arrived.any()
    assert two.steps.tolist() == [[2, 1, 2], [1, 2, 1]]
    assert two.arrived.tolist() == [[False, True, True], [True, False, True]]
    assert two.x[0, 0] == 1
    assert all_of_them.arrived.all()


@pytest.mark.parametrize(("most", "parts"), [(1, 6), (2, 4), (3, 2), (5, 2), (6, 1)])
def test_parts_of_any_size_reach_the_same(most: int, parts: int):
    method = CountDown(most)
    whole, split = (loop.run(each, None, STEP, LEFT, 3) for each in (CountDown(), method))
    assert all(torch.equal(a, b) for a, b in zip(whole, split))
    assert max(i * n for i, n in method.seen) <= most
    assert method.prepared == (1 if parts == 1 else 2)  # once for every group of instances


@pytest.mark.parametrize("method", ["descent", "lbfgs"])
def test_classical_methods_in_parts_go_the_same_way(
    method: str, wells: px.Problem, monkeypatch: pytest.MonkeyPatch
):
    starts = wells.space.sample(3, 10, generator=torch.Generator().manual_seed(0))
    chosen = solver(method, steps=20)
    whole = chosen.run(wells, TAU, starts)
    for most in (4, 10, 25):
        monkeypatch.setattr(loop, "ON_CPU", most)
        torch.testing.assert_close(chosen.run(wells, TAU, starts), whole)


def test_a_race_makes_as_many_steps_as_fit(wells: px.Problem):
    starts = wells.space.sample(3, 4, generator=torch.Generator().manual_seed(0))
    chosen = solver("descent", rate=0.01)
    began = time.perf_counter()
    reached, steps = loop.run_for(chosen, wells, TAU, starts, 0.3)
    assert 0.2 < time.perf_counter() - began < 1.5
    assert steps > 10
    assert torch.equal(reached.x, loop.run(chosen, wells, TAU, starts, steps).x)
    assert loop.run_for(chosen, wells, TAU, starts, 0.0)[1] == 1


def test_a_race_ends_when_every_point_has_arrived():
    reached, steps = loop.run_for(CountDown(), None, STEP, LEFT, 60.0)
    assert reached.arrived.all()
    assert steps < 20


def test_a_race_takes_every_part_equally_far(wells: px.Problem, monkeypatch: pytest.MonkeyPatch):
    starts = wells.space.sample(3, 4, generator=torch.Generator().manual_seed(0))
    chosen = solver("descent", rate=0.01)
    monkeypatch.setattr(loop, "ON_CPU", 2)
    reached, steps = loop.run_for(chosen, wells, TAU, starts, 0.2)
    assert torch.equal(reached.x, loop.run(chosen, wells, TAU, starts, steps).x)


@pytest.mark.parametrize("most", [100, 1])
def test_progress_is_shown_to_the_end(most: int):
    said = []
    loop.run(CountDown(most), None, STEP, LEFT, 250, show=lambda *each: said.append(each))
    assert said == sorted(said)
    assert said[-1] == (6 * 250, 6 * 250)
    assert len(said) > 100


@pytest.mark.parametrize("at", [(), (2, 1), (-1, 3)])
def test_numbers_of_steps_have_an_order(at: tuple[int, ...]):
    with pytest.raises(px.InputError, match="in ascending order"):
        loop.trace(CountDown(), None, STEP, LEFT, at)


class Turns(NamedTuple):
    x: Tensor
    before: Tensor


class Fibonacci(loop.Method):
    """Passes a tensor of its state on to another place."""

    captures = True

    def init(self, prepared, x):
        return Turns(x, x)

    def one_step(self, prepared, state):
        return Turns(state.x + state.before, state.x)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_state_whose_tensors_change_places_is_kept_right(device: str):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    one = torch.ones(1, 2, 1, device=device)
    reached = loop.trace(Fibonacci(), None, torch.zeros(1, 0, device=device), one, range(12))
    seen = [int(each.x[0, 1]) for each in reached]
    assert seen == [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233]
