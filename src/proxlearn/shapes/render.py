"""A shaded picture of triangles and translucent sheets, each pixel with what it really sees: plots
sort whole polygons by depth instead, and show sheets that cut through a part wrongly."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from proxlearn.shapes.sheets import Array, Sheet

PIXELS = 1200  # along each side; half as many are left, each the mean of four
VIEW = np.array([0.55, -0.75, 0.45])  # towards the eye
LIGHT = np.array([0.3, 0.5, 0.85])  # to the right of it, above, in front
GREY, PAPER = np.array([0.74, 0.76, 0.79]), np.ones(3)
CLEAR, EDGE = 0.28, 0.9  # how much a sheet covers, inside and at its edges
EDGE_PIXELS = 2.5
AT_ONCE = 1 << 21  # pixels of triangles


class View(NamedTuple):
    """How what is seen lies on the picture."""

    scale: float
    shift: Array

    def pixels(self, places: Array) -> Array:
        """Places (..., 3) as pixels to the right and up, and a depth."""
        seen = places @ camera().T
        return np.concatenate((seen[..., :2] * self.scale + self.shift, seen[..., 2:]), -1)

    def on_image(self, places: Array) -> Array:
        """The same (n, 2) in the image that is left, whose rows go down."""
        right, up, _ = self.pixels(places).T / 2
        return np.stack((right, PIXELS / 2 - up), -1)


def view_of(triangles: Array, sheets: Sequence[Sheet]) -> View:
    """The view in which all of this fills the picture."""
    every = np.concatenate([triangles.reshape(-1, 3), *(each.corners for each in sheets)])
    seen = (every @ camera().T)[:, :2]
    low, high = seen.min(0), seen.max(0)
    scale = 0.94 * PIXELS / (high - low).max()
    return View(scale, PIXELS / 2 - scale * (low + high) / 2)


def rendered(triangles: Array, normals: Array, sheets: Sequence[Sheet], view: View) -> Array:
    """An image (h, w, 3), from 0 to 1, of triangles (f, 3, 3) with normals (f, 3)."""
    depth, face = _raster(view.pixels(triangles))
    bright = 0.5 + 0.5 * np.abs(normals @ camera().T @ (LIGHT / np.linalg.norm(LIGHT)))
    image = np.where(face[..., None] >= 0, GREY * bright[face][..., None], PAPER)
    image = _covered(image, depth, [view.pixels(each.corners) for each in sheets], sheets)
    small = image.reshape(PIXELS // 2, 2, PIXELS // 2, 2, 3).mean((1, 3))
    return small[::-1]  # y goes up


def camera() -> Array:
    """Rows: to the right, up, towards the eye."""
    front = VIEW / np.linalg.norm(VIEW)
    right = np.cross([0, 0, 1], front)
    right /= np.linalg.norm(right)
    return np.stack((right, np.cross(front, right), front))


def _raster(triangles: Array) -> tuple[Array, Array]:
    """What is nearest at each pixel: its depth (-inf: nothing) and its triangle (-1)."""
    depth = np.full(PIXELS * PIXELS, -np.inf)
    face = np.full(PIXELS * PIXELS, -1)
    low = np.clip(np.floor(triangles[..., :2].min(1)), 0, PIXELS - 1).astype(int)
    high = np.clip(np.ceil(triangles[..., :2].max(1)), 0, PIXELS - 1).astype(int)
    wide, tall = (high - low + 1).T
    ends = np.cumsum(wide * tall)
    begin = 0
    while begin < len(triangles):
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + AT_ONCE)))
        some = np.arange(begin, end)
        which = np.repeat(some, (wide * tall)[some])
        number = np.arange(len(which)) - (ends - wide * tall)[which] + before
        x = low[which, 0] + number % wide[which]
        y = low[which, 1] + number // wide[which]
        z, inside = _depths(triangles[which], x, y)
        place, z, which = (y * PIXELS + x)[inside], z[inside], which[inside]
        np.maximum.at(depth, place, z)
        nearest = z == depth[place]
        face[place[nearest]] = which[nearest]
        begin = end
    return depth.reshape(PIXELS, PIXELS), face.reshape(PIXELS, PIXELS)


def _depths(triangles: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """The depth of each triangle at a pixel, and whether it is there."""
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = triangles.transpose(1, 2, 0)
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    with np.errstate(divide="ignore", invalid="ignore"):
        s = ((x - ax) * (cy - ay) - (y - ay) * (cx - ax)) / area
        t = ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / area
        return az + s * (bz - az) + t * (cz - az), (s >= 0) & (t >= 0) & (s + t <= 1)


def _covered(image: Array, depth: Array, corners: list[Array], sheets: Sequence[Sheet]) -> Array:
    """The image with the sheets over it, at each pixel from the farthest to the nearest."""
    if not sheets:
        return image
    y, x = np.mgrid[:PIXELS, :PIXELS]
    layers = [_layer(each, x, y, depth) for each in corners]
    depths, covers = (np.stack(each) for each in zip(*layers))
    colors = np.stack([each.color for each in sheets])
    for layer in np.argsort(depths, 0):
        cover = np.take_along_axis(covers, layer[None], 0)[0][..., None]
        image = (1 - cover) * image + cover * colors[layer]
    return image


def _layer(corners: Array, x: Array, y: Array, behind: Array) -> tuple[Array, Array]:
    """The depth of a sheet at every pixel, and how much it covers there."""
    a, b, _, d = corners
    u, v = b - a, d - a
    area = u[0] * v[1] - u[1] * v[0]
    if abs(area) < 1e-9 * PIXELS**2:  # seen from the side
        return np.full(x.shape, -np.inf, np.float32), np.zeros(x.shape, np.float32)
    s = ((x - a[0]) * v[1] - (y - a[1]) * v[0]) / area
    t = (u[0] * (y - a[1]) - u[1] * (x - a[0])) / area
    depth = a[2] + s * u[2] + t * v[2]
    from_edge = np.minimum(
        np.minimum(s, 1 - s) * abs(area) / np.hypot(*v[:2]),
        np.minimum(t, 1 - t) * abs(area) / np.hypot(*u[:2]),
    )
    cover = np.where(from_edge < EDGE_PIXELS, EDGE, CLEAR) * (from_edge >= 0) * (depth > behind)
    return depth.astype(np.float32), cover.astype(np.float32)
