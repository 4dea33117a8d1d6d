"""`px.symmetries`: the planes and families of shapes that are known, in their own units."""

import json
import math
from itertools import permutations
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from making import imported_as_written, untrained
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import proxlearn as px
from proxlearn.common.seeds import generator_for
from proxlearn.instances import Vectors
from proxlearn.meshes import distance
from proxlearn.meshes.mesh import Cloud, Mesh, sampled
from proxlearn.meshes.normals import normals_of, widest_gaps
from proxlearn.meshes.parts import (
    Draw,
    Part,
    collared_washer,
    cut_plate,
    diagonal_plate,
    flange,
    in_its_frame,
    moved,
    random_rotation,
    ratchet,
    square_shaft,
    washer,
)
from proxlearn.meshes.solids import (
    SEGMENTS,
    Layer,
    circle,
    fine_circle,
    rectangle,
    stacked,
    turned,
)
from proxlearn.networks.coupling import Coupling
from proxlearn.problems.symmetry import Symmetry
from proxlearn.shapes import target as targets
from proxlearn.shapes.detect import pointing
from proxlearn.shapes.families import Line, fitted, likely_line
from proxlearn.shapes.given import shape_from
from proxlearn.shapes.page import MOST_FACES, drawn
from proxlearn.shapes.picture import BEYOND, _beyond
from proxlearn.shapes.refine import DAMPED, TOUCHING, _descended, measured, refined
from proxlearn.shapes.render import VIEW, View
from proxlearn.shapes.search import distinct
from proxlearn.shapes.sheets import sheets
from proxlearn.shapes.target import (
    CloudTarget,
    Held,
    MeshTarget,
    Near,
    Places,
    near_triangles,
    target_of,
)
from proxlearn.shapes.turns import HIGHEST, telling

pytestmark = pytest.mark.whole
ONE_DEGREE = math.radians(1.0)
HALVES = torch.tensor([0.5, 1.0, 2.0]).double()  # of the sides of a block


@pytest.fixture(scope="module")
def operator() -> px.Operator:
    """An untrained one finds planes, too, since its steps are those of Gauss and Newton."""
    torch.manual_seed(0)
    return px.Operator.untrained(Symmetry(), "matching", lam=3.0)


def block(center: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Mesh:
    signs = torch.cartesian_prod(*torch.tensor([-1.0, 1.0]).double().expand(3, 2))
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = torch.tensor([each for a, b, c, d in quads for each in ((a, b, c), (a, c, d))])
    return Mesh(signs * HALVES + torch.tensor(center).double(), faces)


def solid(*layers: Layer) -> Mesh:
    surface = torch.from_numpy(stacked(list(layers))).view(-1, 3)
    return Mesh(surface, torch.arange(len(surface)).view(-1, 3))


def sheet(count: int, x: float, y: float) -> Mesh:
    """A flat rectangle of so many times so many vertices."""
    side = torch.linspace(-1, 1, count).double()
    grid = torch.cat((torch.cartesian_prod(x * side, y * side), torch.zeros(count**2, 1)), 1)
    here = (torch.arange(count - 1)[:, None] * count + torch.arange(count - 1)).flatten()
    halves = ((0, 1, count), (1, count + 1, count))
    faces = torch.cat([torch.stack([here + k for k in each], 1) for each in halves])
    return Mesh(grid, faces)


def posed(mesh: Mesh, seed: int = 0) -> Mesh:
    turn = random_rotation(generator_for(seed, "pose"))
    return Mesh(mesh.vertices.double() @ turn.T + 1.0, mesh.faces)


def made(shape, seed: int = 0) -> Part:
    """A generated part in a random pose, 30 units from 0."""
    generator = generator_for(seed, shape.__name__)
    part = in_its_frame("any", shape(Draw(generator)))
    shift = torch.tensor([20.0, -20.0, 10.0]).double()
    return moved(part, random_rotation(generator), shift, size=7.0)


def matched(found: px.Symmetries, planes: Tensor) -> bool:
    """Whether what was found are these planes, each once, within one degree and 1% of the size."""
    mine = torch.tensor([[*each.normal, each.offset] for each in found.planes]).double().view(-1, 4)
    cosine = mine[:, :3] @ planes[:, :3].T
    apart = (mine[:, 3:] - cosine.sign() * planes[:, 3]).abs() / found.size
    same = (cosine.abs() > math.cos(ONE_DEGREE)) & (apart < 0.01)
    return bool((same.sum(0) == 1).all() and (same.sum(1) == 1).all())


def has_axes(found: px.Symmetries, axes: Tensor) -> bool:
    """Whether what was found are these axes (direction, point, order), each once, likewise."""
    mine = [[*each.direction, *each.point, each.order] for each in found.axes]
    mine = torch.tensor(mine).double().view(-1, 7)
    cosine, way = mine[:, :3] @ axes[:, :3].T, mine[:, None, 3:6] - axes[:, 3:6]
    apart = torch.linalg.cross(way, axes[:, :3].expand_as(way)).norm(dim=-1) / found.size
    same = (cosine.abs() > math.cos(ONE_DEGREE)) & (apart < 0.01)
    same &= mine[:, None, 6] == axes[:, 6]
    return bool((same.sum(0) == 1).all() and (same.sum(1) == 1).all())


def test_a_block_has_three_planes_in_its_own_units(operator: px.Operator):
    found = px.symmetries(block((10.0, 0.0, -3.0)), operator, starts=64)
    expected = torch.tensor([[1.0, 0, 0, 10], [0, 1, 0, 0], [0, 0, -1, 3]]).double()
    assert len(found.planes) == 3
    assert matched(found, expected)
    axes = torch.tensor(
        [[1.0, 0, 0, 10, 0, -3, 2], [0, 1, 0, 10, 0, -3, 2], [0, 0, 1, 10, 0, -3, 2]]
    )
    assert has_axes(found, axes.double())
    assert len(found) == 6
    assert found.size == pytest.approx(4.0)
    assert not found.families
    assert not found.doubts
    for each in found.planes:
        assert each.residual < 4e-3
        assert each.share == pytest.approx(each.residual / 4.0)
        assert each.residual <= each.worst < 4e-3


@pytest.mark.parametrize("shape", [flange, square_shaft], ids=lambda each: each.__name__)
def test_all_planes_of_a_part_and_no_others(operator: px.Operator, shape):
    part = made(shape, seed=3)
    found = px.symmetries(part.mesh, operator)
    assert matched(found, part.planes)
    assert has_axes(found, part.axes)
    assert not found.families


@pytest.mark.parametrize("shape", [washer, collared_washer], ids=lambda each: each.__name__)
def test_a_turned_part_has_one_family_and_its_planes_are_not_listed(operator, shape):
    part = made(shape)
    found = px.symmetries(part.mesh, operator)
    assert matched(found, part.planes)  # the one across, if there is one
    (family,) = found.families
    axis, point = part.families[0, :3], part.families[0, 3:]
    mine = torch.tensor(family.axis).double()
    assert abs(float(mine @ axis)) > math.cos(ONE_DEGREE)
    off = torch.tensor(family.point).double() - point
    assert (off - (off @ axis) * axis).norm() < 0.01 * found.size
    assert family.share < found.tolerance
    assert not family.every_axis
    assert "through an axis" in repr(found)
    assert has_axes(found, part.axes)
    assert [each.order for each in found.axes] == [0]
    assert "axis, any angle" in repr(found)


def test_of_a_sphere_it_says_so_and_lists_no_planes(operator: px.Operator):
    angle = np.linspace(-np.pi / 2, np.pi / 2, SEGMENTS // 4)
    surface = turned(np.stack((np.cos(angle), np.sin(angle)), -1)).reshape(-1, 3)
    mesh = Mesh(torch.from_numpy(3 * surface + 1.0), torch.arange(len(surface)).view(-1, 3))
    found = px.symmetries(mesh, operator)
    assert found.planes == found.axes == []
    (family,) = found.families
    assert family.every_axis
    assert family.point == pytest.approx((1.0, 1.0, 1.0), abs=0.02)
    assert "sphere" in found.summary()


def test_a_sphere_with_a_boss_is_a_turned_part(operator: px.Operator):
    angle = np.linspace(-np.pi / 2, np.pi / 2, SEGMENTS // 4)
    ball = turned(np.stack((np.cos(angle), np.sin(angle)), -1)).reshape(-1, 3)
    boss = stacked([Layer(circle(0.1, 32), 0.9, 1.1)]).reshape(-1, 3)
    corners = torch.from_numpy(np.concatenate((ball, boss)))
    found = px.symmetries(Mesh(corners, torch.arange(len(corners)).view(-1, 3)), operator)
    assert found.planes == []
    (family,) = found.families
    assert not family.every_axis
    assert family.axis[2] > math.cos(ONE_DEGREE)


def test_a_cube_has_thirteen_axes(operator: px.Operator):
    vertices, faces = block()
    found = px.symmetries(Mesh(vertices / HALVES + 5, faces), operator)
    assert len(found.planes) == 9
    signs = torch.cartesian_prod(*torch.tensor([-1.0, 0, 1]).double().expand(3, 3))[14:]
    lengths = signs.norm(dim=1, keepdim=True)
    kinds = {1.0: 4, 2.0: 2, 3.0: 3}  # squared lengths of directions: of faces, edges and corners
    orders = torch.tensor([[kinds[round(float(each) ** 2, 3)]] for each in lengths])
    assert has_axes(found, torch.cat((signs / lengths, torch.full_like(signs, 5), orders), 1))
    for words in ("3 axes of order 4", "4 axes of order 3", "6 axes of order 2"):
        assert words in found.summary()


@pytest.mark.parametrize("shape", [ratchet, diagonal_plate], ids=lambda each: each.__name__)
def test_a_part_has_turns_without_mirrors_through_their_axis(operator: px.Operator, shape):
    part = made(shape, seed=2)
    found = px.symmetries(part.mesh, operator)
    assert matched(found, part.planes)
    assert has_axes(found, part.axes)
    assert f"an axis of order {found.axes[0].order}" in found.summary()


def turns_of_a_cube() -> list[Tensor]:
    """All matrices that permute the axes and change their signs, but turn nothing inside out."""
    signs = torch.cartesian_prod(*torch.tensor([-1.0, 1.0]).double().expand(3, 2))
    orders = [torch.eye(3).double()[list(each)] for each in permutations(range(3))]
    every = [sign[:, None] * each for sign in signs for each in orders]
    return [each for each in every if torch.linalg.det(each) > 0]


def test_axes_of_a_shape_without_any_mirror_and_alike_in_all_directions(operator: px.Operator):
    """A triangle that lies any way, turned by all 24 turns of a cube."""
    triangle = torch.tensor([[0.4, 0.1, 0.9], [0.9, 0.3, 0.6], [0.2, 0.5, 0.8]]).double()
    corners = torch.cat([triangle @ turn.T for turn in turns_of_a_cube()])
    found = px.symmetries(Mesh(corners, torch.arange(72).view(-1, 3)), operator)
    assert found.planes == []
    assert sorted(each.order for each in found.axes) == [2] * 6 + [3] * 4 + [4] * 3
    assert "and no mirror plane" in found.summary()


def test_a_part_without_symmetry_gives_none_and_the_best_residual(operator: px.Operator):
    bare = (made(cut_plate, seed) for seed in range(10))
    part = next(each for each in bare if not len(each.planes))
    found = px.symmetries(part.mesh, operator)
    assert len(found) == 0
    assert not found.axes
    assert found.best is not None
    assert found.best.share > 3 * found.tolerance
    assert f"The best one has a residual of {found.best.residual:.3g}" in found.summary()
    loosely = px.symmetries(part.mesh, operator, tolerance=2 * found.best.share)
    assert any("not in every place" in each for each in loosely.doubts)


def test_points_alone_will_do(operator: px.Operator):
    part = made(flange, seed=3)
    cloud = sampled(part.mesh, 2048, generator_for(0, "cloud"))
    found = px.symmetries(cloud.points, operator)
    assert matched(found, part.planes)
    with_normals = px.symmetries(torch.cat((cloud.points, cloud.normals), 1), operator)
    assert matched(with_normals, part.planes)
    assert has_axes(with_normals, part.axes)
    few = px.symmetries(cloud.points[:300], operator)
    assert any("only 300 points" in each for each in few.doubts)
    assert any("even a perfect mirror has a residual" in each for each in few.doubts)


def test_a_cloud_with_a_fifth_cut_off_is_doubted(operator: px.Operator):
    points = sampled(block(), 2560, generator_for(0, "cloud")).points
    along = points @ torch.tensor([0.0, 0.2, 1.0]).double()
    cut = points[along < along.quantile(0.8)]
    whole, partial = (px.symmetries(each, operator) for each in (points, cut))
    assert len(partial.planes) < len(whole.planes) == 3
    assert not any("end along an edge" in each for each in whole.doubts)
    assert any("end along an edge" in each for each in partial.doubts)


def test_a_point_at_the_edge_has_neighbours_on_one_side():
    around = torch.tensor([[0.0, 0, 0], [1, 0, 0.1], [0, 1, -0.1], [-1, 0, 0], [0, -1, 0]])
    at_edge = torch.tensor([[0.0, 0, 0], [1, 0, 0.1], [0, 1, 0], [0, -1, 0], [0.5, 0.5, 0]])
    gaps = widest_gaps(torch.stack((around, at_edge)), torch.tensor([[0.0, 0, 1]] * 2))
    assert gaps.rad2deg().tolist() == pytest.approx([90, 180], abs=1e-3)


def test_a_shape_can_be_given_in_many_ways(operator: px.Operator, tmp_path: Path):
    vertices, faces = block()
    lines = [f"v {x} {y} {z}\n" for x, y, z in vertices.tolist()]
    lines += [f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in faces.tolist()]
    (tmp_path / "block.obj").write_text("".join(lines))
    first = px.symmetries(block(), operator, starts=64)
    for given in (
        block(),
        (vertices.numpy(), faces.numpy()),
        (vertices.tolist(), faces.tolist()),
        SimpleNamespace(vertices=vertices.numpy(), faces=faces.numpy()),
        tmp_path / "block.obj",
        str(tmp_path / "block.obj"),
    ):
        shape = shape_from(given)
        assert isinstance(shape, Mesh)
        assert all(torch.equal(a, b) for a, b in zip(shape, shape_from(block())))
    assert px.symmetries(str(tmp_path / "block.obj"), operator, starts=64).planes == first.planes


def test_other_seeds_find_the_same_planes(operator: px.Operator):
    first, again, other = (
        px.symmetries(block(), operator, starts=64, seed=seed) for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other
    assert matched(other, torch.eye(3, 4).double())


def test_a_prism_of_many_sides_may_be_a_coarse_turned_part(operator: px.Operator):
    layer = Layer(circle(1.0, 20), 0.0, 1.5)
    surface = torch.from_numpy(stacked([layer], [circle(0.4, 160)])).view(-1, 3)
    mesh = Mesh(surface, torch.arange(len(surface)).view(-1, 3))
    found = px.symmetries(mesh, operator)
    assert len(found.planes) == 21
    assert sorted(each.order for each in found.axes) == [2] * 20 + [20]
    assert any("coarse facets" in each for each in found.doubts)
    (family,) = px.symmetries(mesh, operator, tolerance=5e-3).families
    assert abs(family.axis[2]) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("radius", [0.05, 0.1])
def test_a_boss_off_the_centre_leaves_no_plane_of_its_box(operator: px.Operator, radius: float):
    boss = Layer(circle(radius, 32, (0.5, 0.2)), 0.3, 0.35)
    mesh = solid(Layer(rectangle(1.0, 0.7), -0.3, 0.3), boss)
    found = px.symmetries(posed(mesh), operator, starts=64)
    assert len(found) == 0
    (doubt,) = found.doubts
    assert "not in every place" in doubt
    assert found.best is not None
    assert found.best.worst > 0.02 * found.size > 0.02 * found.best.residual


def test_a_low_boss_leaves_planes_with_a_doubt(operator: px.Operator):
    """Its points are off by less than single ones may be, and by more than the tolerance."""
    boss = Layer(circle(0.02, 32, (0.5, 0.2)), 0.3, 0.306)
    found = px.symmetries(solid(Layer(rectangle(1.0, 0.7), -0.3, 0.3), boss), operator, starts=64)
    (worst,) = {round(each.worst, 3) for each in found.planes}
    assert (worst, found.tolerance * found.size) == (0.006, pytest.approx(0.002))
    assert all(each.share < 1e-4 for each in found.planes)
    assert any("reflect some points to where the shape is not" in each for each in found.doubts)


def test_a_small_boss_of_a_large_mesh_is_seen(operator: px.Operator):
    """Its corners are few among many."""
    upper = solid(Layer(rectangle(1.0, 0.7), 0.0, 0.6))
    boss = solid(Layer(circle(0.01, 12, (0.5, 0.2)), 0.6, 0.62))
    parts = (sheet(120, 1.0, 0.7), upper, boss)
    first = np.cumsum([0, *(len(each.vertices) for each in parts)])
    faces = torch.cat([each.faces + int(k) for each, k in zip(parts, first)])
    found = px.symmetries(Mesh(torch.cat([each.vertices for each in parts]), faces), operator, 64)
    assert found.planes == found.axes == []
    assert any("not in every place" in each for each in found.doubts)


def test_without_exact_distances_no_plane_is_refused_and_that_is_said(
    operator: px.Operator, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(distance, "_there", lambda package: False)
    boss = Layer(circle(0.1, 32, (0.5, 0.2)), 0.3, 0.35)
    mesh = solid(Layer(rectangle(1.0, 0.7), -0.3, 0.3), boss)
    found = px.symmetries(posed(mesh), operator, starts=64)
    assert len(found) > 0
    assert any("Install libigl" in each for each in found.doubts)


def test_a_boss_on_a_disc_leaves_one_plane(operator: px.Operator):
    boss = Layer(circle(0.1, 32, (0.5, 0.2)), 0.3, 0.4)
    found = px.symmetries(solid(Layer(fine_circle(1.0, 8), -0.3, 0.3), boss), operator)
    assert found.families == found.axes == []
    (plane,) = found.planes
    across = np.array([0.2, -0.5, 0.0]) / np.hypot(0.5, 0.2)
    assert abs(np.array(plane.normal) @ across) > math.cos(ONE_DEGREE)
    assert any("not in every place" in each for each in found.doubts)


@pytest.mark.parametrize(("sides", "order"), [(4, 4), (3, 3)])
def test_a_slender_rod_is_no_turned_part(sides: int, order: int):
    """By the shipped operator: an untrained one passes over a plane of some rods."""
    found = px.symmetries(posed(solid(Layer(circle(0.01, sides), -1.0, 1.0))))
    assert (len(found.planes), found.families) == (sides + 1, [])
    assert sorted(each.order for each in found.axes) == [2] * sides + [order]


def test_a_nearly_round_prism_has_half_turns_alone(operator: px.Operator):
    """Small turns take it to itself within the tolerance, a quarter turn does not."""
    outline = fine_circle(1.0, 8) * np.array([1.0, 0.985])
    found = px.symmetries(solid(Layer(outline, -0.3, 0.3)), operator)
    assert {each.order for each in found.axes} == {2}


def test_orders_of_noisy_points_are_made_of_small_primes():
    """A turn by 11/23 is nearly a half turn."""
    points = np.random.default_rng(1).normal(size=(2048, 3)) * (1.0, 0.4, 0.05)
    found = px.symmetries(points)
    assert {each.order for each in found.axes} == {2}
    assert found.doubts


@pytest.mark.parametrize("order", range(2, HIGHEST + 1))
def test_multiples_of_a_telling_turn_are_all_turns_of_its_order(order: int):
    every = {round(k * telling(order) * order) % order for k in range(order)}
    assert every == set(range(order))


def test_the_step_of_a_thin_sheet_is_seen(operator: px.Operator):
    """It is within the tolerance of the whole, but not within that of the thickness."""
    low, high = Layer(rectangle(1.0, 0.7), -0.003, 0.0), Layer(rectangle(0.6, 0.4), 0.0, 0.003)
    found = px.symmetries(solid(low, high), operator)
    assert matched(found, torch.eye(3, 4).double()[:2])


def test_points_all_over_a_solid_have_no_mirrors(operator: px.Operator):
    points = torch.rand(1000, 3, generator=generator_for(0, "solid"))
    found = px.symmetries(points, operator, starts=64)
    assert len(found) == 0
    assert "points of the surface" in found.doubts[0]


def test_repeated_points_count_once(operator: px.Operator):
    points = sampled(block(), 500, generator_for(0, "cloud")).points
    once = px.symmetries(points, operator, starts=64)
    thrice = px.symmetries(points.repeat(3, 1), operator, starts=64)
    assert once.noise > 0
    assert once == thrice
    with pytest.raises(px.InputError, match="100 points, at 10 places"):
        px.symmetries(points[:10].repeat(10, 1), operator)


def test_a_cloud_with_a_feature_on_one_side_is_doubted(operator: px.Operator):
    boss = Layer(circle(0.1, 32, (0.5, 0.2)), 0.3, 0.5)
    mesh = solid(Layer(rectangle(1.0, 0.7), -0.3, 0.3), boss)
    cloud = sampled(mesh, 2048, generator_for(0, "cloud"))
    found = px.symmetries(cloud.points, operator, tolerance=0.01)
    assert found.planes
    assert any("something small may break" in each for each in found.doubts)


def test_places_far_from_the_origin_have_all_their_digits(operator: px.Operator):
    found = px.symmetries(block((123_456.5, 0.25, -3.0)), operator, starts=64)
    cells = {line[2] for line in found.lines() if line[0] == "plane"}
    assert "123456.5" in cells
    assert "123456.5 0.25 -3" in repr(found)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_normals_and_axes_point_the_same_way_in_every_run(operator: px.Operator, seed: int):
    found = px.symmetries(block(), operator, starts=64, seed=seed)
    ways = [each.normal for each in found.planes] + [each.direction for each in found.axes]
    assert all(max(way) > 0.99 for way in ways)
    assert all(math.copysign(1, each) > 0 for way in ways for each in way if each == 0)


def test_no_zero_is_negative_and_the_first_large_number_is_positive():
    rows = torch.tensor([[-0.0, -1.0, 0.0, 2.0], [-1e-9, 0.6, -0.8, -0.0], [-0.8, 0.6, 0.0, 1.0]])
    said = pointing(rows.double())
    expected = [[0.0, 1, 0, -2], [-1e-9, 0.6, -0.8, 0], [0.8, -0.6, 0, -1]]
    torch.testing.assert_close(said, torch.tensor(expected).double(), atol=1e-6, rtol=0)
    assert not torch.signbit(said[said == 0]).any()
    line = pointing(torch.tensor([[-1.0, 0, 0, 5, 6, 7]]))
    assert line.tolist() == [[1, 0, 0, 5, 6, 7]]


def test_planes_alone(operator: px.Operator):
    with_axes, without = (px.symmetries(block(), operator, 64, axes=axes) for axes in (True, False))
    assert without.planes == with_axes.planes
    assert (len(with_axes.axes), without.axes) == (3, [])


def test_what_is_saved_has_the_promised_keys(operator: px.Operator, tmp_path: Path):
    found = px.symmetries(made(washer).mesh, operator)
    read = json.loads(found.save(tmp_path / "new" / "found.json").read_text())
    assert read == found.to_json()
    assert {"normal", "offset", "residual"} <= read["planes"][0].keys()
    assert {"axis", "point", "residual"} <= read["families"][0].keys()
    assert {"direction", "point", "order", "residual", "share", "worst"} == read["axes"][0].keys()
    assert read["axes"][0]["order"] == 0
    assert len(read["planes"][0]["normal"]) == len(read["families"][0]["axis"]) == 3


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (torch.zeros(10, 3), "at least 64"),
        (torch.zeros(100, 3), "no size"),
        (torch.full((100, 3), torch.nan), "NaN"),
        (Cloud(torch.ones(100, 3) * 1j, None), "complex; they must be real"),
        (torch.zeros(100, 4), r"an array \(100, 4\); expected a mesh"),
        ((torch.zeros(4, 3), torch.zeros(2, 4)), r"split other polygons"),
        (None, "must be a mesh"),
        ("nothing.stl", "no file"),
    ],
)
def test_what_cannot_be_used_is_an_error_in_a_sentence(operator: px.Operator, shape, words: str):
    with pytest.raises(px.ProxlearnError, match=words):
        px.symmetries(shape, operator)


def test_what_is_wrong_with_the_shape_of_a_file_is_said_of_the_file(tmp_path: Path):
    (tmp_path / "flat.obj").write_text("v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n")
    with pytest.raises(px.FileError, match=r"flat.obj cannot be used. The mesh has no triangles"):
        shape_from(tmp_path / "flat.obj")


def test_settings_that_cannot_be_used(operator: px.Operator):
    with pytest.raises(px.InputError, match="tolerance must be a positive"):
        px.symmetries(block(), operator, tolerance=0.0)
    other = untrained(
        px.Box(0.0, 1.0, dim=2), Vectors((0.0,), (1.0,)), Coupling(blocks=1, width=8, shared=8)
    )
    for wrong in (other, px.pretrained("rotation", "cpu")):
        with pytest.raises(px.InputError, match=r"trained for 'symmetry', .* leave it out"):
            px.symmetries(block(), wrong)


# The parts of it.


def test_a_cloud_is_discs_that_end():
    """A flat square: a point above it is as far as it is high, one beside it as far as the edge."""
    side = torch.linspace(0, 1, 40).double()
    points = torch.cartesian_prod(side, side)
    target = CloudTarget(
        Cloud(torch.cat((points, torch.zeros(1600, 1)), 1), None), torch.Generator()
    )
    assert target.normals[:, 2].abs().min() > 1 - 1e-6
    found = target.near(torch.tensor([[0.1, 0.1, 0.2], [0.9, 0.0, 0.0]]), target.held)
    offset = found.distance[:, None] * found.direction
    torch.testing.assert_close(offset[0], torch.tensor([0.0, 0, 0.2]), atol=1e-4, rtol=0)
    assert 0.3 < offset[1, 0] < 0.4
    assert target.noise < 1e-6


def test_normals_are_where_neighbours_spread_least():
    around = torch.randn(5, 16, 3) * torch.tensor([1.0, 0.01, 1.0])
    normals, flatness = normals_of(around)
    assert normals[:, 1].abs().min() > 0.99
    assert flatness.max() < 1e-3


def test_normals_are_those_of_eigh():
    generator = generator_for(0, "around")
    around = torch.rand(200, 17, 3, generator=generator) * torch.rand(
        200, 1, 3, generator=generator
    )
    spread = (around - around.mean(1, keepdim=True)).double()
    values, vectors = torch.linalg.eigh(spread.mT @ spread)
    normals, flatness = normals_of(around)
    agree = (normals * vectors[..., 0]).sum(-1).abs()
    assert agree[values[:, 0] < 0.9 * values[:, 1]].min() > 1 - 1e-6
    torch.testing.assert_close(flatness.double(), values[:, 0] / values.sum(1), atol=1e-4, rtol=0)


def test_points_on_a_line_and_at_one_place_have_some_normal():
    line = torch.linspace(0, 1, 17)[:, None] * torch.tensor([0.6, 0.0, 0.8])
    normals, flatness = normals_of(torch.stack((line, torch.ones(17, 3))))
    torch.testing.assert_close(normals.norm(dim=1), torch.ones(2))
    assert normals[0] @ line[-1] == pytest.approx(0.0, abs=1e-5)
    assert flatness.abs().max() < 1e-6


def test_steps_take_a_plane_to_the_symmetry_beside_it():
    target = target_of(block(), generator_for(0, "target"))
    near = torch.tensor([[1.0, 0.06, -0.05, 0.02], [0.04, 1.0, 0.03, -0.01]])
    near[:, :3] /= near[:, :3].norm(dim=1, keepdim=True)
    before = measured(near, 256, target).residual
    after = refined(near, 256, target, (0.03, 0.01, 0.003, 0.001))
    assert (after.residual < 0.05 * before).all()
    assert px.Planes().squared_distance(after.planes, torch.eye(2, 4)).sqrt().max() < 2e-3


def test_the_axis_of_planes():
    line = Line(torch.tensor([0.6, 0.0, 0.8]), torch.tensor([0.0, 0.3, 0.0]))
    planes = line.planes(7)
    assert line.of(planes).all()
    found = fitted(planes)
    torch.testing.assert_close((found.axis @ line.axis).abs(), torch.tensor(1.0))
    torch.testing.assert_close(found.point, line.point, atol=1e-5, rtol=0)
    others = px.Planes(0.5).sample(4, generator=generator_for(0, "others"))
    most = likely_line(torch.cat((others, planes)))
    assert most is not None
    torch.testing.assert_close((most.axis @ line.axis).abs(), torch.tensor(1.0))
    assert likely_line(planes[:3]) is None
    assert likely_line(planes[:0]) is None


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """Those of a GPU, in Triton's interpreter, and targets that take to them on a CPU."""
    pytest.importorskip("triton", reason="the kernels need Triton")
    imported_as_written("networks._looking_kernel")
    names = ("discs", "planes")
    found = {name: imported_as_written(f"shapes.{name}_kernel") for name in names}
    found["discs"].TILE = 4096
    monkeypatch.setattr(targets, "can_fuse", lambda device: True)
    return found


def some_cloud(count: int) -> Cloud:
    return sampled(block(), count, generator_for(0, "cloud"))


def near_any(points: Places, held: Held) -> Near:
    """The nearest of all discs, as tensor operations."""
    return targets._near_discs(points, held["discs"].expand(len(points), -1, -1))


def some_lines(count: int) -> tuple[Tensor, Tensor]:
    lines = px.problem("rotation").space.sample(count, generator=generator_for(0, "lines"))
    return lines, 2 * torch.pi / torch.arange(2, 2 + count)


def test_batches_of_fixed_sizes_give_the_same(monkeypatch: pytest.MonkeyPatch, kernels: object):
    given = some_cloud(100), generator_for(0, "target")
    other = CloudTarget(*given)
    monkeypatch.undo()
    target = CloudTarget(given[0], generator_for(0, "target"))
    assert other.held
    assert not target.held
    for name in ("noise", "farthest", "spacing", "ending", "solid"):
        assert getattr(target, name) == pytest.approx(getattr(other, name), rel=1e-4)
    planes = px.Planes(0.3).sample(5, generator=generator_for(0, "planes"))
    lines, angle = some_lines(5)
    for some, by in ((planes, None), (lines, angle)):
        one, also = (refined(some, 30, each, (0.03, 0.01), by) for each in (target, other))
        for mine, theirs in zip(one, also):
            torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("scales", [(), (0.03, 0.01, 0.003)])
def test_the_kernel_takes_the_same_steps(kernels: dict[str, ModuleType], scales: tuple[float, ...]):
    target = CloudTarget(some_cloud(400), generator_for(0, "target"))
    planes = px.Planes(0.3).sample(6, generator=generator_for(0, "planes"))
    planes[0] = torch.tensor([-1.0, 0.0, 0.0, 0.001])  # through the middle: some points touch
    points, how = target.moving[:300], (target.held, near_any, scales, 280)
    mine = _descended(planes, points, *how)
    theirs = kernels["planes"].descended(planes, points, *how, TOUCHING, DAMPED)
    torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of points that are no numbers
def test_the_kernel_finds_the_same_of_a_cloud(kernels: dict[str, ModuleType]):
    target = CloudTarget(some_cloud(100), generator_for(0, "target"))
    points = torch.rand(70, 3, generator=generator_for(0, "points")) - 0.5
    points[:20] = target.points[:20]
    nearest = torch.cdist(points, target.points).topk(targets.TRIED, largest=False).indices
    mine = targets._near_discs(points, target.discs[nearest])
    theirs = Near(*kernels["discs"].nearest_discs(points, target.held["discs"]))
    for one, other in zip(mine, theirs):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
    points[0] = torch.nan
    found = Near(*kernels["discs"].nearest_discs(points, target.held["discs"]))
    torch.testing.assert_close(found.distance[1:], theirs.distance[1:])


class Waits(TorchDispatchMode):
    """Notes what would wait for a GPU, and what a captured graph cannot have."""

    def __init__(self):
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.split("::")[1]
        by_mask = name == "index" and any(
            each is not None and each.dtype == torch.bool for each in args[1]
        )
        if by_mask or name in ("nonzero", "_local_scalar_dense", "masked_select", "unique"):
            self.found.append(name)
        return func(*args, **(kwargs or {}))


def test_no_stage_waits_for_a_gpu():
    target = CloudTarget(some_cloud(400), generator_for(0, "cloud"))
    (some, angle), points = some_lines(16), target.moving[:64]
    rows, held = torch.cat((some, angle[:, None]), 1), {"discs": target.discs}
    with Waits() as waits:
        found = _descended(rows, points, held, near_any, (0.03, 0.01), 64)
    assert found.shape == (16, some.shape[1] + 3)
    assert waits.found == []


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # divisions that nobody reads
def test_the_kernel_finds_the_same_of_a_mesh():
    pytest.importorskip("triton", reason="the kernel needs Triton")
    imported_as_written("meshes.distance_kernel")
    target = MeshTarget(block(), generator_for(0, "target"), "cpu")
    triangles = torch.cat((target.surface.triangles, torch.zeros(4, 4, 3)))  # filled up
    held = {"triangles": triangles, "first": target.surface.first}
    points = torch.rand(40, 3, generator=generator_for(0, "points")) - 0.5
    mine, theirs = target.near(points, {}), near_triangles(points, held)
    torch.testing.assert_close(mine.distance, theirs.distance, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(mine.direction, theirs.direction, atol=1e-4, rtol=0)


def test_planes_that_are_the_same_from_the_other_side_are_one():
    planes = torch.tensor([[1.0, 0, 0, 0.001], [-1, 0, 0, 0.001], [0, 1, 0, 0.2], [1, 0, 0, 0.3]])
    target = target_of(block(), generator_for(0, "target"))
    assert len(distinct(measured(planes, 64, target)).planes) == 3


def test_sheets_lie_in_their_planes(operator: px.Operator):
    mesh = block((10.0, 0.0, -3.0))
    found = px.symmetries(mesh, operator, starts=64)
    for sheet, plane in zip(sheets(mesh, found), found.planes):
        assert sheet.corners @ np.array(plane.normal) == pytest.approx(plane.offset, abs=1e-5)
        assert np.ptp(sheet.corners, axis=0).max() >= 2.0


def test_the_order_of_an_axis_stands_at_the_end_that_the_shape_does_not_hide():
    """Also where the other one is higher up in the picture."""
    view, front = View(100.0, np.array([600.0, 600.0])), VIEW / np.linalg.norm(VIEW)
    ends = np.stack((np.array([0.0, 0.0, 2.0]) - front, np.array([0.5, 0.0, -1.0]) + front))
    far, near = view.on_image(ends)
    assert far[1] < near[1]  # rows go down
    for each in (ends, ends[::-1]):
        assert np.linalg.norm(_beyond(each, view) - near) == pytest.approx(BEYOND)
        assert np.linalg.norm(_beyond(each, view) - far) > np.linalg.norm(near - far)
    above = _beyond(np.stack((-front, front)), view)
    assert above == pytest.approx(view.on_image(front[None])[0] - [0, BEYOND])


def test_a_page_of_a_large_mesh_is_thinned(operator: px.Operator):
    found = px.symmetries(block(), operator, starts=64)
    said = drawn(sheet(200, 1.0, 1.0), found, "sheet")
    assert 1000 < len(said["faces"]) * 3 / 4 / 12 <= MOST_FACES
