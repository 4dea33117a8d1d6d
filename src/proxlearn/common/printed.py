"""What rich would show of an answer, as plain text: for `print`."""

from io import StringIO
from typing import Any

from rich.console import Console

WIDTH = 100


def printed(answer: Any) -> str:
    file = StringIO()
    Console(file=file, width=WIDTH, highlight=False, force_jupyter=False).print(answer)
    return file.getvalue().rstrip()
