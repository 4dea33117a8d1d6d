"""Signals that stop a training: Ctrl-C and SIGTERM take effect between two steps."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

HEARD = (signal.SIGINT, signal.SIGTERM)


class Noted:
    """Whether a signal came, which is remembered until the training can stop; calling it tells."""

    def __init__(self) -> None:
        self.number: int | None = None  # of the signal
        self.before: dict[int, Any] = {}  # the handlers that were there before

    def __call__(self) -> bool:
        return self.number is not None

    def note(self, number: int, frame: object) -> None:
        if self():  # a second time: now, whatever is under way
            raise KeyboardInterrupt
        self.number = number

    def obey(self) -> None:
        """Once all is saved: after SIGTERM, end this process as it would have ended without us.
        Ctrl-C only ends the training."""
        if self.number == signal.SIGTERM:
            before = self.before[signal.SIGTERM]
            if callable(before):
                before(signal.SIGTERM, None)
            raise SystemExit(128 + signal.SIGTERM)


@contextmanager
def signals_noted(alone: bool) -> Iterator[Noted]:
    """Within, Ctrl-C is only noted, so that no checkpoint is written in the middle of a step. So is
    SIGTERM, where the process is `alone`: one of several gets it because another is lost. Nothing
    changes where signals are not heard, outside Python's main thread, or where they are ignored, as
    Ctrl-C is in a background job."""
    noted = Noted()
    if threading.current_thread() is threading.main_thread():
        for number in HEARD if alone else HEARD[:1]:
            if signal.getsignal(number) is not signal.SIG_IGN:
                noted.before[number] = signal.signal(number, noted.note)
    try:
        yield noted
    finally:
        for number, before in noted.before.items():
            signal.signal(number, before)
