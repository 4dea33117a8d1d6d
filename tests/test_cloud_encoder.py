"""The pooled code of a cloud: its neighbours and edges against what defines them, and trainings."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.gpu.capture import captured
from proxlearn.instances.cloud import Clouds
from proxlearn.meshes.mesh import Mesh
from proxlearn.networks.encoders import cloud as module
from proxlearn.networks.encoders.cloud import Cloud, Edges, largest, nearest
from proxlearn.problems.base import held_out
from proxlearn.problems.symmetry import Symmetry, of_surfaces
from proxlearn.problems.symmetry.moves import Reflecting
from proxlearn.training.arrival import Lessons

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU"
))]  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore:Exact distances to meshes are found by trying")
PAPER = {"activation": "relu", "gated": False, "start_at_identity": False}
SMALL = {"kind": "coupling", "blocks": 5, "width": 32, "shared": 32}


def clouds(count: int = 3, points: int = 200) -> Tensor:
    """Points on a sphere that is pressed flat, with normals that are about right."""
    normal = torch.randn(count, points, 3, generator=torch.Generator().manual_seed(0))
    normal = torch.nn.functional.normalize(normal, dim=-1)
    return torch.cat((normal * torch.tensor([0.5, 0.4, 0.1]), normal), -1)


def brick(*sides: float) -> Mesh:
    """A box around 0 of 12 triangles."""
    low_and_high = torch.tensor([-0.5, 0.5])
    vertices = torch.cartesian_prod(low_and_high, low_and_high, low_and_high)
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    halves = [half for a, b, c, d in faces for half in ((a, b, c), (a, c, d))]
    return Mesh(vertices * torch.tensor(sides), torch.tensor(halves))


class Bricks(Symmetry):
    """Small clouds of boxes, with a small encoder and distances in closed form."""

    def __init__(self):
        sides = [(1.0, a, b) for a in (0.4, 0.5, 0.6, 0.7) for b in (0.2, 0.3)]
        super().__init__([brick(*each) for each in sides], turned=False)
        self.halves = torch.tensor(sides) / 2

    def encoder(self):
        return Cloud(Clouds(128), size=32, width=8, near=8)

    def objective(self, x, tau):
        moved = Reflecting().moved(x, tau["cloud"][:, :64, :3])
        beyond = moved.abs() - self.halves.to(x)[tau["which"]][:, None, None]
        outside, inside = beyond.clamp(min=0).norm(dim=-1), -beyond.amax(-1).clamp(max=0)
        return (outside + inside).mean(-1)


@pytest.fixture
def bricks(monkeypatch: pytest.MonkeyPatch) -> Bricks:
    monkeypatch.setattr(of_surfaces, "POINTS", 128)
    return Bricks()


def searched(h: Tensor, count: int) -> list[set[int]]:
    return [set(row) for row in nearest(h, count).flatten(0, 1).tolist()]


@pytest.mark.parametrize("at_once", [1, 1000, 1 << 25])
def test_neighbours_are_the_nearest_points(at_once: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    h = clouds()
    apart = torch.cdist(h.double(), h.double())
    true = apart.topk(20, largest=False).indices.flatten(0, 1).tolist()
    assert searched(h, 20) == [set(row) for row in true]


def test_a_cloud_with_few_points_has_few_neighbours():
    assert nearest(clouds(points=7), 20).shape == (3, 7, 7)


@pytest.mark.parametrize("device", DEVICES)
def test_neighbours_are_searched_in_full_precision(device: str):
    """Whatever products are otherwise computed in: far from 0, rounded points would be alike."""
    h = (100 + clouds()).double()
    true = torch.cdist(h, h).topk(5, largest=False).indices.flatten(0, 1).tolist()
    h = (h - 100).float().to(device)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        with torch.autocast(device, torch.bfloat16):
            found = searched(h, 5)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    same = sum(a == set(b) for a, b in zip(found, true, strict=True))
    assert same >= 0.99 * len(true)  # two distances may be as good as equal


def test_an_edge_convolution_is_the_largest_over_edges_and_so_are_its_gradients():
    torch.manual_seed(0)
    edges, h = Edges(6, 16).double(), clouds().double().requires_grad_()
    near = nearest(h, 8)
    others = h[torch.arange(3)[:, None, None], near]  # (i m k c)
    itself = h[:, :, None].expand_as(others)
    along, at = edges.of_others.weight, edges.of_itself.weight + edges.of_others.weight
    every = (others - itself) @ along.T + itself @ at.T + edges.of_itself.bias
    true = edges.finish(every.amax(2))
    found = edges(h, near)
    torch.testing.assert_close(found, true)
    weights, toward = (h, *edges.parameters()), torch.randn_like(true)
    torch.testing.assert_close(
        torch.autograd.grad((found * toward).sum(), weights),
        torch.autograd.grad((true * toward).sum(), weights),
    )


def test_the_largest_is_looked_up_with_a_gradient_of_its_own():
    h = torch.tensor([[[1.0, 9.0], [5.0, 2.0], [3.0, 4.0]]], requires_grad=True)
    found = largest(h, torch.tensor([[[0, 1], [1, 2], [2, 0]]]))
    assert found.tolist() == [[[5.0, 9.0], [5.0, 4.0], [3.0, 9.0]]]
    found.sum().backward()
    assert h.grad is not None
    assert h.grad.tolist() == [[[0.0, 2.0], [2.0, 0.0], [1.0, 1.0]]]


def test_a_code_depends_on_neither_the_order_of_points_nor_on_other_clouds():
    torch.manual_seed(0)
    encoder, some = Cloud(Clouds(200), width=16), clouds()
    code = encoder(some)
    assert code.shape == (3, 256)
    torch.testing.assert_close(encoder(some[1:2])[0], code[1], rtol=1e-4, atol=1e-5)
    order = torch.randperm(200)
    torch.testing.assert_close(encoder(some[:, order]), code, rtol=1e-3, atol=1e-4)
    assert (encoder(some * torch.tensor([2.0, 1, 1, 1, 1, 1])) - code).abs().max() > 0.01
    assert encoder(some[:, :99]).shape == (3, 256)


def test_it_has_the_published_sizes():
    encoder = Cloud(Clouds(2048))
    assert encoder.settings() == {"size": 256, "width": 64, "near": 20}
    assert [each.of_itself.out_features for each in encoder.edges] == [64, 64, 128, 256]
    assert encoder.mix[0].out_features == 1024
    assert encoder.code[0][0].in_features == 2048  # the largest and the means


def trained(problem: px.Problem, device: str, **settings: Any) -> px.Operator:
    how = {"instances": 12, "points": 8, "depth": 2, "rate": 3e-3, "applications": 10}
    how |= {"architecture": SMALL, "device": device, "progress": False}
    return px.learn(problem, **how | settings)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("error:Every step is launched")  # on a GPU it is captured
def test_planes_are_learned_from_a_pooled_code(bricks: Bricks, device: str, tmp_path: Path):
    """Of every step, two of three groups of clouds are encoded anew."""
    operator = trained(bricks, device, steps=60, encodes=8)
    tau = held_out(bricks, 4, device=device)
    found = operator.solve(tau, starts=64)
    begun = bricks.objective(found.starts, tau)
    assert found.values.median() < 0.6 * begun.median()

    loaded = px.load(operator.save(tmp_path / "bricks.safetensors"), device)
    seen = loaded.solve(tau["cloud"], found.starts)
    torch.testing.assert_close(seen.points, found.points)
    assert loaded.solve(tau["cloud"][0, :99].cpu(), starts=8).points.shape == (1, 8, 4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("error:Every step is launched")
def test_points_learn_from_a_pooled_code_when_they_have_arrived(bricks: Bricks, device: str):
    operator = trained(bricks, device, steps=20)
    lessons = Lessons(operator, bricks, (6, 8), seed=0)
    one_round = captured(lessons.round, operator.device, lessons.generator)
    for _ in range(6):
        one_round()
    assert lessons.error.isfinite()
    operator.arrival = lessons.arrival.eval()
    found = operator.solve(held_out(bricks, 2, device=device), starts=16)
    assert found.applications is not None
    assert found.applications.float().std() > 0  # every point stops when it is there


def test_the_network_of_the_paper_takes_the_code(bricks: Bricks):
    sizes = {"kind": "coupling", "blocks": 5, **PAPER}
    operator = trained(bricks, "cpu", steps=3, architecture=sizes, precision="bf16")
    assert operator.network.code_size == 32
    assert operator.finite
    assert trained(bricks, "cpu", steps=1, architecture="paper").finite


def test_regression_on_one_step_of_descent(bricks: Bricks):
    """GOL with Q = 1, as the paper has it here, by an operator that looks at the cloud."""
    architecture = {"kind": "matching", "reflected": 64, "side": 8, "width": 16}
    how = {"rule": "gradient", "descents": 1, "architecture": architecture, "rate": 1e-2}
    operator = trained(bricks, "cpu", steps=60, **how)
    assert operator.provenance["rule"]["descents"] == 1
    tau = held_out(bricks, 4)
    found = operator.solve(tau, starts=16, steps=20)
    begun = bricks.objective(found.starts, tau)
    assert found.values.median() < 0.5 * begun.median()
