"""Generated mechanical parts, with the exact list of their symmetries: bolts, nuts, washers, gears,
flanges, brackets, shafts and plates, of random sizes and in random poses."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from proxlearn.common.checks import whole
from proxlearn.errors import UnknownNameError
from proxlearn.meshes.mesh import Mesh, box, cleaned
from proxlearn.meshes.solids import (
    HOLE_SEGMENTS,
    SEGMENTS,
    Array,
    Drilled,
    Layer,
    around,
    bent,
    circle,
    fine_circle,
    rectangle,
    stacked,
    turn,
    turned,
)
from proxlearn.spaces import Planes

LARGEST = 100.0  # the longest side of the largest part in its own units; that of the smallest is 1


class Part(NamedTuple):
    """A mesh with all its mirror planes and all its rotation axes.

    Those that are too many to list are in `families`: the mirrors of a turned part are all planes
    through its axis. If it also has a mirror across the axis, then it has a half turn about every
    line where the two meet; these are listed nowhere. A turned surface has 128 flat sides, and is
    off its mirrors and turns by at most 0.0003 of its radius.
    """

    mesh: Mesh
    kind: str
    planes: Float[Tensor, "k 4"]  # (n, d) of the isolated mirror planes n . p = d, d >= 0
    families: Float[Tensor, "j 6"]  # (unit direction, point): all planes through it are mirrors
    axes: Float[Tensor, "a 7"]  # (unit direction, point, order); order 0: turns by any angle


class Solid(NamedTuple):
    """A surface (f, 3, 3) and its symmetries about the z axis and the origin; by default it has
    none."""

    surface: Array
    order: int = 1  # turns about z by 1/order; 0: by any angle
    mirrors: bool = False  # planes through z: that of x, and those that the turns make of it
    across: bool = False  # the plane z = 0


class Draw:
    """Random sizes and choices."""

    def __init__(self, generator: Generator):
        self.generator = generator

    def between(self, low: float, high: float) -> float:
        device = self.generator.device
        return low + (high - low) * torch.rand((), generator=self.generator, device=device).item()

    def one_of(self, *choices):
        return choices[min(int(self.between(0, len(choices))), len(choices) - 1)]


def part(kind: str, generator: Generator) -> Part:
    """A part of this kind, of random shape, size and pose, on the generator's device."""
    if kind not in KINDS:
        raise UnknownNameError("kind of part", kind, KINDS)
    draw = Draw(generator)
    own = in_its_frame(kind, draw.one_of(*KINDS[kind])(draw))
    length = LARGEST ** draw.between(0, 1)
    shift = length * torch.tensor([draw.between(-1, 1) for _ in range(3)], dtype=torch.float64)
    size = length / box(own.mesh.vertices)[1]
    mesh, kind, *symmetries = moved(own, random_rotation(generator), shift, size)
    on = generator.device
    mesh = Mesh(mesh.vertices.float().to(on), mesh.faces.to(on))
    return Part(mesh, kind, *(each.float().to(on) for each in symmetries))


def parts(count: int, generator: Generator) -> list[Part]:
    """So many parts, all kinds in turn."""
    count = whole("The number of parts", count, 0)
    kinds = list(KINDS)
    return [part(kinds[k % len(kinds)], generator) for k in range(count)]


def in_its_frame(kind: str, solid: Solid) -> Part:
    """The part before it is moved: its symmetries are about the z axis and the origin."""
    surface, order, mirrors, across = solid
    corners = torch.from_numpy(surface.round(9)).reshape(-1, 3)  # so that equal corners are equal
    mesh = cleaned(Mesh(corners, torch.arange(len(corners)).reshape(-1, 3)))
    z, origin = [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]
    half_turns = np.pi * np.arange(order) / max(order, 1) if mirrors else np.zeros(0)
    planes = [[-np.sin(angle), np.cos(angle), 0.0, 0.0] for angle in half_turns]
    axes = [z + origin + [float(order)]] if order != 1 else []
    if across:  # with a mirror through z, this one makes a half turn about the line where they meet
        planes.append([*z, 0.0])
        axes += [[np.cos(angle), np.sin(angle), 0.0, *origin, 2.0] for angle in half_turns]
    families = [z + origin] if order == 0 else []
    listed = (
        torch.tensor(rows, dtype=torch.float64).reshape(-1, width)
        for rows, width in ((planes, 4), (families, 6), (axes, 7))
    )
    return Part(mesh, kind, *listed)


def moved(
    part: Part, rotation: Float[Tensor, "3 3"], shift: Float[Tensor, "3"], size: float = 1.0
) -> Part:
    """The part and its symmetries where every point p goes to `size * rotation p + shift`."""

    def points(p: Tensor) -> Tensor:
        return size * p @ rotation.mT + shift

    def lines(rows: Tensor) -> Tensor:
        return torch.cat((rows[:, :3] @ rotation.mT, points(rows[:, 3:6]), rows[:, 6:]), 1)

    normal = part.planes[:, :3] @ rotation.mT
    planes = torch.cat((normal, size * part.planes[:, 3:] + (normal @ shift)[:, None]), 1)
    mesh = Mesh(points(part.mesh.vertices), part.mesh.faces)
    planes = Planes().retract(planes)
    return Part(mesh, part.kind, planes, lines(part.families), lines(part.axes))


def at_unit_size(part: Part) -> Part:
    """The part and its symmetries with the bounding box centred at 0 and the longest side 1, as
    `scaled` does it with a mesh."""
    center, size = box(part.mesh.vertices)
    return moved(part, torch.eye(3).to(center), -center / size, 1 / size)


def random_rotation(generator: Generator) -> Float[Tensor, "3 3"]:
    """Drawn evenly from all rotations, in double precision, on the CPU."""
    drawn = torch.randn(3, 3, generator=generator, device=generator.device).double().cpu()
    q, r = torch.linalg.qr(drawn)
    q = q * r.diagonal().sign()  # makes the draw even
    return q * torch.linalg.det(q).sign()  # in 3-D, -q turns a reflection into a rotation


def bolt(draw: Draw) -> Solid:
    """A head with flat sides on a round shank: no mirror across."""
    sides = draw.one_of(4, 6)
    head, length = draw.between(0.6, 0.9), draw.between(0.8, 2.0)
    shank = fine_circle(draw.between(0.4, 0.55), sides)
    layers = [Layer(circle(1.0, sides), 0, head), Layer(shank, head, head + length)]
    return Solid(stacked(layers), sides, mirrors=True)


def nut(draw: Draw) -> Solid:
    sides, height = draw.one_of(4, 6), draw.between(0.3, 0.5)
    bore = fine_circle(draw.between(0.4, 0.6), sides)
    layer = Layer(circle(1.0, sides), -height, height)
    return Solid(stacked([layer], [bore]), sides, mirrors=True, across=True)


def flanged_nut(draw: Draw) -> Solid:
    sides, flange = draw.one_of(4, 6), draw.between(0.2, 0.35)
    bore = fine_circle(draw.between(0.4, 0.6), sides)
    rim = fine_circle(draw.between(1.2, 1.4), sides)
    layers = [Layer(rim, 0, flange), Layer(circle(1.0, sides), flange, draw.between(0.9, 1.3))]
    return Solid(stacked(layers, [bore]), sides, mirrors=True)


def washer(draw: Draw) -> Solid:
    inner, half = draw.between(0.35, 0.75), draw.between(0.05, 0.15)
    ring = [(inner, -half), (1, -half), (1, half), (inner, half)]
    return Solid(turned(np.array(ring)), order=0, across=True)


def collared_washer(draw: Draw) -> Solid:
    inner, half, top = draw.between(0.35, 0.55), draw.between(0.05, 0.1), draw.between(0.4, 0.8)
    collar = draw.between(inner + 0.12, 0.75)
    steps = [(1, -half), (1, half), (collar, half), (collar, top), (inner, top)]
    return Solid(turned(np.array([(inner, -half), *steps])), order=0)


def gear(draw: Draw) -> Solid:
    """Teeth that are the same from both sides."""
    teeth, root = draw.one_of(*range(6, 17)), draw.between(0.7, 0.8)
    wide, narrow = draw.between(0.28, 0.34), draw.between(0.1, 0.18)
    corners = [(-wide, root), (-narrow, 1.0), (narrow, 1.0), (wide, root)]
    surface, across = _wheel(draw, teeth, corners)
    return Solid(surface, teeth, mirrors=True, across=across)


def ratchet(draw: Draw) -> Solid:
    """Teeth that lean to one side: turns, but no mirrors through the axis."""
    teeth, root = draw.one_of(*range(5, 13)), draw.between(0.65, 0.75)
    surface, across = _wheel(draw, teeth, [(0.0, root), (draw.between(0.02, 0.1), 1.0)])
    return Solid(surface, teeth, across=across)


def _wheel(draw: Draw, teeth: int, corners: list[tuple[float, float]]) -> tuple[Array, bool]:
    """A toothed wheel with a bore, and whether its faces are alike: half of them have a hub on one.
    The corners of a tooth are (angle, radius), the angle in shares of a tooth's."""
    share, radius = np.array(corners).T
    angle = 2 * np.pi * share / teeth
    tooth = np.stack((radius * np.cos(angle), radius * np.sin(angle)), -1)
    half, bore = draw.between(0.12, 0.3), draw.between(0.15, 0.3)
    layers = [Layer(np.concatenate(around(tooth, teeth)), -half, half)]
    alike = draw.one_of(True, False)
    if not alike:
        hub = fine_circle(draw.between(bore + 0.12, 0.55), teeth)
        layers.append(Layer(hub, half, half + draw.between(0.25, 0.6)))
    return stacked(layers, [fine_circle(bore, teeth)]), alike


def flange(draw: Draw) -> Solid:
    """A disc with a ring of holes; half of them have a neck on one face."""
    count, bore, half = draw.one_of(*range(3, 9)), draw.between(0.2, 0.35), draw.between(0.14, 0.22)
    hole = circle(draw.between(0.15, 0.18), HOLE_SEGMENTS, (0.77, 0))
    layers = [Layer(fine_circle(1.0, count), -half, half, around(hole, count))]
    alike = draw.one_of(True, False)
    if not alike:
        neck = fine_circle(draw.between(bore + 0.1, 0.55), count)
        layers.append(Layer(neck, half, half + draw.between(0.3, 0.7)))
    surface = stacked(layers, [fine_circle(bore, count)])
    return Solid(surface, count, mirrors=True, across=alike)


def shaft(draw: Draw) -> Solid:
    """Thicker in the middle, the same at both ends."""
    end, middle = draw.between(0.4, 1.0), draw.between(0.3, 0.8)
    thin, thick = draw.between(0.2, 0.28), draw.between(0.4, 0.5)
    steps = [(thin, end), (thick, 2 * middle), (thin, end)]
    return Solid(_stepped(draw, steps, -end - middle), order=0, across=True)


def stepped_shaft(draw: Draw) -> Solid:
    """Ever thicker from one end to the other."""
    radii = draw.between(0.18, 0.22), draw.between(0.3, 0.36), draw.between(0.45, 0.52)
    return Solid(_stepped(draw, [(r, draw.between(0.3, 1.0)) for r in radii], 0.0), order=0)


def _stepped(draw: Draw, steps: list[tuple[float, float]], low: float) -> Array:
    """Cylinders of (radius, length) on top of each other, half of them with a bore."""
    bore, profile, z = draw.one_of(0.0, draw.between(0.06, 0.12)), [], low
    for radius, length in steps:
        profile += [(radius, z), (radius, z + length)]
        z += length
    return turned(np.array([(bore, low), *profile, (bore, z)]))


def square_shaft(draw: Draw) -> Solid:
    """A round shaft with square ends, or with one of them."""
    end, middle = draw.between(0.4, 0.9), draw.between(0.3, 0.6)
    square, body = circle(draw.between(0.3, 0.38), 4), fine_circle(draw.between(0.45, 0.55), 4)
    layers = [Layer(body, -middle, middle), Layer(square, middle, middle + end)]
    both = draw.one_of(True, False)
    if both:
        layers.insert(0, Layer(square, -middle - end, -middle))
    return Solid(stacked(layers), 4, mirrors=True, across=both)


def plate(draw: Draw) -> Solid:
    """A rectangle with a hole at each corner."""
    y, hole = draw.between(0.45, 0.75), draw.between(0.12, 0.16)
    holes = [
        circle(hole, HOLE_SEGMENTS, (a * 0.75, b * (y - 0.23))) for a in (-1, 1) for b in (-1, 1)
    ]
    return Solid(_sheet(draw, rectangle(1, y), holes), 2, mirrors=True, across=True)


def square_plate(draw: Draw) -> Solid:
    """A square with a hole at each corner."""
    at, hole = draw.between(0.55, 0.75), draw.between(0.15, 0.2)
    holes = around(circle(hole, HOLE_SEGMENTS, (at, at)), 4)
    return Solid(_sheet(draw, rectangle(1, 1), holes), 4, mirrors=True, across=True)


def triangular_plate(draw: Draw) -> Solid:
    holes = around(circle(draw.between(0.12, 0.16), HOLE_SEGMENTS, (0.55, 0)), 3)
    return Solid(_sheet(draw, circle(1, 3), holes), 3, mirrors=True, across=True)


def one_sided_plate(draw: Draw) -> Solid:
    """A rectangle with two holes at one of its short sides."""
    y, hole = draw.between(0.55, 0.75), draw.between(0.19, 0.23)
    holes = [circle(hole, HOLE_SEGMENTS, (0.7, side * (y - 0.29))) for side in (-1, 1)]
    return Solid(_sheet(draw, rectangle(1, y), holes), 1, mirrors=True, across=True)


def diagonal_plate(draw: Draw) -> Solid:
    """A rectangle with holes at two opposite corners: a half turn, and no mirrors through it."""
    y, hole = draw.between(0.5, 0.75), draw.between(0.18, 0.22)
    holes = around(circle(hole, HOLE_SEGMENTS, (0.7, y - 0.28)), 2)
    return Solid(_sheet(draw, rectangle(1, y), holes), 2, across=True)


def cut_plate(draw: Draw) -> Solid:
    """A rectangle without one of its corners; with a boss on one face it has no symmetry at all."""
    y, half = draw.between(0.5, 0.7), draw.between(0.08, 0.15)
    cut = [(1, y * draw.between(-0.5, 0.0)), (draw.between(-0.2, 0.4), y)]
    outline = np.array([(-1, -y), (1, -y), *cut, (-1, y)])
    layers = [Layer(outline, -half, half)]
    bare = draw.one_of(True, False)
    if not bare:
        boss = circle(draw.between(0.15, 0.22), SEGMENTS, (-0.5, -0.2))
        layers.append(Layer(boss, half, half + draw.between(0.3, 0.6)))
    return Solid(stacked(layers), across=bare)


def _sheet(draw: Draw, outline: Array, holes: Sequence[Array]) -> Array:
    half = draw.between(0.1, 0.16)
    return stacked([Layer(outline, -half, half)], holes)


def angle_bracket(draw: Draw) -> Solid:
    """An L with legs of different lengths."""
    return Solid(_angle(draw, draw.between(0.55, 0.7), tilt=0.0), across=True)


def even_bracket(draw: Draw) -> Solid:
    """An L with equal legs; a mirror takes one to the other."""
    return Solid(_angle(draw, 1.0, tilt=-np.pi / 4), mirrors=True, across=True)


def _angle(draw: Draw, leg: float, tilt: float) -> Array:
    """An L of legs 1 and `leg`, tilted about its corner, with the same holes near both ends."""
    t, radius, half, heights = _sheet_metal(draw)
    profile = np.array([(0, 0), (1, 0), (1, t), (t, t), (t, leg), (0, leg)]) @ turn(tilt).T
    in_one = [Drilled(0, 2, 0.75, z, radius) for z in heights]
    in_other = [Drilled(5, 3, 0.25, z, radius) for z in heights]
    return bent(profile, -half, half, in_one + in_other)


def channel(draw: Draw) -> Solid:
    """A U with holes in its legs."""
    t, radius, half, heights = _sheet_metal(draw)
    y, leg = draw.between(0.4, 0.7), draw.between(0.6, 0.9)
    inner = y - t
    below = [(0, -y), (leg, -y), (leg, -inner), (t, -inner)]
    profile = np.array([*below, *[(a, -b) for a, b in reversed(below)]])
    at = leg - 0.25
    holes = [Drilled(0, 2, at, z, radius) for z in heights]
    holes += [Drilled(6, 4, leg - at, z, radius) for z in heights]
    return Solid(bent(profile, -half, half, holes), mirrors=True, across=True)


def step_bracket(draw: Draw) -> Solid:
    """A Z with holes in both flanges: a half turn, and no mirrors through it."""
    t, radius, half, heights = _sheet_metal(draw)
    web, flange = draw.between(0.35, 0.6), draw.between(0.55, 0.8)
    lower = [(-t / 2, -web), (flange, -web), (flange, t - web), (t / 2, t - web)]
    profile = np.array([*lower, *[(-a, -b) for a, b in lower]])
    at = t / 2 + flange - 0.25
    holes = [Drilled(side, side + 2, at, z, radius) for side in (0, 4) for z in heights]
    return Solid(bent(profile, -half, half, holes), 2, across=True)


def _sheet_metal(draw: Draw) -> tuple[float, float, float, tuple[float, ...]]:
    """The thickness, the radius of holes, half the width, and the heights of a row of holes."""
    half = draw.between(0.35, 0.5)
    heights = draw.one_of((0.0,), (-half / 2, half / 2))
    return draw.between(0.1, 0.15), draw.between(0.08, 0.12), half, heights


# The shapes of each kind, drawn equally often.
KINDS: dict[str, tuple[Callable[[Draw], Solid], ...]] = {
    "bolt": (bolt,),
    "nut": (nut, flanged_nut),
    "washer": (washer, collared_washer),
    "gear": (gear, ratchet),
    "flange": (flange,),
    "bracket": (angle_bracket, even_bracket, channel, step_bracket),
    "shaft": (shaft, stepped_shaft, square_shaft),
    "plate": (
        *(plate, square_plate, triangular_plate),
        *(one_sided_plate, diagonal_plate, cut_plate),
    ),
}
