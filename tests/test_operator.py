"""The operator: what one application is, how it is iterated, saved and loaded."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from making import untrained
from safetensors import safe_open
from torch import Tensor

import proxlearn as px
from proxlearn.answers.starts import starting_points
from proxlearn.instances import Vectors
from proxlearn.instances.picture import Pictures
from proxlearn.networks import architecture_from
from proxlearn.networks.coupling import Coupling
from proxlearn.networks.encoders.vector import Vector
from proxlearn.operators import applying, cores
from proxlearn.operators import operator as operators

SMALL = Coupling(blocks=2, width=16, shared=24)
RANDOM = Coupling(blocks=2, width=16, shared=24, start_at_identity=False)
SPACES = [px.Box(-5.0, 5.0, dim=2), px.Circles(2), px.Sphere(3), px.Planes()]
PARAMETERS = px.Box(-1.0, 1.0, dim=3)


def make(space: px.Space, architecture: Coupling = RANDOM) -> px.Operator:
    torch.manual_seed(0)
    return untrained(space, Vectors.over(PARAMETERS), architecture).eval()


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_begins_as_the_identity_and_stays_on_the_manifold(space: px.Space):
    tau = PARAMETERS.sample(2, generator=torch.Generator().manual_seed(0))
    at_first = make(space, SMALL).solve(tau, starts=20, steps=3)
    torch.testing.assert_close(at_first.points, at_first.starts, rtol=1e-4, atol=1e-5)
    moved = make(space).solve(tau, starts=20, steps=3)
    assert (moved.points - moved.starts).abs().max() > 1e-2
    torch.testing.assert_close(space.retract(moved.points), moved.points)


def test_k_steps_are_k_applications_and_0_are_the_starts():
    operator = make(SPACES[0])
    tau = torch.tensor([0.1, -0.2, 0.3])
    starts = operator.solve(tau, starts=10, steps=0)
    assert torch.equal(starts.points, starts.starts)
    assert (starts.applications == 0).all()
    x = starts.points
    prepared = operator.prepare(operator.encode(tau[None]))
    for _ in range(3):
        x = operator.step(x, prepared)
    assert torch.equal(operator.solve(tau, starts=10, steps=3).points, x.detach())
    default = operator.solve(tau, starts=10)
    assert operator.applications == 5
    assert (default.applications == 5).all()


def test_one_tau_or_many_give_the_same():
    operator = make(SPACES[0])
    taus = PARAMETERS.sample(3, generator=torch.Generator().manual_seed(0))
    starts = operator.space.sample(7, generator=torch.Generator().manual_seed(1))
    many = operator.solve(taus, starts=starts)
    assert many.points.shape == (3, 7, 2)
    assert many.values is None  # there is no objective here
    for i, tau in enumerate(taus):
        one = operator.solve(tau.tolist(), starts=starts)
        torch.testing.assert_close(one.points[0], many.points[i], rtol=1e-5, atol=1e-5)
    assert not torch.allclose(many.points[0], many.points[1])  # tau is seen


def test_solving_in_pieces_gives_the_same(monkeypatch: pytest.MonkeyPatch):
    operator = make(SPACES[0])
    taus = PARAMETERS.sample(5, generator=torch.Generator().manual_seed(0))
    whole = operator.solve(taus, starts=6).points
    monkeypatch.setattr(applying, "ON_CPU", 13)  # two instances of six points at once
    torch.testing.assert_close(operator.solve(taus, starts=6).points, whole, rtol=1e-5, atol=1e-5)


def test_work_on_tau_is_done_once_per_tau(monkeypatch: pytest.MonkeyPatch):
    operator = make(SPACES[0])
    calls = []
    forward = Vector.forward
    monkeypatch.setattr(
        Vector, "forward", lambda self, observed: calls.append(1) or forward(self, observed)
    )
    operator.solve([0.1, 0.2, 0.3], starts=5, steps=20)
    assert len(calls) == 1


def test_values_come_with_the_problem_at_hand(wells: px.Problem, tiny: dict):
    operator = px.learn(wells, steps=1, **tiny)
    solutions = operator.solve([1.0, 1.0], starts=9)
    expected = (solutions.points.square() - 1).square().sum(-1)
    torch.testing.assert_close(solutions.values, expected)


def test_a_single_objective_needs_no_tau(tiny: dict):
    bowl = px.Problem.from_function(lambda x: x.square().sum(-1), px.Box(-1.0, 1.0, dim=2))
    operator = px.learn(bowl, steps=1, **tiny)
    assert operator.solve(starts=4).points.shape == (1, 4, 2)


def test_starts_are_seeded_and_the_same_for_all_operators():
    tau = [0.1, 0.2, 0.3]
    a, b = make(SPACES[0]).solve(tau, starts=8), make(SPACES[0], SMALL).solve(tau, starts=8)
    assert torch.equal(a.starts, b.starts)
    assert not torch.equal(a.starts, make(SPACES[0]).solve(tau, starts=8, seed=1).starts)


def test_starts_may_be_given():
    space = SPACES[0]
    points = torch.rand(4, 2)
    shared = starting_points(space, points, 3, 0, "cpu")
    assert torch.equal(shared, points.expand(3, 4, 2))
    own = torch.rand(3, 4, 2)
    assert torch.equal(starting_points(space, own, 3, 0, "cpu"), own)
    assert starting_points(space, points.tolist(), 1, 0, "cpu").shape == (1, 4, 2)


@pytest.mark.parametrize(
    "operator",
    [
        *(make(space) for space in SPACES),
        make(px.Product(px.Sphere(2), px.Box(0.0, 1.0, dim=1))),
        make(SPACES[0], Coupling(1, 8, 8, activation="relu", start_at_identity=False)),
        make(SPACES[0], Coupling(1, 8, 8, sinusoids=5, start_at_identity=False)),
    ],
    ids=["box", "circles", "sphere", "planes", "product", "relu", "sinusoids"],
)
def test_save_and_load_is_the_same_operator(operator: px.Operator, tmp_path: Path, same_weights):
    operator.provenance = {"problem": "test", "steps": 3}
    operator.applications = 7
    path = operator.save(tmp_path / "folder" / "mine.safetensors")
    loaded = px.load(path, device="cpu")
    assert same_weights(operator, loaded)
    assert loaded.space == operator.space
    assert (loaded.lam, loaded.applications) == (operator.lam, 7)
    assert loaded.provenance == operator.provenance
    assert loaded.network.architecture == operator.network.architecture
    tau = [0.1, 0.2, 0.3]
    assert torch.equal(loaded.solve(tau, starts=9).points, operator.solve(tau, starts=9).points)


def test_a_picture_operator_is_rebuilt_from_its_file(tmp_path: Path):
    torch.manual_seed(0)
    operator = untrained(SPACES[0], Pictures(1, 9, 10), RANDOM).eval()
    loaded = px.load(operator.save(tmp_path / "p.safetensors"), device="cpu")
    pictures = torch.rand(2, 1, 9, 10)
    assert torch.equal(loaded.solve(pictures).points, operator.solve(pictures).points)
    assert loaded.solve(pictures[0]).points.shape == (1, 1024, 2)


def test_the_header_tells_a_reader_what_the_file_is(tmp_path: Path):
    path = make(SPACES[0]).save(tmp_path / "mine.safetensors")
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    header = json.loads(metadata["header"])
    assert metadata["format"] == "proxlearn-operator"
    box = {"kind": "box", "low": [-5.0, -5.0], "high": [5.0, 5.0], "open": False}
    assert header["space"] == box
    assert header["instances"]["low"] == [-1.0] * 3  # the trained range
    assert {"architecture", "lam", "provenance"} <= header.keys()


def test_the_papers_architecture_is_a_preset():
    """App. B: three blocks of 128, shared maps of 256 then 128, ReLU; under 2 MB."""
    paper = architecture_from("paper")
    assert (paper.blocks, paper.width, paper.shared, paper.activation) == (3, 128, 256, "relu")
    operator = make(SPACES[0], paper)
    weights = sum(parameter.numel() for parameter in operator.parameters())
    assert 4 * weights < 2 * 2**20


def test_scale_is_held_to_between_exp_minus_2_and_exp_2():
    """The HardTanh of app. B: no single block stretches a point without bound."""
    operator = make(px.Box(-1.0, 1.0, dim=2), Coupling(1, 8, 8))
    heads = operator.network.blocks[0].heads
    with torch.no_grad():
        heads.bias[:2] = 100.0  # a scale far beyond, and no shift
    x = torch.tensor([[[0.01, -0.02]]])
    y = operator.step(x, operator.prepare(operator.encode(torch.zeros(1, 3))))
    torch.testing.assert_close(y, x * torch.tensor(2.0).exp())


@pytest.mark.parametrize(
    "sizes", [{}, {"gated": False, "activation": "relu"}, {"sinusoids": 3}], ids=str
)
def test_without_gradients_a_cpu_computes_the_same(sizes: dict):
    operator = make(SPACES[0], replace(RANDOM, **sizes))
    tau, x = PARAMETERS.sample(3), 20 * torch.rand(3, 7, 2) - 10
    prepared = operator.prepare(operator.encode(tau))
    with torch.no_grad():
        found = operator.step(x, prepared)
        rough = operator.step(x, prepared, precision="bf16")
    expected = operator.step(x, prepared).detach()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert 1e-5 < (rough - expected).abs().max() < 0.5


def test_the_last_application_makes_up_for_rough_ones(monkeypatch: pytest.MonkeyPatch):
    operator, found = px.pretrained("conic", "cpu"), []
    for has_bf16 in (False, True):
        monkeypatch.setattr(operators, "cpu_has_bf16", lambda has=has_bf16: has)
        found.append(operator.solve([0.3, 0, 0.5, 0, 0, -1], starts=200, steps=5))
    exact, short = found
    assert not torch.equal(exact.points, short.points)
    both = exact.inside & short.inside
    assert (exact.points - short.points)[both].norm(dim=-1).median() < 1e-2
    assert exact.values is not None
    assert short.values is not None
    torch.testing.assert_close(short.values.median(), exact.values.median(), rtol=0.2, atol=1e-5)


def test_pieces_on_cores_give_the_same_and_leave_threads_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
):
    x, tau, threads = torch.rand(3, 200, 2), {"a": torch.rand(3, 1, 1)}, torch.get_num_threads()
    seen = []

    def function(x: Tensor, tau: dict) -> tuple[Tensor, Tensor]:
        seen.append((x.shape[1], torch.is_grad_enabled()))
        return x * tau["a"], x.sum(-1)

    monkeypatch.setattr(cores, "IN_CACHE", 80)
    torch.set_num_threads(3)
    try:
        points, values = cores.on_cores(function, x, tau, 1)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(points, x * tau["a"])
    assert torch.equal(values, x.sum(-1))
    assert sorted(seen) == 3 * [(40, False)] + 6 * [(80, False)]


def test_settled_points_are_left_alone():
    goal, given = torch.tensor([0.5, -0.5]), []

    def halfway(x: Tensor, prepared: None) -> Tensor:
        given.append(x.shape[1])
        return (x + goal) / 2

    x = torch.stack((goal, torch.ones(2)))[None]
    found = cores.until_settled(halfway, x, None, 100, SPACES[0])
    torch.testing.assert_close(found, goal.expand(1, 2, 2), rtol=0, atol=1e-5)
    assert given[:2] == [2, 1]
    assert len(given) < 30
