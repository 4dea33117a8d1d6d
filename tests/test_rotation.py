"""The problem of axes of rotation, the network that looks at clouds, and axes made exact."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.calculus.certify import CERTIFICATES, certify
from proxlearn.instances.turned_cloud import TurnedClouds
from proxlearn.meshes.mesh import Mesh, scaled
from proxlearn.networks import turning
from proxlearn.networks.turning import Turning, TurningNetwork
from proxlearn.problems.base import sampled
from proxlearn.problems.rotation import Rotation
from proxlearn.problems.symmetry import moves

SPACE = px.Lines(0.5)
TURN = torch.tensor([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # by 90 degrees about z


def prism(sides: int, height: float = 0.6) -> Mesh:
    """Upright about the z axis, with triangles for its ends and sides."""
    angle = 2 * math.pi * torch.arange(sides) / sides
    ring = 0.5 * torch.stack((angle.cos(), angle.sin()), 1)
    up = torch.full((sides, 1), height / 2)
    ends = [torch.cat((ring, up), 1), torch.cat((ring, -up), 1)]
    k = torch.arange(sides)
    after = (k + 1) % sides
    fan = [torch.stack((torch.zeros(sides - 2).long(), k[1:-1], k[2:]), 1) + s for s in (0, sides)]
    around = (
        torch.stack((k, after, k + sides), 1),
        torch.stack((after, after + sides, k + sides), 1),
    )
    return Mesh(torch.cat(ends), torch.cat((*fan, *around)))


def one(problem: Rotation, order: int, seed: int = 0) -> dict[str, Tensor]:
    tau = sampled(problem, 1, "train", torch.Generator().manual_seed(seed))
    return tau | {"order": torch.tensor([order])}


def upright(mesh: Mesh) -> Tensor:
    """The z axis (1, 1, 6), where it is when the mesh has been scaled."""
    _, center, size = scaled(mesh)
    return torch.cat((torch.tensor([0.0, 0.0, 1.0]), -center / size))[None, None]


# The problem.


def test_the_objective_is_zero_where_turns_take_the_shape_to_itself():
    problem, axis = Rotation([prism(5)], turned=False), upright(prism(5))
    values = {k: problem.objective(axis, one(problem, k)).item() for k in (2, 3, 4, 5, 7)}
    assert values.pop(5) < 1e-6
    assert min(values.values()) > 1e-3
    aslant = SPACE.sample(1, 20, generator=torch.Generator().manual_seed(0))
    assert problem.objective(aslant, one(problem, 5)).min() > 1e-3


def test_the_objective_is_the_mean_distance_of_turned_points():
    problem = Rotation([prism(4)], turned=True)
    tau = one(problem, 3)
    x = SPACE.sample(1, 4, generator=torch.Generator().manual_seed(1))
    surface, _ = problem.on("cpu")
    points = tau["cloud"][0, : problem.moves, :3]
    for line, value in zip(x[0], problem.objective(x, tau)[0]):
        axis, center = line.split(3)
        cross = torch.linalg.cross(axis.expand(3, 3), torch.eye(3)).mT
        turns = [torch.linalg.matrix_exp(way * 2 * math.pi / 3 * cross) for way in (1, -1)]
        moved = torch.cat([center + (points - center) @ turn.mT for turn in turns])
        far = surface.distance((moved @ tau["turn"][0])[None], tau["which"])
        torch.testing.assert_close(value, far.mean(), atol=1e-6, rtol=1e-4)


def test_a_line_and_its_other_direction_have_one_value():
    problem = Rotation([prism(3)])
    x = SPACE.sample(1, 9, generator=torch.Generator().manual_seed(2))
    other = torch.cat((-x[..., :3], x[..., 3:]), -1)
    tau = one(problem, 3)
    torch.testing.assert_close(problem.objective(x, tau), problem.objective(other, tau))


def test_axes_are_polished_to_the_kinks_and_certified():
    problem, axis = Rotation([prism(5)], turned=False), upright(prism(5))
    noise = 0.01 * torch.randn(1, 3, 6, generator=torch.Generator().manual_seed(0))
    tau = one(problem, 5)
    near = px.Solutions.of(SPACE, SPACE.retract(axis + noise), axis.expand(1, 3, 6))
    found = near.with_values(problem, tau).polished()
    assert SPACE.squared_distance(found.points, axis).sqrt().max() < 1e-5
    codes = certify(problem, tau, found.points)[0]
    assert [CERTIFICATES[k] for k in codes] == ["minimum"] * 3


def test_slopes_are_those_of_turned_points():
    x = SPACE.project(SPACE.sample(2, 3, generator=torch.Generator().manual_seed(0)).double())
    move = moves.Turning(torch.tensor([[0.7], [2.1]]).double())
    points = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(1)).double()
    ways = torch.randn(2, 3, 10, 3, generator=torch.Generator().manual_seed(2)).double()
    basis = SPACE.tangent(x)

    def along(step: Tensor) -> Tensor:
        there = SPACE.retract(x + (basis @ step[..., None])[..., 0])
        return (move.moved(there, points) * ways).sum(-1)

    rest = torch.zeros(2, 3, 4).double()
    every = torch.autograd.functional.jacobian(along, rest)  # (2 3 10 2 3 4)
    own = torch.einsum("injint->injt", every)
    torch.testing.assert_close(move.slopes(x, basis, points, ways), own)


# The network that looks.


@pytest.fixture(scope="module")
def operator() -> px.Operator:
    """Untrained: it takes the mean of its steps, which lead to symmetries all the same."""
    return px.Operator.untrained(Rotation(), "turning", lam=3.0)


def cloud_of(mesh: Mesh) -> Tensor:
    return one(Rotation([mesh], turned=False), 2)["cloud"]


@pytest.mark.parametrize("order", [2, 3, 6])
def test_lines_near_an_axis_go_there(operator: px.Operator, order: int):
    noise = 0.05 * torch.randn(8, 6, generator=torch.Generator().manual_seed(1))
    axis = upright(prism(6))[0]
    near = SPACE.retract(axis + noise)
    found = operator.solve((cloud_of(prism(6)), order), near, steps=30).points[0]
    apart = SPACE.squared_distance(found, axis).sqrt()
    assert apart.max() < 0.2 * SPACE.squared_distance(near, axis).sqrt().min()


def turned_lines(x: Tensor) -> Tensor:
    return torch.cat([each @ TURN.mT for each in x.split(3, -1)], -1)


def test_steps_turn_with_the_cloud(operator: px.Operator):
    cloud, x = cloud_of(prism(5)), SPACE.sample(20, generator=torch.Generator().manual_seed(2))
    again = operator(turned_lines(x), (turned_lines(cloud), 3))
    torch.testing.assert_close(again, turned_lines(operator(x, (cloud, 3))), atol=2e-3, rtol=0)


def test_both_directions_of_a_line_see_the_same(operator: px.Operator):
    cloud, x = cloud_of(prism(5)), SPACE.sample(20, generator=torch.Generator().manual_seed(2))
    other = torch.cat((-x[..., :3], x[..., 3:]), -1)
    first, second = (operator(each, (cloud, 3)) for each in (x, other))
    assert SPACE.squared_distance(first, second).sqrt().max() < 2e-3


def test_the_normal_equations_are_those_of_the_distances_seen():
    """Against derivatives of the reweighted squares, by autograd."""
    network = TurningNetwork(Turning(reflected=64, side=8))
    observed = {"cloud": cloud_of(prism(5)), "order": torch.tensor([3])}
    prepared = network.prepare(network.encode(observed), torch.ones(1))
    prepared = {k: v.double() if v.is_floating_point() else v for k, v in prepared.items()}
    x = SPACE.project(SPACE.sample(1, 1, generator=torch.Generator().manual_seed(4)).double())
    basis = SPACE.tangent(x)
    seen = turning.looked(x, basis, prepared)[0, 0]
    point, own = prepared["some"].split(3, -1)
    move = moves.Turning(prepared["angle"][:, None])

    def moved(step: Tensor) -> Tensor:
        there = SPACE.retract(x + (basis[0, 0] @ step))
        return move.moved(there, point)[0, 0]

    rest = torch.zeros(4, dtype=torch.float64)
    places = moved(rest)
    through = torch.cat((x[..., :3], torch.zeros_like(x[..., :3])), -1)
    normals = move.moved(through, own)[0, 0]
    columns = [[each[:, k].view(1, 1, -1) for k in range(3)] for each in (places, normals)]
    matches = turning.looking.matched(*columns, prepared)
    place, other = (torch.stack([c[0, 0] for c in each], -1) for each in matches)

    def system(errors: Any, weight: Tensor) -> Tensor:
        rows, error = torch.autograd.functional.jacobian(errors, rest), errors(rest)
        matrix, right = rows.mT @ (weight[:, None] * rows), rows.mT @ (weight * error)
        return torch.cat((matrix[tuple(torch.triu_indices(4, 4))], right))

    def fine(step: Tensor) -> Tensor:
        return ((moved(step) - place) * other).sum(-1)

    def coarse(step: Tensor) -> Tensor:
        return (moved(step) - place).flatten()

    facing = (normals * other).sum(-1)
    weight = facing.square() * (fine(rest).square() + turning.TO_PLANES[0] ** 2).rsqrt()
    torch.testing.assert_close(seen[:14], system(fine, weight))
    far = coarse(rest).view(-1, 3).square().sum(-1)
    weight = (far + turning.TO_POINTS[0] ** 2).rsqrt().repeat_interleave(3)
    first = 14 * len(turning.TO_PLANES)
    torch.testing.assert_close(seen[first : first + 14], system(coarse, weight))


def test_lines_are_looked_at_in_parts(operator: px.Operator, monkeypatch: pytest.MonkeyPatch):
    cloud = torch.cat((cloud_of(prism(5)), cloud_of(prism(3))))
    x = SPACE.sample(2, 5, generator=torch.Generator().manual_seed(3))
    whole = operator(x, (cloud, 3))
    for points in (3, 7):  # of one cloud, and of several
        monkeypatch.setattr(turning, "AT_ONCE", 512 * points)
        torch.testing.assert_close(operator(x, (cloud, 3)), whole)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_lines_see_the_same_on_a_gpu(operator: px.Operator):
    x = SPACE.sample(1, 40, generator=torch.Generator().manual_seed(2))
    observed = {"cloud": cloud_of(prism(5)), "order": torch.tensor([3])}
    prepared = operator.prepare(operator.encode(observed))
    on_gpu = {name: each.cuda() for name, each in prepared.items()}
    seen = turning.looked(x.cuda(), SPACE.tangent(x).cuda(), on_gpu).cpu()
    expected = turning.looked(x, SPACE.tangent(x), prepared)
    torch.testing.assert_close(seen, expected, atol=0.1, rtol=1e-2)


def test_it_is_only_for_lines_of_clouds_with_an_order():
    with pytest.raises(px.InputError, match="for lines of clouds with an order"):
        px.Operator.untrained(px.problem("symmetry"), "turning")


def test_solved_equations():
    root = torch.randn(3, 7, 4, 4, generator=torch.Generator().manual_seed(0)).double()
    matrix, right = root @ root.mT, root[..., 0]
    packed = torch.cat((matrix[..., *torch.triu_indices(4, 4)], right), -1)
    found = turning.looking.solved(packed, 4, torch.tensor(0.3))
    eye = 0.3 * torch.eye(4).double()
    torch.testing.assert_close(found, -torch.linalg.solve(matrix + eye, right))


# Clouds with an order.


def test_clouds_with_an_order_are_checked(tmp_path):
    import numpy as np

    known, cloud = TurnedClouds(2048, 8), torch.zeros(100, 6)
    np.save(tmp_path / "cloud.npy", cloud.numpy())
    for given in ((cloud, 3), {"cloud": cloud, "order": 3}, [(cloud, 3)]):
        batch = known.batch(given)
        assert batch["cloud"].shape == (1, 100, 6)
        assert batch["order"].tolist() == [3]
    assert known.batch((torch.zeros(2, 100, 6), (3, 4)))["order"].tolist() == [3, 4]
    assert known.read(f"{tmp_path / 'cloud.npy'}:5")["order"].tolist() == [5]
    for bad, words in (
        ((cloud, 1), "from 2"),
        ((cloud, 2.5), "whole number"),
        ((cloud, (3, 4)), "each of the 1"),
        (cloud, r"\(cloud, order\)"),
        ((torch.zeros(10, 6), 2), "at least 64"),
    ):
        with pytest.raises(px.InputError, match=words):
            known.batch(bad)
    with pytest.raises(px.InputError, match=r"cloud.npy:3"):
        known.read("cloud.npy")
    with pytest.warns(px.RangeWarning, match="larger than 8"):
        known.warn_of_unknown(known.batch((cloud, 9)))
