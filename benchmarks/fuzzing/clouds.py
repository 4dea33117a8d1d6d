"""Clouds of points: XYZ, NumPy's arrays and PLY files without faces."""

from pathlib import Path
from typing import Any

import numpy as np

import proxlearn as px
from fuzzing._spoiled import bytes_spoiled, npy_of, npy_spoiled, pick, words_spoiled
from fuzzing.frame import Act, command, quiet
from fuzzing.meshes import symmetric

WHAT = "clouds of points (xyz, npy, ply)"
CASES = 200


def prepare(folder: Path) -> Any:
    generator = np.random.default_rng(0)
    normals = generator.normal(size=(300, 3)) * (1.0, 2.0, 3.0)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    points = np.hstack((normals * (3.0, 2.0, 1.0), normals)).round(4)
    operator = px.pretrained("symmetry", "cpu")
    (folder / "cloud.npy").write_bytes(npy_of(points))
    with quiet():
        command("symmetry", str(folder / "cloud.npy"), "--out", str(folder / "out"))  # imports all
    return points, operator


def case(draw: np.random.Generator, prepared: Any, folder: Path) -> tuple[str, Act]:
    points, operator = prepared
    points = points if draw.integers(2) else points[:, :3]
    kind = pick(draw, ("xyz", "npy", "npy", "ply", "odd.npy"))
    if kind == "npy":
        content = npy_spoiled(points, draw)
    elif kind == "odd.npy":
        content = npy_of(_odd(points, draw))
    else:
        rows = "\n".join(" ".join(map(str, each)) for each in points.tolist())
        text = rows if kind == "xyz" else _ply(points.shape[1]) + rows
        spoil = draw.integers(3)
        content = text.encode()
        if spoil:
            content = words_spoiled(text, draw).encode(errors="replace")
        if spoil != 1:
            content = bytes_spoiled(content, draw)
    file = folder / f"cloud.{kind}"
    file.write_bytes(content)
    if not draw.integers(10):
        typed = ("symmetry", file.name, "--starts", "16", "--out", "out")
        return f"{' '.join(typed)}: {content[:300]!r}", lambda: command(*typed)
    return f"{file.name}: {content[:300]!r}", lambda: symmetric(file, operator)


def _ply(columns: int) -> str:
    names = ("x", "y", "z", "nx", "ny", "nz")[:columns]
    said = "ply\nformat ascii 1.0\nelement vertex 300\n"
    return said + "".join(f"property float {name}\n" for name in names) + "end_header\n"


def _odd(points: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """All on a line, in a plane or at one place, too few, far away, tiny, or with one far off."""
    middle = points.mean(0)
    far = points.copy()
    far[0, :3] = 1e6
    turned = points.copy()
    turned[:, 3:] = 0
    return pick(
        draw,
        (
            points * (1, 0, 0, 1, 1, 1)[: points.shape[1]],
            points * (1, 1, 0, 1, 1, 1)[: points.shape[1]],
            np.broadcast_to(middle, points.shape),
            points[:63],
            points[:64],
            points + 1e9,
            points * 1e-30,
            points * 1e30,
            points * 1e200,
            far,
            turned,
            np.repeat(points[:70], 500, 0),
        ),
    )
