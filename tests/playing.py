"""What the tests of the playground share; its browser is in `conftest.py`."""

from pathlib import Path
from typing import Any

import pytest

from proxlearn.errors import FileError
from proxlearn.playground import runtime
from proxlearn.playground.folder import write
from proxlearn.playground.playable import Playable

CLOSE = 1e-4  # how far what the page shows may be from what Python says; points: of the diameter


def made(folder: Path, playables: list[Playable]) -> Path:
    pytest.importorskip(
        "onnxscript", reason="needs onnx and onnxscript: pip install -e '.[export]'"
    )
    try:
        runtime.runtime()
    except FileError as error:
        pytest.skip(str(error))
    write(folder, playables, lambda _: None)
    return folder


def drag(page: Any, x: float, y: float, to_x: float, to_y: float) -> None:
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(to_x, to_y, steps=5)
    page.mouse.up()
