"""What rich would show of an answer, as plain text: for `print`."""

from io import StringIO
from typing import Any

from rich.console import Console

WIDTH = 100


def printed(answer: Any) -> str:
    file = StringIO()
    plain = {"force_terminal": False, "force_jupyter": False, "highlight": False}
    Console(file=file, width=WIDTH, **plain).print(answer)  # a notebook asks for colours otherwise
    return file.getvalue().rstrip()
