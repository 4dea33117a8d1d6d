"""What is drawn of symmetries: of each plane a rectangle about the shape, coloured by its residual;
of a family, a few of its planes and its axis; of an axis, a rod with its order."""

from typing import NamedTuple

import numpy as np

from proxlearn.meshes.mesh import Cloud, Mesh
from proxlearn.shapes.answer import Family, Mirror, Symmetries

MARGIN = 1.15  # how far a sheet goes beyond the shape
OF_FAMILY = 4  # sheets through an axis
GOOD, POOR = np.array([0.10, 0.45, 0.80]), np.array([0.90, 0.35, 0.05])  # red, green, blue
Array = np.ndarray


class Sheet(NamedTuple):
    """A rectangle (4, 3) of a plane, its colour, and which line of the table it is of."""

    corners: Array
    color: Array
    line: int


class Rod(NamedTuple):
    """The ends (2, 3) of an axis, a little outside the shape, what is written there, and which line
    of the table it is of."""

    ends: Array
    order: str
    line: int


def sheets(shape: Mesh | Cloud, found: Symmetries) -> list[Sheet]:
    """In the order of the table: families first."""
    points, made = shape[0].double().numpy(), []
    middle = (points.min(0) + points.max(0)) / 2
    for line, each in enumerate(found.every):
        planes = []
        if isinstance(each, Family):
            normals = _about(np.array(each.axis), OF_FAMILY)
            planes = [(normal, float(normal @ each.point)) for normal in normals]
        elif isinstance(each, Mirror):
            planes = [(np.array(each.normal), each.offset)]
        color = color_of(each.share, found)
        made += [Sheet(_rectangle(points, middle, *plane), color, line) for plane in planes]
    return made


def rods(shape: Mesh | Cloud, found: Symmetries) -> list[Rod]:
    """Of families and axes, in the order of the table."""
    points, made = shape[0].double().numpy(), []
    for line, each in enumerate(found.every):
        if isinstance(each, Mirror):
            continue
        family = isinstance(each, Family)
        axis, point = np.array(each.axis if family else each.direction), np.array(each.point)
        reach = (points - point) @ axis
        longer = 0.1 * (reach.max() - reach.min())
        ends = np.array([reach.min() - longer, reach.max() + longer])
        order = "" if family else str(each.order or "\N{INFINITY}")
        made.append(Rod(point + ends[:, None] * axis, order, line))
    return made


def color_of(share: float, found: Symmetries) -> Array:
    """From that of a perfect symmetry to that of one which just counts."""
    poor = min(1.0, max(0.0, share - found.noise) / found.tolerance)
    return (1 - poor) * GOOD + poor * POOR


def _about(axis: Array, count: int) -> Array:
    """Unit normals (count, 3) at right angles to an axis, evenly."""
    u, v = _across(axis)
    angle = np.pi * np.arange(count) / count
    return np.cos(angle)[:, None] * u + np.sin(angle)[:, None] * v


def _across(normal: Array) -> tuple[Array, Array]:
    """Two unit vectors at right angles to it and to each other, along the axes as far as can be."""
    u = np.cross(normal, np.eye(3)[np.abs(normal).argmin()])
    u /= np.linalg.norm(u)
    return u, np.cross(normal, u)


def _rectangle(points: Array, middle: Array, normal: Array, offset: float) -> Array:
    """Of a plane, as large as the shape is when seen along the normal."""
    u, v = _across(normal)
    center = middle + (offset - middle @ normal) * normal
    ends = []
    for axis in (u, v):
        along = (points - center) @ axis
        half, mid = (along.max() - along.min()) / 2 * MARGIN, (along.max() + along.min()) / 2
        ends.append((mid - half, mid + half))
    (a, b), (c, d) = ends
    return center + np.array([a * u + c * v, b * u + c * v, b * u + d * v, a * u + d * v])
