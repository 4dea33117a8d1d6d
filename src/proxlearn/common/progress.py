"""A progress bar on the screen."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

PATIENCE = 1.0  # seconds that may pass without a bar


@contextmanager
def late_bar(name: str) -> Iterator[Callable[[float], None]]:
    """A function to tell the share that is done: it shows a bar on standard error, if that is a
    terminal and the work takes longer than a second."""
    console, began = Console(stderr=True), time.monotonic()
    bar = progress_bar(name, console)
    task = bar.add_task(name, total=1.0, said="")

    def show(share: float) -> None:
        if console.is_terminal and time.monotonic() - began > PATIENCE:
            bar.start()
            bar.update(task, completed=share)

    try:
        yield show
    finally:
        if bar.live.is_started:
            bar.stop()


def progress_bar(name: str, console: Console) -> Progress:
    """A bar with a name before it and what its task `said` after it."""
    return Progress(
        TextColumn(name.replace("{", "{{").replace("}", "}}"), style="bold", markup=False),
        BarColumn(bar_width=12),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[said]}", markup=False),  # last: a narrow terminal cuts off its end
        console=console,
        disable=console.quiet,
    )
