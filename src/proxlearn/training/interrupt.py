"""Ctrl-C that waits for the step under way: half a step must not end up in a checkpoint."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_noted() -> Iterator[Callable[[], bool]]:
    """Within, Ctrl-C is only noted; the function given tells whether it was pressed.
    Nothing changes where it could not be heard: outside Python's main thread, and where it is
    ignored, as in a background job."""
    pressed: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield lambda: False
        return

    def note(number: int, frame: object) -> None:
        if pressed:  # a second time: now, whatever is under way
            raise KeyboardInterrupt
        pressed.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)
