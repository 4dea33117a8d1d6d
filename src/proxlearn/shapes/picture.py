"""A picture of a shape with its planes and axes, for a file."""

from pathlib import Path

import numpy as np

from proxlearn.common.seeds import generator_for
from proxlearn.figures.draw import literal, new_figure, save
from proxlearn.meshes.mesh import Cloud, Mesh, box, face_normals
from proxlearn.shapes.answer import Symmetries
from proxlearn.shapes.render import VIEW, View, rendered, view_of
from proxlearn.shapes.sheets import Array, rods, sheets
from proxlearn.shapes.target import CloudTarget

MOST_SHEETS = 24
INCHES = (6.4, 6.8)
BEYOND = 12.0  # pixels, from the end of a rod to the middle of its order
DOT = 0.004  # half the width of a point, in parts of the size


def picture(shape: Mesh | Cloud, found: Symmetries, path: str | Path, title: str = "") -> Path:
    """Draw a shape in its own pose with its planes, the best first, and its axes, each with its
    order at the end that is nearer to the eye, as the shape may hide the other; png, svg or pdf."""
    (triangles, normals), every = _solid(shape), rods(shape, found)
    flat = [_flat(each.ends, 2 * DOT * found.size) for each in every]
    triangles = np.concatenate((triangles, *flat))
    normals = np.concatenate((normals, np.zeros((2 * len(flat), 3))))
    drawn = sheets(shape, found)[:MOST_SHEETS]
    view = view_of(triangles, drawn)
    figure = new_figure(*INCHES)
    panel = figure.add_subplot()
    panel.imshow(np.clip(rendered(triangles, normals, drawn, view), 0, 1))
    for each in every:
        x, y = _beyond(each.ends, view)
        panel.text(x, y, each.order, ha="center", va="center", fontweight="bold")
    panel.set_axis_off()
    panel.set_title(
        "\n".join(filter(None, (literal(title), found.summary()))), fontsize="medium", wrap=True
    )
    return save(figure, path)


def _beyond(ends: Array, view: View) -> Array:
    """The place on the image (2,) that is a little beyond the end of a rod which is nearer to the
    eye, on its way there; above it, where it points to the eye."""
    far, near = view.on_image(ends)[view.pixels(ends)[:, 2].argsort()]
    way = near - far if np.linalg.norm(near - far) > BEYOND else np.array([0.0, -1.0])
    return near + BEYOND * way / np.linalg.norm(way)


def _solid(shape: Mesh | Cloud) -> tuple[Array, Array]:
    """Triangles with their normals; of a cloud, two for each point, which face the eye."""
    if isinstance(shape, Mesh):
        return shape.vertices[shape.faces].numpy(), face_normals(shape).numpy()
    target = CloudTarget(shape, generator_for(0, "picture"))
    points = target.size * target.points.double().numpy() + target.center.numpy()
    half = DOT * box(shape.points)[1]
    right = np.cross([0, 0, 1], VIEW)
    up = np.cross(VIEW, right)
    right, up = half * right / np.linalg.norm(right), half * up / np.linalg.norm(up)
    corners = np.stack((-right - up, right - up, right + up, -right + up))
    dots = (points[:, None] + corners)[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3, 3)
    return dots, target.normals.double().numpy().repeat(2, 0)


def _flat(ends: Array, half: float) -> Array:
    """A thin line between two points, as triangles that face the eye."""
    side = np.cross(VIEW, ends[1] - ends[0])
    side = half * side / max(np.linalg.norm(side), 1e-30)
    a, b, c, d = ends[0] - side, ends[0] + side, ends[1] + side, ends[1] - side
    return np.array([[a, b, c], [a, c, d]])
