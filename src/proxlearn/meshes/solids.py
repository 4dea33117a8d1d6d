"""Surfaces of simple solids, without a library for them: stacks of prisms with holes, turned
profiles, bent sheets with drilled holes. Loops are (n, 2), counterclockwise; a surface is an array
of triangles (f, 3, 3), counterclockwise from outside; all in double precision."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.spatial import Delaunay

from proxlearn.errors import InputError

SEGMENTS = 128  # of a turned surface: round for practical purposes
HOLE_SEGMENTS = 48
HALVINGS = 20  # rounds of halving before a triangulation is given up
Array = np.ndarray


class Layer(NamedTuple):
    """A prism from `low` to `high` along z; `holes` go through this layer alone, and through no
    face that it shares with another."""

    outline: Array
    low: float
    high: float
    holes: tuple[Array, ...] = ()


def circle(radius: float, segments: int, center: tuple[float, float] = (0, 0)) -> Array:
    """A regular polygon with a corner in the direction of x."""
    angle = 2 * np.pi * np.arange(segments) / segments
    return np.stack((np.cos(angle), np.sin(angle)), -1) * radius + center


def fine_circle(radius: float, order: int) -> Array:
    """A circle as fine as turned surfaces that a turn by 1/order, and every mirror that goes with
    such turns, takes to itself exactly."""
    return circle(radius, order * -(-SEGMENTS // order))


def rectangle(x: float, y: float) -> Array:
    """A rectangle of these half sides."""
    return np.array([(-x, -y), (x, -y), (x, y), (-x, y)])


def around(loop: Array, order: int) -> tuple[Array, ...]:
    """The loop, and its copies turned by 1/order, 2/order, ... of a full turn."""
    return tuple(loop @ turn(2 * np.pi * k / order).T for k in range(order))


def turn(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([(c, -s), (s, c)])


def stacked(layers: Sequence[Layer], bores: Sequence[Array] = ()) -> Array:
    """Prisms on top of each other, from the lowest; of two neighbours, the outline of one contains
    that of the other. The bores go through all of them."""
    first, last = layers[0], layers[-1]
    parts = [
        level(first.outline, [*bores, *first.holes], first.low, up=False),
        level(last.outline, [*bores, *last.holes], last.high),
        *(wall(bore[::-1], first.low, last.high) for bore in bores),
    ]
    for layer in layers:
        parts.append(wall(layer.outline, layer.low, layer.high))
        parts += [wall(hole[::-1], layer.low, layer.high) for hole in layer.holes]
    for below, above in pairwise(layers):
        up = _area(below.outline) > _area(above.outline)
        wide, narrow = (below, above) if up else (above, below)
        parts.append(level(wide.outline, [narrow.outline, *wide.holes], below.high, up))
    return np.concatenate(parts)


def wall(loop: Array, low: float, high: float) -> Array:
    """The sides of a prism; of a hole, where the loop goes the other way round."""
    bottom, top = (np.insert(loop, 2, z, axis=1) for z in (low, high))
    return _band(bottom, top)


def level(outline: Array, holes: Sequence[Array], z: float, up: bool = True) -> Array:
    """A flat face at height z that looks up or down."""
    triangles = np.insert(triangulated(outline, holes), 2, z, axis=2)
    return triangles if up else triangles[:, ::-1]


def _band(a: Array, b: Array) -> Array:
    """Triangles between two closed loops (n, 3) of as many points."""
    a_next, b_next = np.roll(a, -1, 0), np.roll(b, -1, 0)
    return np.concatenate((np.stack((a, a_next, b_next), 1), np.stack((a, b_next, b), 1)))


def turned(profile: Array) -> Array:
    """The surface that a closed profile of (r, z), counterclockwise, sweeps around the z axis."""
    angle = 2 * np.pi * np.arange(SEGMENTS) / SEGMENTS
    rings = [
        np.stack((r * np.cos(angle), r * np.sin(angle), np.full(SEGMENTS, z)), -1)
        for r, z in profile
    ]
    bands = [_band(a, b) for a, b in zip(rings, [*rings[1:], rings[0]])]
    return np.concatenate(bands)


class Drilled(NamedTuple):
    """A round hole through a sheet, at `along` from the start of the profile's side number `side`
    and at height z, out at the parallel side number `other`."""

    side: int
    other: int
    along: float
    z: float
    radius: float


def bent(profile: Array, low: float, high: float, holes: Sequence[Drilled] = ()) -> Array:
    """A prism of the profile along z, with holes through its sides."""
    parts = [level(profile, [], low, up=False), level(profile, [], high)]
    ends = np.roll(profile, -1, 0)
    openings: list[list[Array]] = [[] for _ in profile]
    for side, other, along, z, radius in holes:
        x = (ends[side] - profile[side]) / np.linalg.norm(ends[side] - profile[side])
        out = (ends[other] - profile[other]) / np.linalg.norm(ends[other] - profile[other])
        start = profile[side] + along * x
        openings[side].append(circle(radius, HOLE_SEGMENTS, (along, z)))
        beyond = float((start - profile[other]) @ out)  # the same place, along the other side
        openings[other].append(circle(radius, HOLE_SEGMENTS, (beyond, z)))
        opening = openings[side][-1]
        near = np.insert(profile[side] + opening[:, :1] * x, 2, opening[:, 1], axis=1)
        depth = profile[other] + beyond * out - start
        parts.append(_band(near, near + np.append(depth, 0.0)))
    for start, end, loops in zip(profile, ends, openings):
        length = np.linalg.norm(end - start)
        frame = np.array([(0, low), (length, low), (length, high), (0, high)])
        flat = triangulated(frame, loops)
        along = flat[..., :1] * (end - start) / length
        parts.append(np.concatenate((start + along, flat[..., 1:]), -1))
    return np.concatenate(parts)


def triangulated(outline: Array, holes: Sequence[Array]) -> Array:
    """Triangles (f, 3, 2), counterclockwise, of a polygon with holes: those of Delaunay inside it,
    with boundary segments halved until all are sides of triangles."""
    points = np.concatenate((outline, *holes))
    segments = _closed([len(loop) for loop in (outline, *holes)])
    for _ in range(HALVINGS):
        triangles = Delaunay(points).simplices
        missing = ~_sides_of(triangles, len(points))[segments[:, 0], segments[:, 1]]
        if not missing.any():
            break
        points, segments = _halved(points, segments, missing)
    else:
        raise InputError("The outline and the holes of a face touch: keep them apart.")
    corners = points[triangles]
    twice = _cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    corners[twice < 0] = corners[twice < 0][:, ::-1]
    inside = _inside(corners.mean(1), points[segments]) & (np.abs(twice) > 1e-14)
    return corners[inside]


def _closed(lengths: Sequence[int]) -> Array:
    """The segments (s, 2) of loops whose points follow each other."""
    starts = np.cumsum([0, *lengths])
    loops = [np.arange(n) + start for n, start in zip(lengths, starts)]
    return np.concatenate([np.stack((each, np.roll(each, -1)), 1) for each in loops])


def _sides_of(triangles: Array, count: int) -> Array:
    """Whether two points (count, count) are the ends of a triangle's side."""
    joined = np.zeros((count, count), bool)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        joined[triangles[:, a], triangles[:, b]] = joined[triangles[:, b], triangles[:, a]] = True
    return joined


def _halved(points: Array, segments: Array, which: Array) -> tuple[Array, Array]:
    new = np.arange(which.sum()) + len(points)
    middles = points[segments[which]].mean(1)
    first, second = segments[which].copy(), segments[which].copy()
    first[:, 1] = second[:, 0] = new
    segments = np.concatenate((segments[~which], first, second))
    return np.concatenate((points, middles)), segments


def _inside(points: Array, segments: Array) -> Array:
    """Whether each point is inside: a ray from it in the direction of x crosses an odd number of
    segments (s, 2, 2)."""
    x, y = points[:, None].transpose(2, 0, 1)
    (ax, ay), (bx, by) = segments.transpose(1, 2, 0)
    spans = (ay > y) != (by > y)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = ax + (y - ay) * (bx - ax) / (by - ay)
    return (spans & (x < crossing)).sum(1) % 2 == 1


def _cross(a: Array, b: Array) -> Array:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _area(loop: Array) -> float:
    return float(_cross(loop, np.roll(loop, -1, 0)).sum() / 2)
