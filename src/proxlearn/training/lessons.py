"""The loop of the trainings that need no checkpoints: of a swarm, and of a network that gives a
fixed number of points."""

import time
from abc import ABC, abstractmethod

from proxlearn.common.provenance import Row
from proxlearn.training.optimizer import schedule
from proxlearn.training.progress import Bar
from proxlearn.training.session import REPORT_SECONDS, Report


class Lesson(ABC):
    """A training under way, which knows how to take a step."""

    @abstractmethod
    def step_at(self, step: int, rate: float) -> None:
        """Take the step of this number, at this learning rate."""

    @abstractmethod
    def read(self) -> float:
        """The loss of the last step; an error once it is no number."""


def teach(lesson: Lesson, bar: Bar, rate: float, steps: int, seconds: float | None) -> Row:
    """Train for so many seconds, where they are given, or else steps; how many of both it took.
    `rate` is the largest learning rate, which falls to 0 along a cosine."""
    started, reported, step, spent = time.monotonic(), 0.0, 0, 0.0
    while spent < 1:
        lesson.step_at(step, rate * schedule(spent))
        step, elapsed = step + 1, time.monotonic() - started
        spent = elapsed / seconds if seconds else step / steps
        if elapsed - reported > REPORT_SECONDS or spent >= 1:
            bar.show(Report(step, elapsed, spent, {"loss": lesson.read()}))
            reported = elapsed
    return {"steps": step, "seconds": round(time.monotonic() - started, 1)}
