"""Signals that stop a training: Ctrl-C and SIGTERM are obeyed when nothing is half done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

HEARD = (signal.SIGINT, signal.SIGTERM)


class Noted:
    """Whether a signal was heard; calling it tells."""

    def __init__(self) -> None:
        self.number: int | None = None  # of the signal
        self.before: dict[int, Any] = {}  # what a signal did before it was only noted

    def __call__(self) -> bool:
        return self.number is not None

    def note(self, number: int, frame: object) -> None:
        if self():  # a second time: now, whatever is under way
            raise KeyboardInterrupt
        self.number = number

    def obey(self) -> None:
        """Once all is saved: end this process, where it was told to end (SIGTERM), as it would have
        ended. Ctrl-C only ends the training."""
        if self.number == signal.SIGTERM:
            before = self.before[signal.SIGTERM]
            if callable(before):
                before(signal.SIGTERM, None)
            raise SystemExit(128 + signal.SIGTERM)


@contextmanager
def signals_noted(alone: bool) -> Iterator[Noted]:
    """Within, Ctrl-C and, where a process is `alone`, SIGTERM are only noted, as half a step must
    not end up in a checkpoint. (Of several processes, one that is told to end has lost another.)
    Nothing changes where they could not be heard: outside Python's main thread, and where they are
    ignored, as Ctrl-C is in a background job."""
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
