"""The loop around methods that go step by step: parts, points that stop, curves, time."""

import io
import time
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
import torch
from rich.console import Console
from torch import Tensor

import proxlearn as px
from proxlearn.calculus import loop
from proxlearn.common import progress
from proxlearn.problems.base import held_out
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

    def rated(self, prepared, x):
        return x[..., 0] / 8

    def found(self, prepared, state):
        return state.x + 0 * state.steps

    def at_once(self, x):
        return self.most


STEP, LEFT = torch.ones(2, 1), torch.tensor([[3.0, 0.0, 1.0], [0.0, 2.0, 0.0]])[..., None]


def test_only_what_moves_is_computed():
    """The busiest instance decides how many columns there are; what stopped stays as it is."""
    method = CountDown()
    reached = loop.Loop(method, None, STEP, LEFT).run(10)
    assert (reached.x == -1).all()
    assert reached.arrived.all()
    assert reached.steps.tolist() == [[4, 1, 2], [1, 3, 1]]
    assert method.seen == [(2, 3), (2, 2), (2, 1), (2, 1)]
    assert LEFT[0, 0] == 3  # the starts are left alone


def test_a_curve_says_who_has_arrived_by_then():
    none, two, all_of_them = loop.Loop(CountDown(), None, STEP, LEFT).curve((0, 2, 9))
    assert torch.equal(none.x, LEFT)
    assert not none.arrived.any()
    assert two.steps.tolist() == [[2, 1, 2], [1, 2, 1]]
    assert two.arrived.tolist() == [[False, True, True], [True, False, True]]
    assert two.x[0, 0] == 1
    assert all_of_them.arrived.all()


@pytest.mark.parametrize(("most", "parts"), [(1, 6), (2, 4), (3, 2), (5, 2), (6, 1)])
def test_parts_of_any_size_reach_the_same(most: int, parts: int):
    method = CountDown(most)
    whole, split = (loop.Loop(each, None, STEP, LEFT).run(3) for each in (CountDown(), method))
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
    reached, steps = loop.Loop(chosen, wells, TAU, starts).run_for(0.3)
    assert 0.2 < time.perf_counter() - began < 1.5
    assert steps > 10
    assert torch.equal(reached.x, loop.Loop(chosen, wells, TAU, starts).run(steps).x)
    assert loop.Loop(chosen, wells, TAU, starts).run_for(0.0)[1] == 1


def test_a_race_ends_when_every_point_has_arrived():
    reached, steps = loop.Loop(CountDown(), None, STEP, LEFT).run_for(60.0)
    assert reached.arrived.all()
    assert steps < 20


def test_a_race_takes_every_part_equally_far(wells: px.Problem, monkeypatch: pytest.MonkeyPatch):
    starts = wells.space.sample(3, 4, generator=torch.Generator().manual_seed(0))
    chosen = solver("descent", rate=0.01)
    monkeypatch.setattr(loop, "ON_CPU", 2)
    reached, steps = loop.Loop(chosen, wells, TAU, starts).run_for(0.2)
    assert torch.equal(reached.x, loop.Loop(chosen, wells, TAU, starts).run(steps).x)


@pytest.mark.parametrize("at", [(), (2, 1), (-1, 3)])
def test_numbers_of_steps_have_an_order(at: tuple[int, ...]):
    with pytest.raises(px.InputError, match="0 or more and ascending"):
        loop.Loop(CountDown(), None, STEP, LEFT).curve(at)


class Leaps(CountDown):
    """Makes several steps at once, and cannot tell when a point has stopped."""

    def many_steps(self, prepared, state, count):
        self.seen.append(count)
        return Left(state.x - count * prepared[:, None], state.steps + count)

    def moving(self, state):
        return None


def test_steps_between_two_points_of_a_curve_are_made_at_once():
    method = Leaps()
    every = loop.Loop(method, None, STEP, LEFT).curve((0, 1, 4, 9))
    assert method.seen == [1, 3, 5]
    assert [each.x[0, 0].item() for each in every] == [3, 2, -1, -6]
    assert every[-1].steps is None
    assert every[-1].arrived is None


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


ON = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
    ),
]


@pytest.mark.parametrize("device", ON)
def test_a_state_whose_tensors_change_places_is_kept_right(device: str):
    one, none = torch.ones(1, 2, 1, device=device), torch.zeros(1, 0, device=device)
    reached = loop.Loop(Fibonacci(), None, none, one).curve(range(12))
    seen = [int(each.x[0, 1]) for each in reached]
    assert seen == [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233]


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("descent", {}),
        ("descent", {"adam": False}),
        ("proximal_gradient", {}),
        ("proximal_gradient", {"accelerated": True}),
    ],
)
@pytest.mark.parametrize("device", ON)
def test_steps_in_place_go_the_same_way(
    method: str, settings: dict, device: str, monkeypatch: pytest.MonkeyPatch
):
    """As a captured graph makes them, which is replayed where it was recorded."""
    name = "conic" if method == "descent" else "sparse-half"  # no kinks to be thrown about by
    problem, chosen = px.problem(name), solver(method, **settings)
    tau = held_out(problem, 2)
    starts = problem.space.sample(2, 8, generator=torch.Generator().manual_seed(0))
    expected = loop.Loop(chosen, problem, tau, starts).run(30)
    if device == "cpu":
        init = loop._Walk.__init__

        def in_place(walk: loop._Walk, *given: Any) -> None:
            init(walk, *given)
            walk.state = loop._mapped(torch.clone, walk.state)
            walk.replay = walk._step_in_place

        monkeypatch.setattr(loop._Walk, "__init__", in_place)
    tau, starts = tau.to(device), starts.to(device)
    reached = loop.Loop(chosen, problem, tau, starts).run(30)
    torch.testing.assert_close(reached.x.cpu(), expected.x, rtol=1e-3, atol=1e-3)
    assert (reached.x.cpu() - starts.cpu()).abs().max() > 0.01


def test_a_loop_that_takes_long_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch):
    shares: list[float] = []

    @contextmanager
    def noting(name: str):
        yield shares.append

    monkeypatch.setattr(loop, "late_bar", noting)
    problem, tau = px.problem("conic"), held_out(px.problem("conic"), 3)
    quiet = px.solve(problem, tau, "descent", starts=16, device="cpu", steps=250)
    assert not shares
    with loop.progress_shown("conic"):
        told = px.solve(problem, tau, "descent", starts=16, device="cpu", steps=250)
    assert torch.equal(quiet.points, told.points)
    assert 50 <= len(shares) <= 300
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_a_bar_is_for_terminals_and_for_patience(monkeypatch: pytest.MonkeyPatch):
    for terminal, patience, drawn in (
        (True, -1.0, True),
        (True, 99.0, False),
        (False, -1.0, False),
    ):
        screen = io.StringIO()
        console = Console(file=screen, force_terminal=terminal, width=80)
        monkeypatch.setattr(progress, "Console", lambda stderr, console=console: console)
        monkeypatch.setattr(progress, "PATIENCE", patience)
        with progress.late_bar("conic by descent") as show:
            show(0.5)
        assert ("conic by descent" in screen.getvalue()) == drawn
