"""Generated parts: what they list are symmetries, and they have no others."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Generator, Tensor

from proxlearn.common.seeds import generator_for
from proxlearn.errors import InputError, UnknownNameError
from proxlearn.meshes import solids
from proxlearn.meshes.mesh import Mesh, area_vectors, areas, box, sampled, scaled
from proxlearn.meshes.parts import (
    KINDS,
    Draw,
    Part,
    Solid,
    at_unit_size,
    in_its_frame,
    moved,
    part,
    parts,
    random_rotation,
)
from proxlearn.meshes.solids import SEGMENTS, circle, rectangle, triangulated

Shape = Callable[[Draw], Solid]
SHAPES = {shape.__name__: shape for shapes in KINDS.values() for shape in shapes}
TURNED = ["washer", "collared_washer", "shaft", "stepped_shaft"]
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
ROUND = 1 - math.cos(math.pi / SEGMENTS)  # how far a turned surface is from round, of its radius


def drawn(shape: Shape, generator: Generator) -> Part:
    """A part in its own frame, of longest side 1."""
    own = in_its_frame("any", shape(Draw(generator)))
    eye, here = torch.eye(3).double(), torch.zeros(3).double()
    return moved(own, eye, here, 1 / box(own.mesh.vertices)[1])


def distances(points: Tensor, mesh: Mesh) -> Tensor:
    """From each point (n, 3) to the nearest triangle, by looking at all."""
    corners = mesh.vertices[mesh.faces]  # (f, 3, 3)
    return torch.cat([_distances(some, corners) for some in points.split(100)])


def _distances(points: Tensor, corners: Tensor) -> Tensor:
    sides = corners.roll(-1, 1) - corners
    normal = torch.linalg.cross(sides[:, 0], sides[:, 1])
    normal = normal / normal.norm(dim=-1, keepdim=True)
    inward = torch.linalg.cross(normal[:, None].expand_as(sides), sides)
    over = torch.ones(len(points), len(corners), dtype=torch.bool)
    nearest = torch.full(over.shape, torch.inf, dtype=points.dtype)
    for k in range(3):
        from_corner = points[:, None] - corners[:, k]
        along = (from_corner * sides[:, k]).sum(-1) / sides[:, k].square().sum(-1)
        rest = from_corner - along.clamp(0, 1)[..., None] * sides[:, k]
        nearest = torch.minimum(nearest, rest.norm(dim=-1))
        over &= (from_corner * inward[:, k]).sum(-1) >= 0
    height = ((points[:, None] - corners[:, 0]) * normal).sum(-1).abs()
    return torch.where(over, height, nearest).amin(1)


def reflected(points: Tensor, plane: Tensor) -> Tensor:
    return points - 2 * (points @ plane[:3] - plane[3])[:, None] * plane[:3]


def turned_about(points: Tensor, axis: Tensor, angle: float) -> Tensor:
    """By the angle about the axis (direction, point, ...), by Rodrigues' formula."""
    direction, point = axis[:3], axis[3:6]
    rest = points - point
    across = torch.linalg.cross(direction.expand_as(rest), rest)
    along = (rest @ direction)[:, None] * direction
    return point + along + math.cos(angle) * (rest - along) + math.sin(angle) * across


def random_plane_through(line: Tensor, generator: Generator) -> Tensor:
    normal = torch.linalg.cross(line[:3], torch.randn(3, generator=generator).to(line))
    normal = normal / normal.norm()
    return torch.cat((normal, (normal @ line[3:6])[None]))


def test_the_distances_of_this_file():
    mesh = Mesh(torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), torch.tensor([[0, 1, 2]]))
    points = torch.tensor([[0.2, 0.2, 0.5], [-3, 0, 4], [1, 1, 0], [0.5, -2, 0], [2, 0, 0]])
    expected = torch.tensor([0.5, 5.0, math.sqrt(0.5), 2.0, 1.0])
    torch.testing.assert_close(distances(points, mesh), expected)


@every_shape
def test_what_a_part_lists_are_symmetries(shape: Shape):
    generator = generator_for(0, shape.__name__)
    for _ in range(2):
        own = drawn(shape, generator)
        shift = torch.randn(3, generator=generator).double()
        posed = moved(own, random_rotation(generator), shift, size=3.0)
        points = sampled(posed.mesh, 40, generator).points

        def off(images: Tensor, mesh: Mesh = posed.mesh) -> float:
            return float(distances(images, mesh).max()) / 3.0

        for plane in posed.planes:
            assert off(reflected(points, plane)) < 1e-7
        for axis in posed.axes:
            turns = float(axis[6])
            if turns:
                assert off(turned_about(points, axis, 2 * math.pi / turns)) < 1e-7
            else:
                assert off(turned_about(points, axis, 1.0)) < ROUND
        for family in posed.families:
            assert off(reflected(points, random_plane_through(family, generator))) < ROUND
        torch.testing.assert_close(
            posed.axes[:, :3].norm(dim=1), torch.ones(len(posed.axes)).double()
        )
        assert bool((posed.planes[:, 3] >= 0).all())


def isometries(mesh: Mesh, generator: Generator) -> list[Tensor]:
    """All that take the mesh to itself, as matrices about the centroid of its surface. The vertex
    farthest from there goes to one as far; so does the one farthest from the line of these two; the
    images of both leave two choices."""
    weights = areas(mesh)[:, None]
    center = (weights * mesh.vertices[mesh.faces].mean(1)).sum(0) / weights.sum()
    at = Mesh(mesh.vertices - center, mesh.faces)
    far = at.vertices.norm(dim=1)
    v = at.vertices[far.argmax()]
    v2 = at.vertices[torch.linalg.cross(v.expand_as(at.vertices), at.vertices).norm(dim=1).argmax()]
    images = at.vertices[(far - far.max()).abs() < 1e-6]
    images2 = at.vertices[(far - v2.norm()).abs() < 1e-6]
    alike = ((images @ images2.T) - v @ v2).abs() < 1e-6
    frame = torch.stack((v, v2, torch.linalg.cross(v, v2)), 1)
    candidates = []
    for i, j in alike.nonzero().tolist():
        across = torch.linalg.cross(images[i], images2[j])
        for third in (across, -across):
            candidates.append(torch.stack((images[i], images2[j], third), 1) @ frame.inverse())
    left = torch.stack(candidates)
    for point in sampled(at, 50, generator).points:
        left = left[distances(left @ point, at) < 1e-6]
    return list(left)


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in TURNED])
def test_a_part_has_no_other_symmetries(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(solids, "SEGMENTS", 32)  # for speed; coarser circles do as well
    generator = generator_for(1, name)
    own = drawn(SHAPES[name], generator)
    found = isometries(own.mesh, generator)
    rotations = [each for each in found if torch.linalg.det(each) > 0]
    mirrors = [m for m in found if torch.linalg.det(m) < 0 and abs(float(m.trace()) - 1) < 1e-5]
    assert len(mirrors) == len(own.planes)
    assert len(rotations) == 1 + int((own.axes[:, 6] - 1).sum())
    listed = own.planes[:, :3]
    for matrix in mirrors:  # I - 2 n n'
        normal = torch.linalg.eigh((matrix + matrix.T) / 2).eigenvectors[:, 0]
        assert float((listed @ normal).abs().max()) > 1 - 1e-6


@pytest.mark.parametrize("name", TURNED)
def test_a_turned_part_has_no_other_symmetries(name: str):
    """A mirror or a turn leaves the only axis where it is: besides the family there is at most the
    plane across the axis, through the centroid."""
    generator = generator_for(1, name)
    own = drawn(SHAPES[name], generator)
    weights = areas(own.mesh)[:, None]
    center = (weights * own.mesh.vertices[own.mesh.faces].mean(1)).sum(0) / weights.sum()
    across = torch.tensor([0.0, 0, 1, float(center[2])]).double()
    points = sampled(own.mesh, 100, generator).points
    assert (float(distances(reflected(points, across), own.mesh).max()) < 1e-6) == len(own.planes)
    assert len(own.families) == 1
    assert own.axes.tolist() == [[0, 0, 1, 0, 0, 0, 0]]


@every_shape
def test_slanted_planes_and_turns_are_no_symmetries(shape: Shape):
    generator = generator_for(2, shape.__name__)
    own, draw = drawn(shape, generator), Draw(generator)
    points = sampled(own.mesh, 60, generator).points
    center, _ = box(own.mesh.vertices)
    for _ in range(5):
        slant, around = draw.between(0.5, 1.0), draw.between(0.05, 0.2)
        normal = [math.sin(slant) * math.cos(around), math.sin(slant) * math.sin(around)]
        normal = torch.tensor([*normal, math.cos(slant)]).double()
        plane, axis = torch.cat((normal, (normal @ center)[None])), torch.cat((normal, center))
        for image in (reflected(points, plane), turned_about(points, axis, math.pi)):
            assert float(distances(image, own.mesh).mean()) > 0.01


@every_shape
def test_a_part_is_a_closed_surface_that_looks_outward(shape: Shape):
    mesh = drawn(shape, generator_for(3, shape.__name__)).mesh
    vectors = area_vectors(mesh)
    volume = (vectors * mesh.vertices[mesh.faces].mean(1)).sum() / 3
    assert float(vectors.sum(0).norm()) < 1e-9
    assert float(volume) > 0.01


NUT = "7 planes, axes of order 6 2 2 2 2 2 2"
LISTS = {
    "washer": {"1 planes, axes of order 0", "0 planes, axes of order 0"},
    "nut": {NUT, "5 planes, axes of order 4 2 2 2 2"}
    | {f"{k} planes, axes of order {k}" for k in (4, 6)},
    "bolt": {"6 planes, axes of order 6", "4 planes, axes of order 4"},
    "bracket": {
        "1 planes, axes of order ",
        "2 planes, axes of order 2",
        "1 planes, axes of order 2",
    },
}


@pytest.mark.parametrize("kind", LISTS)
def test_the_lists_of_well_known_parts(kind: str):
    generator = generator_for(4, kind)
    many = [part(kind, generator) for _ in range(16)]
    said = {
        f"{len(p.planes)} planes, axes of order {' '.join(str(int(k)) for k in p.axes[:, 6])}"
        for p in many
    }
    assert said == LISTS[kind]


def test_parts_are_of_all_kinds_and_sizes_and_repeat_with_their_seed():
    many = parts(len(KINDS) + 1, generator_for(0, "parts"))
    assert [each.kind for each in many] == [*KINDS, next(iter(KINDS))]
    again = parts(len(KINDS) + 1, generator_for(0, "parts"))
    assert all(bool((a.mesh.vertices == b.mesh.vertices).all()) for a, b in zip(many, again))
    sizes = [box(each.mesh.vertices)[1] for each in many]
    assert max(sizes) > 3 * min(sizes)
    assert {each.mesh.vertices.dtype for each in many} == {torch.float32}


def test_a_posed_part_keeps_its_symmetries_in_single_precision():
    posed = part("nut", generator_for(5, "pose"))
    size = box(posed.mesh.vertices)[1]
    points = sampled(posed.mesh, 30, generator_for(6, "points")).points
    assert len(posed.planes)
    for plane in posed.planes:
        assert float(distances(reflected(points, plane), posed.mesh).max()) < 1e-5 * size


def test_a_part_at_unit_size_is_the_scaled_mesh_and_keeps_its_symmetries():
    posed = part("bracket", generator_for(7, "unit"))
    unit = at_unit_size(posed)
    torch.testing.assert_close(unit.mesh.vertices, scaled(posed.mesh)[0].vertices)
    points = sampled(unit.mesh, 30, generator_for(6, "points")).points
    assert len(unit.planes)
    for plane in unit.planes:
        assert float(distances(reflected(points, plane), unit.mesh).max()) < 1e-5


def test_rotations_are_rotations():
    for k in range(8):
        rotation = random_rotation(generator_for(k, "rotation"))
        torch.testing.assert_close(rotation @ rotation.T, torch.eye(3).double())
        assert float(torch.linalg.det(rotation)) > 0


def test_a_polygon_with_holes_is_covered_once():
    outline = rectangle(2.0, 1.0)
    holes = [circle(0.9, 40, (0.9, 0.0)), circle(0.5, 6, (-1.2, 0.0))]
    a, b, c = torch.from_numpy(triangulated(outline, holes)).unbind(1)
    (px, py), (qx, qy) = (b - a).T, (c - a).T
    twice = px * qy - py * qx
    round_area = sum(n / 2 * r * r * math.sin(2 * math.pi / n) for n, r in ((40, 0.9), (6, 0.5)))
    assert float(twice.min()) > 0
    assert float(twice.sum() / 2) == pytest.approx(8.0 - round_area)


def test_holes_that_touch_the_outline_are_refused():
    with pytest.raises(InputError, match="touch"):
        triangulated(rectangle(1.0, 1.0), [circle(0.9, 40, (0.5, 0.0))])


def test_kinds_and_counts_that_are_none():
    with pytest.raises(UnknownNameError, match="Did you mean 'washer'"):
        part("washr", generator_for(0, "any"))
    with pytest.raises(InputError, match="0 or more"):
        parts(-1, generator_for(0, "any"))
    assert parts(0, generator_for(0, "any")) == []
