"""What rich would show of an answer, as plain text: for `print`."""

from io import StringIO
from typing import Any

from rich.console import Console

WIDTH = 100


def printed(answer: Any) -> str:
    file = StringIO()  # in a notebook rich would use colours and HTML
    console = Console(
        file=file, width=WIDTH, force_terminal=False, force_jupyter=False, highlight=False
    )
    console.print(answer)
    return file.getvalue().rstrip()
