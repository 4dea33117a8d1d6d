"""The problem of mirror planes, the network that looks at clouds, and planes made exact."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.calculus.certify import CERTIFICATES, certify
from proxlearn.common.batch import move
from proxlearn.common.seeds import generator_for
from proxlearn.instances.cloud import Clouds
from proxlearn.meshes.grid import corners
from proxlearn.meshes.mesh import Mesh, scaled
from proxlearn.meshes.parts import Part, part
from proxlearn.meshes.scatter import Scatter
from proxlearn.networks import matching
from proxlearn.networks.matching import Matching, MatchingNetwork
from proxlearn.operators.cores import until_settled
from proxlearn.problems.base import sampled
from proxlearn.problems.objectives import check_objective
from proxlearn.problems.symmetry.of_surfaces import rotations
from proxlearn.problems.symmetry.symmetry import Symmetry
from proxlearn.spaces import Planes

SPACE = Planes(0.5)
TURN = torch.tensor([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # by 90 degrees about z
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def box(x: float, y: float, z: float) -> Mesh:
    """A box around 0, two triangles a side."""
    corners = torch.cartesian_prod(*(torch.tensor([-s, s]) / 2 for s in (x, y, z)))
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [face for a, b, c, d in sides for face in ((a, b, c), (a, c, d))]
    return Mesh(corners, torch.tensor(faces))


BOX = box(1.0, 0.7, 0.4)
MIRRORS = torch.eye(4)[:3]  # of the box: x = 0, y = 0 and z = 0


def turned_planes(planes: Tensor, turn: Tensor) -> Tensor:
    return torch.cat((planes[..., :3] @ turn.mT, planes[..., 3:]), -1)


def planes_of(made: Part) -> Tensor:
    """The isolated planes of a part, where `scaled` puts it."""
    _, center, size = scaled(made.mesh)
    offset = (made.planes[:, 3] - made.planes[:, :3] @ center.to(made.planes)) / size
    return SPACE.retract(torch.cat((made.planes[:, :3], offset[:, None]), -1).float())


def one(problem: Symmetry, seed: int = 0) -> dict[str, Tensor]:
    return sampled(problem, 1, "train", torch.Generator().manual_seed(seed))


def apart(x: Tensor, y: Tensor) -> Tensor:
    return SPACE.squared_distance(x, y).sqrt()


# The problem.


def test_the_objective_is_the_mean_distance_of_reflected_points():
    problem = Symmetry([BOX], turned=False)
    tau = one(problem)
    assert problem.objective(MIRRORS[None], tau).max() < 1e-6
    planes = SPACE.sample(1, 6, generator=torch.Generator().manual_seed(0))
    points = tau["cloud"][0, : problem.moves, :3]
    height = points @ planes[0, :, :3].mT - planes[0, :, 3]
    moved = points[:, None] - 2 * height[..., None] * planes[0, :, :3]
    beyond = moved.abs() - torch.tensor([0.5, 0.35, 0.2])
    outside, inside = beyond.clamp(min=0).norm(dim=-1), -beyond.amax(-1)
    expected = torch.where(inside > 0, inside, outside).mean(0)
    torch.testing.assert_close(problem.objective(planes, tau)[0], expected, atol=1e-6, rtol=1e-5)


def test_a_turned_part_has_turned_planes():
    problem = Symmetry([BOX], turned=True)
    tau = one(problem)
    mirrors = turned_planes(MIRRORS[None], tau["turn"])
    assert problem.objective(mirrors, tau).max() < 1e-6
    assert problem.objective(MIRRORS[None], tau).min() > 1e-3


def test_refreshing_draws_other_points_of_the_same_surfaces():
    problem = Symmetry([BOX, box(1.0, 0.2, 0.3)])
    tau = one(problem)
    again = problem.refresh(tau, torch.Generator().manual_seed(9))
    assert torch.equal(again["which"], tau["which"])
    assert torch.equal(again["turn"], tau["turn"])
    assert not torch.equal(again["cloud"], tau["cloud"])
    assert torch.equal(one(problem)["cloud"], tau["cloud"])


def test_test_meshes_are_kept_apart():
    problem = Symmetry([BOX], [box(1.0, 0.1, 0.1)] * 3)
    for split, expected in (("train", {0}), ("test", {1, 2, 3})):
        tau = sampled(problem, 30, split, torch.Generator().manual_seed(1))
        assert set(tau["which"].tolist()) == expected


def test_the_objective_is_one_that_can_be_trained_on():
    check_objective(Symmetry([BOX]), "cpu")


def test_rotations_are_rotations():
    turn = rotations(50, torch.Generator().manual_seed(0))
    torch.testing.assert_close(turn @ turn.mT, torch.eye(3).expand(50, 3, 3), atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.linalg.det(turn), torch.ones(50))
    assert turn.mean(0).abs().max() < 0.3


def test_points_are_scattered_evenly_with_their_normals():
    surface, scatter = (found := Symmetry([BOX, box(1.0, 1.0, 1.0)], turned=False).on("cpu"))
    assert len(found) == 2
    points = scatter.points(torch.tensor([0, 1]), 6000, torch.Generator().manual_seed(2))
    places, normals = points.split(3, -1)
    assert surface.distance(places, torch.tensor([0, 1])).max() < 1e-6
    assert torch.equal(normals.norm(dim=-1).round(decimals=4), torch.ones(2, 6000))
    top = (normals[0, :, 2].abs() > 0.9).float().mean().item()
    area = {"z": 1.0 * 0.7, "y": 1.0 * 0.4, "x": 0.7 * 0.4}
    assert top == pytest.approx(area["z"] / sum(area.values()), abs=0.03)
    assert isinstance(scatter, Scatter)


# Planes made exact.


def test_planes_are_polished_to_the_kinks_and_certified():
    made = part("nut", torch.Generator().manual_seed(3))
    problem, true = Symmetry([made.mesh], turned=True), planes_of(made)[:2]
    tau = one(problem)
    true = SPACE.retract(turned_planes(true[None], tau["turn"]))
    noise = 0.005 * torch.randn(true.shape, generator=torch.Generator().manual_seed(0))
    near = px.Solutions.of(SPACE, SPACE.retract(true + noise), true).with_values(problem, tau)
    found = near.polished()
    assert apart(found.points, true).max() < 1e-5
    assert (found.values <= near.values).all()
    codes = certify(problem, tau, found.points)[0]
    assert [CERTIFICATES[k] for k in codes] == ["minimum"] * 2


# The network that looks.


@pytest.fixture(scope="module")
def operator() -> px.Operator:
    """Untrained: it takes the mean of its steps, which lead to symmetries all the same."""
    return px.Operator.untrained(Symmetry([BOX]), "matching", lam=3.0)


def cloud_of(mesh: Mesh, seed: int = 0) -> Tensor:
    return one(Symmetry([mesh], turned=False), seed)["cloud"]


def test_planes_near_a_symmetry_go_there(operator: px.Operator):
    noise = 0.05 * torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    near = SPACE.retract(MIRRORS + noise)
    found = operator.solve(cloud_of(BOX), near, steps=30).points[0]
    assert apart(found, MIRRORS).max() < 0.2 * apart(near, MIRRORS).min()


def test_steps_turn_with_the_cloud(operator: px.Operator):
    cloud, x = cloud_of(BOX), SPACE.sample(1, 20, generator=torch.Generator().manual_seed(2))
    turned = torch.cat([each @ TURN.mT for each in cloud.split(3, -1)], -1)
    y = operator(x[0], cloud)
    again = operator(turned_planes(x, TURN)[0], turned)
    torch.testing.assert_close(again, turned_planes(y, TURN), atol=2e-3, rtol=0)


def test_both_sides_of_a_plane_see_the_same(operator: px.Operator):
    prepared = operator.prepare(operator.encode(cloud_of(BOX)))
    x = SPACE.sample(1, 20, generator=torch.Generator().manual_seed(2))
    one_side, other = (operator.network(each, prepared) for each in (x, -x))
    torch.testing.assert_close(one_side, -other, atol=1e-4, rtol=0)


def test_the_normal_equations_are_those_of_the_distances_seen():
    """Against derivatives of the reweighted squares, by autograd."""
    cloud, x = (
        cloud_of(BOX),
        SPACE.sample(1, 1, generator=torch.Generator().manual_seed(4)).double(),
    )
    network = MatchingNetwork(Matching(reflected=64, side=8))
    prepared = network.prepare(network.encode(cloud), torch.ones(1))
    prepared = {k: v.double() if v.is_floating_point() else v for k, v in prepared.items()}
    basis = SPACE.tangent(x)
    seen = matching.looked(x, basis, prepared)[0, 0]
    point, own = prepared["some"][0].split(3, -1)

    def moved(step: Tensor) -> tuple[Tensor, Tensor]:
        y = x[0, 0] + basis[0, 0] @ step
        normal = y[:3]
        height = point @ normal - y[3]
        return point - 2 * height[:, None] * normal, own - 2 * (own @ normal)[:, None] * normal

    rest = torch.zeros(3, dtype=torch.float64)
    places, normals = moved(rest)
    columns = [[each[:, k].view(1, 1, -1) for k in range(3)] for each in (places, normals)]
    matches = matching.looking.matched(*columns, prepared)
    place, other = (torch.stack([c[0, 0] for c in each], -1) for each in matches)

    def errors(step: Tensor) -> Tensor:
        return ((moved(step)[0] - place) * other).sum(-1)

    rows = torch.autograd.functional.jacobian(errors, rest)
    error, facing = errors(rest), (normals * other).sum(-1)
    weight = facing.square() * (error.square() + matching.TO_PLANES[0] ** 2).rsqrt()
    matrix, right = rows.mT @ (weight[:, None] * rows), rows.mT @ (weight * error)
    upper = torch.triu_indices(3, 3)
    torch.testing.assert_close(seen[:6], matrix[upper[0], upper[1]])
    torch.testing.assert_close(seen[6:9], right)

    def ways(step: Tensor) -> Tensor:
        return (moved(step)[0] - place).flatten()

    rows, way = torch.autograd.functional.jacobian(ways, rest), ways(rest)
    far = way.view(-1, 3).square().sum(-1)
    weight = (far + matching.TO_POINTS[0] ** 2).rsqrt().repeat_interleave(3)
    first = 9 * len(matching.TO_PLANES)
    matrix, right = rows.mT @ (weight[:, None] * rows), rows.mT @ (weight * way)
    torch.testing.assert_close(seen[first : first + 6], matrix[upper[0], upper[1]])
    torch.testing.assert_close(seen[first + 6 : first + 9], right)


def test_the_way_from_a_disc_is_the_slope_of_its_distance():
    draws = torch.Generator().manual_seed(0)
    normal = torch.nn.functional.normalize(torch.randn(1, 1, 50, 3, generator=draws), dim=-1)
    point = 0.1 * torch.randn(1, 1, 50, 3, generator=draws)
    point[:, :, :5] = 0.01 * normal[:, :, :5]  # above the middle of the disc
    point.requires_grad_()
    above = (point * normal).sum(-1)
    way, other = point.unbind(-1), normal.unbind(-1)
    direction, far = matching.looking.to_disc(way, above, other, torch.tensor([0.05]))
    beside = (point - above[..., None] * normal).norm(dim=-1)
    expected = torch.hypot(above, (beside - 0.05).clamp(min=0))
    torch.testing.assert_close(far, expected)
    (slope,) = torch.autograd.grad(expected.sum(), point)
    torch.testing.assert_close(torch.stack(direction, -1), slope, atol=1e-4, rtol=1e-4)


def test_discs_cover_the_surface():
    """Points of a square of area 1, evenly: each disc has the area of a point's share, about."""
    side = torch.linspace(0, 1, 46)
    flat = torch.cartesian_prod(side, side, torch.zeros(1))
    cloud = torch.cat((flat, torch.zeros_like(flat)), -1)[None]
    middle = cloud[:, (flat[:, :2] - 0.5).abs().amax(1) < 0.3]
    radius = matching.looking.radius_of(cloud, middle[:, :64]).item()
    assert math.pi * radius**2 == pytest.approx(1 / len(flat), rel=0.35)


def test_every_corner_knows_its_nearest_point():
    points = torch.rand(2, 100, 3, generator=torch.Generator().manual_seed(0)) - 0.5
    ids = matching.looking.nearest_ids(points, 6)
    at = corners(6, points.device)
    assert torch.equal(ids.long(), torch.cdist(at.expand(2, -1, -1), points).argmin(-1))


def test_it_is_trained_saved_and_loaded(tmp_path):
    problem = Symmetry([BOX])
    how: dict[str, Any] = {"steps": 3, "instances": 2, "points": 4, "depth": 1, "applications": 2}
    how["architecture"] = {"kind": "matching", "reflected": 64, "side": 8, "width": 16}
    operator = px.learn(problem, device="cpu", progress=False, **how)
    loaded = px.load(operator.save(tmp_path / "planes.safetensors"), "cpu")
    cloud = cloud_of(BOX)
    assert torch.equal(loaded.solve(cloud, 8).points, operator.solve(cloud, 8).points)


def test_it_is_only_for_planes_of_clouds():
    with pytest.raises(px.InputError, match="for planes of clouds"):
        px.Operator.untrained(px.problem("conic"), "matching")


@needs_gpu
def test_the_kernels_see_what_the_reference_sees(operator: px.Operator):
    cloud, x = cloud_of(BOX), SPACE.sample(1, 40, generator=torch.Generator().manual_seed(2))
    prepared = operator.prepare(operator.encode(cloud))
    on_gpu = {k: v.cuda() for k, v in prepared.items()}
    ids = matching.looking.nearest_ids(cloud[..., :3].contiguous().cuda(), 32)
    assert (ids.cpu() == prepared["ids"]).float().mean() > 0.999
    seen = matching.looked(move(x, "cuda"), SPACE.tangent(x).cuda(), on_gpu).cpu()
    torch.testing.assert_close(
        seen, matching.looked(x, SPACE.tangent(x), prepared), atol=0.1, rtol=1e-2
    )


# Clouds.


def test_clouds_are_checked():
    clouds = Clouds(2048)
    assert clouds.batch(torch.zeros(100, 6)).shape == (1, 100, 6)
    for bad, words in (
        (torch.zeros(100, 4), "points, 6"),
        (torch.zeros(10, 6), "at least 64"),
        (torch.full((100, 6), math.nan), "NaN"),
    ):
        with pytest.raises(px.InputError, match=words):
            clouds.batch(bad)


def test_normals_that_are_missing_are_estimated():
    points = torch.rand(200, 3, generator=generator_for(0, "points")) * torch.tensor([1.0, 1, 0])
    (cloud,) = Clouds(2048).batch(points)
    assert torch.equal(cloud[:, :3], points)
    assert cloud[:, 5].abs().min() > 1 - 1e-5
    twice = Clouds(2048).batch(points.repeat(2, 1))[0]  # every point has one at its own place
    torch.testing.assert_close(twice[:200, 3:].abs(), cloud[:, 3:].abs(), atol=1e-5, rtol=0)


def test_points_without_normals_can_be_solved(operator: px.Operator):
    points = torch.rand(100, 3, generator=generator_for(0, "points")) - 0.5
    found = operator.solve(points * torch.tensor([1.0, 0.5, 0.0]), starts=8, steps=2)
    assert found.points.shape == (1, 8, 4)


@pytest.mark.parametrize("kind", [Symmetry, px.problem("rotation").__class__])
def test_no_meshes_are_an_error_in_a_sentence(kind: type):
    with pytest.raises(px.InputError, match="leave `meshes` out"):
        kind([])


def test_a_plane_through_the_origin_settles_from_either_side():
    """(n, 0) and (-n, 0) are one plane: applications that only change its side are left out."""
    sides, calls = torch.tensor([[[0.0, 0.6, 0.8, 0.0]]]), []

    def flip(x: Tensor, prepared: Tensor) -> Tensor:
        calls.append(len(x[0]))
        return -x

    until_settled(flip, sides, torch.zeros(1), 5, SPACE)
    assert calls == [1]
