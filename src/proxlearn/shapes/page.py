"""An interactive page of a shape with its planes and axes: one file that needs no network."""

import base64
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from proxlearn.common.files import write_atomically
from proxlearn.meshes.mesh import Cloud, Mesh, box
from proxlearn.shapes.answer import Symmetries
from proxlearn.shapes.render import camera
from proxlearn.shapes.sheets import GOOD, POOR, Array, color_of, rods, sheets

MOST_FACES, MOST_POINTS = 60_000, 50_000  # beyond, a shape is thinned
CELLS = (256, 192, 128, 96, 64, 48, 32)  # along its longest side, in which vertices become one


def page(shape: Mesh | Cloud, found: Symmetries, path: str | Path, title: str) -> Path:
    """Write the page."""
    template = (files("proxlearn.shapes") / "viewer.html").read_text()
    said = json.dumps(drawn(shape, found, title)).replace("<", "\\u003c")  # ends no script
    return write_atomically(path, template.replace("DATA", said, 1))


def drawn(shape: Mesh | Cloud, found: Symmetries, title: str) -> dict[str, Any]:
    """What the page shows, at unit size about 0."""
    center, size = box(shape[0].double())
    middle = center.numpy()

    def unit(places: Array) -> list[float]:
        return [round(each, 6) for each in ((places - middle) / size).ravel().tolist()]

    vertices, faces = _thinned(shape)
    return {
        "title": title,
        "summary": found.summary(),
        "doubts": found.doubts,
        "turn": camera().ravel().tolist(),
        "good": GOOD.tolist(),
        "poor": POOR.tolist(),
        "least": f"residual {found.noise * found.size:.2g}",
        "most": f"{(found.noise + found.tolerance) * found.size:.2g}",
        "places": _packed((vertices - middle) / size, np.float32),
        "faces": _packed(faces, np.uint32),
        "lines": [
            {
                "name": f"{k + 1}  {kind}",
                "detail": f"{direction} at {place}, residual {residual} ({share} of the size)",
                "color": color_of(each.share, found).tolist(),
            }
            for k, (each, (kind, direction, place, residual, share, _)) in enumerate(
                zip(found.every, found.lines())
            )
        ],
        "sheets": [
            {"corners": unit(each.corners), "line": each.line} for each in sheets(shape, found)
        ],
        "axes": [
            {"ends": unit(each.ends), "order": each.order, "line": each.line}
            for each in rods(shape, found)
        ],
    }


def _packed(numbers: Array, kind: type) -> str:
    return base64.b64encode(np.ascontiguousarray(numbers, kind).tobytes()).decode()


def _thinned(shape: Mesh | Cloud) -> tuple[Array, Array]:
    """Vertices and faces, no more than a page can turn smoothly."""
    if isinstance(shape, Cloud):
        step = -(-len(shape.points) // MOST_POINTS)
        return shape.points.numpy()[::step], np.zeros((0, 3))
    vertices, faces = shape.vertices.double().numpy(), shape.faces.numpy()
    for cells in CELLS:
        if len(faces) <= MOST_FACES:
            break
        vertices, faces = _clustered(shape.vertices.double().numpy(), shape.faces.numpy(), cells)
    return vertices, faces


def _clustered(vertices: Array, faces: Array, cells: int) -> tuple[Array, Array]:
    """The vertices in each cell of a grid as one, at their mean, and the faces that are left."""
    low = vertices.min(0)
    cell = np.floor((vertices - low) / ((vertices.max(0) - low).max() / cells)).astype(np.int64)
    key = (cell[:, 0] * (cells + 1) + cell[:, 1]) * (cells + 1) + cell[:, 2]
    _, which, count = np.unique(key, return_inverse=True, return_counts=True)
    means = [np.bincount(which, column) / count for column in vertices.T]
    faces = which[faces]
    a, b, c = faces.T
    kept = faces[(a != b) & (b != c) & (c != a)]
    _, first = np.unique(np.sort(kept, 1), axis=0, return_index=True)
    return np.stack(means, 1), kept[first]
