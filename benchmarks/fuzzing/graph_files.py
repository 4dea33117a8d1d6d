"""Graph files of `solve maxcut`: edges that are not there, weights that are no numbers."""

from pathlib import Path
from typing import Any

import numpy as np

from fuzzing.frame import Act, command

WHAT = "graph files"
CASES = 500


def prepare(folder: Path) -> Any:
    return "4 3\n1 2 1\n2 3 1\n3 4 2\n"


def case(draw: np.random.Generator, prepared: Any, folder: Path) -> tuple[str, Act]:
    text = bytearray(prepared.encode())
    for _ in range(draw.integers(1, 4)):
        text[draw.integers(len(text))] = draw.integers(32, 127)
    (folder / "graph.txt").write_bytes(text)
    return f"{bytes(text)!r}", lambda: command("solve", "maxcut", "--tau", "graph.txt")
