"""As many threads as train fastest, by measuring."""

import time

import pytest
import torch

import proxlearn as px
from proxlearn.training import threads
from proxlearn.training.threads import TRIES, threads_restored, with_best_threads


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with nothing else to do."""
    monkeypatch.setattr(threads, "_get_along", lambda _: True)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("fastest", [1, 2, 4])
def test_the_fastest_number_of_threads_is_taken(fastest: int):
    seen = []

    def step() -> None:
        seen.append(torch.get_num_threads())
        time.sleep(0.001 if seen[-1] == fastest else 0.004)

    with threads_restored():
        steps = with_best_threads(step, 4)
        for _ in range(3 * TRIES + 10):
            next(steps)
    assert set(seen) == {1, 2, 4}
    assert seen[-10:] == [fastest] * 10


@pytest.mark.usefixtures("quiet")
def test_they_are_tried_again_when_others_come(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(threads, "AGAIN", 0.0)
    monkeypatch.setattr(threads, "SELDOM", 0)
    slow = {1}

    def step() -> None:
        time.sleep(0.004 if torch.get_num_threads() in slow else 0.001)

    with threads_restored():
        steps = with_best_threads(step, 2)
        for _ in range(2 * TRIES + 1):
            next(steps)
        slow.symmetric_difference_update({1, 2})
        for _ in range(2 * TRIES):
            next(steps)
        monkeypatch.setattr(threads, "AGAIN", 10.0)
        for _ in range(2 * TRIES + 1):
            next(steps)
        assert torch.get_num_threads() == 1


def test_a_training_leaves_the_threads_as_they_were(tiny: dict):
    with threads_restored():
        torch.set_num_threads(2)
        px.learn(px.problem("conic"), seconds=0.5, **tiny)
        assert torch.get_num_threads() == 2


def test_threads_that_wait_for_each_other_are_not_tried(monkeypatch: pytest.MonkeyPatch):
    """On a busy machine not even one step is made with several."""
    monkeypatch.setattr(threads, "_probed", lambda count: 0.001 * count**2)
    seen = []
    with threads_restored():
        threads.settle_threads(2)
        assert torch.get_num_threads() == 1
        steps = with_best_threads(lambda: seen.append(torch.get_num_threads()), 2)
        for _ in range(TRIES + 3):
            next(steps)
    assert set(seen) == {1}
