"""A progress bar on the screen."""

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


def progress_bar(name: str, console: Console) -> Progress:
    """A bar with a name before it and what its task `said` after it."""
    return Progress(
        TextColumn(f"[bold]{name}"),
        BarColumn(bar_width=12),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[said]}"),  # last: a narrow terminal cuts off its end
        console=console,
        disable=console.quiet,
    )
