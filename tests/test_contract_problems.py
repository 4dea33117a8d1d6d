"""What every problem promises, whichever it is: found by being in `problems/`."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch
from proxlearn.common.seeds import generator_for
from proxlearn.networks.coupling import Coupling
from proxlearn.problems.base import held_out, sampled

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("dots.py"))
NAMES = [*px.problems.names(), *map(str, EXAMPLES)]
QUICK: dict[str, Any] = {
    "steps": 20,
    "instances": 12,
    "points": 8,
    "depth": 2,
    "applications": 3,
    "architecture": Coupling(blocks=1, width=16, shared=16),
    "device": "cpu",
    "progress": False,
}
BRIEF = {"steps": 2, "instances": 2, "points": 4, "depth": 1, "architecture": None}


def brief(problem: px.Problem) -> dict[str, Any]:
    """Settings of a training that is over in seconds."""
    return QUICK | BRIEF if problem.costly else QUICK


@pytest.fixture(params=NAMES, ids=[Path(name).stem for name in NAMES])
def problem(request: pytest.FixtureRequest) -> px.Problem:
    return px.problem(request.param)


def some(problem: px.Problem, instances: int = 3, points: int = 17) -> tuple[Tensor, Batch]:
    """Points and training instances."""
    generator = generator_for(0, "test of the contract")
    tau = sampled(problem, instances, "train", generator)
    return problem.space.sample(instances, points, generator=generator), tau


def gradient(problem: px.Problem, x: Tensor, tau: Batch) -> Tensor:
    x = x.clone().requires_grad_()
    return torch.autograd.grad(problem.objective(x, tau).sum(), x)[0]


def same(a: Batch, b: Batch) -> bool:
    return all(torch.equal(x, y) for x, y in zip(batches.leaves(a), batches.leaves(b), strict=True))


def rows(tau: Batch) -> list[bytes]:
    """Every instance as bytes, to compare them one by one."""
    return [
        b"".join(leaf[i].contiguous().numpy().tobytes() for leaf in batches.leaves(tau))
        for i in range(batches.size(tau))
    ]


def test_has_a_name_and_a_space(problem: px.Problem):
    assert problem.name in [Path(name).stem for name in NAMES]
    assert isinstance(problem.space, px.Space)
    assert type(problem).__doc__


def test_objective_has_one_finite_value_for_each_point(problem: px.Problem):
    x, tau = some(problem)
    values = problem.objective(x, tau)
    assert values.shape == (3, 17)
    assert values.dtype == x.dtype
    assert values.isfinite().all()
    assert values.std() > 0  # it is about something


def test_objective_has_the_gradient_of_its_values(problem: px.Problem):
    """Against differences of values along random directions, at most points: kinks are allowed."""
    x, tau = some(problem)
    x, tau = x.double(), batches.tree_map(lambda t: t.double() if t.is_floating_point() else t, tau)
    slope = gradient(problem, x, tau)
    assert slope.isfinite().all()
    generator = torch.Generator().manual_seed(0)
    direction = torch.randn(x.shape, generator=generator, dtype=x.dtype)
    h = 1e-6 * problem.space.diameter
    with torch.no_grad():
        ahead, behind = (problem.objective(x + s * h * direction, tau) for s in (1, -1))
    expected = (slope * direction).sum(-1)
    close = torch.isclose((ahead - behind) / (2 * h), expected, rtol=1e-3, atol=1e-4)
    assert close.double().mean() > 0.9


def test_points_and_instances_do_not_mix(problem: px.Problem):
    """One point of one instance has the value that it has among others."""
    x, tau = some(problem)
    together = problem.objective(x, tau)
    assert torch.equal(together, problem.objective(x, tau))  # and the same at every call
    for i in range(3):
        one = batches.select(tau, slice(i, i + 1))
        torch.testing.assert_close(problem.objective(x[i : i + 1], one)[0], together[i])
        torch.testing.assert_close(
            problem.objective(x[i : i + 1, 5:6], one)[0, 0], together[i, 5], rtol=1e-4, atol=1e-5
        )


def test_objective_leaves_its_arguments_alone(problem: px.Problem):
    x, tau = some(problem)
    x_before, tau_before = x.clone(), batches.tree_map(torch.clone, tau)
    problem.objective(x, tau)
    assert torch.equal(x, x_before)
    assert same(tau, tau_before)


def test_instances_are_seeded(problem: px.Problem):
    def draw(seed: int) -> Batch:
        return sampled(problem, 5, "train", generator_for(seed, "train"))

    assert batches.size(draw(0)) == 5
    assert same(draw(0), draw(0))
    if rows(draw(0))[0]:
        assert not same(draw(0), draw(1))
        assert len(set(rows(draw(0)))) == 5  # five different ones


def test_training_and_test_instances_never_meet(problem: px.Problem):
    train = rows(sampled(problem, 200, "train", generator_for(0, "train")))
    test = rows(held_out(problem, 200))
    if train[0]:  # a single objective has only the one, empty tau
        assert not set(train) & set(test)
        assert not set(rows(held_out(problem, 20, seed=1))) & set(test)


def test_instances_are_batched_by_collate(problem: px.Problem):
    _, tau = some(problem)
    each = [batches.select(tau, i) for i in range(3)]
    assert same(problem.collate(each), tau)


def test_what_is_random_in_instances_is_drawn_by_the_generator(problem: px.Problem):
    _, tau = some(problem)
    first, second = (problem.refresh(tau, torch.Generator().manual_seed(1)) for _ in range(2))
    assert same(first, second)
    assert batches.structure(first) == batches.structure(tau)
    shapes = [[each.shape for each in batches.leaves(batch)] for batch in (first, tau)]
    assert shapes[0] == shapes[1]


def test_encoder_makes_a_code_of_what_is_observed(problem: px.Problem):
    _, tau = some(problem)
    encoder = problem.encoder()
    observed = problem.instances.batch(problem.observe(tau))  # what a user would pass to solve()
    code = encoder(observed)
    assert code.shape == (3, encoder.size)
    assert code.isfinite().all()
    one = encoder(batches.select(observed, slice(1, 2)))
    torch.testing.assert_close(one[0], code[1], rtol=1e-4, atol=1e-5)


def test_truth_is_inside_and_at_local_minima(problem: px.Problem):
    """No step in any of many directions, down the gradient included, leads lower."""
    tau = held_out(problem, 3)
    truth = problem.truth(tau)
    if truth is None:
        pytest.skip("the optima are not known")
    assert len(truth) == 3
    space, generator = problem.space, torch.Generator().manual_seed(0)
    scale = problem.objective(space.sample(3, 200, generator=generator), tau).std()
    for i, points in enumerate(truth):
        assert len(points) > 0
        assert points.shape[1] == space.dim
        assert space.contains(points).all()
        one = batches.select(tau, slice(i, i + 1))
        value = problem.objective(points[None], one)[0]
        downhill = -torch.nn.functional.normalize(gradient(problem, points[None], one)[0], dim=-1)
        for size in (1e-2, 1e-3):
            for _ in range(10):
                random = torch.randn(points.shape, generator=generator)
                random = torch.nn.functional.normalize(random, dim=-1)
                for direction in (random, downhill):
                    near = space.project(points + size * direction)
                    around = problem.objective(near[None], one)[0]
                    assert (around >= value - 1e-5 * scale).all()


def test_truth_is_whole(problem: px.Problem):
    """Descent from many starts finds nothing lower, and no other minimum, than those declared."""
    tau = held_out(problem, 2)
    truth = problem.truth(tau)
    if truth is None:
        pytest.skip("the optima are not known")
    found = px.solve(problem, tau, "lbfgs", starts=200, device="cpu")
    for i, points in enumerate(truth):
        values = problem.objective(points[None], batches.select(tau, slice(i, i + 1)))[0]
        inside = found.inside[i]
        assert found.values[i][inside].min() >= values.min() - 1e-3 * (1 + values.min().abs())
        low = found.points[i][inside & (found.values[i] <= values.max() + 1e-3)]
        strays = problem.space.pairwise(low, points).amin(1) > 0.05 * problem.space.diameter
        assert strays.sum() <= 0.1 * inside.sum()


def test_a_short_training_can_be_saved_loaded_and_solved_with(problem: px.Problem, tmp_path: Path):
    operator = px.learn(problem, **brief(problem))
    loaded = px.load(operator.save(tmp_path / "operator.safetensors"), device="cpu")
    observed = problem.observe(held_out(problem, 2))
    ours, theirs = (each.solve(observed, starts=9, steps=2) for each in (operator, loaded))
    assert ours.points.shape == (2, 9, problem.space.dim)
    assert ours.points.isfinite().all()
    assert torch.equal(ours.points, theirs.points)
    assert theirs.values is None  # a file alone knows no objective
    assert (ours.values is None) == problem.observes_part


@pytest.mark.parametrize("method", ["descent", "operator"])
def test_is_solved_by_any_method(problem: px.Problem, method: str):
    settings = (
        {"operator": px.learn(problem, **brief(problem))} if method == "operator" else {"steps": 5}
    )
    tau = held_out(problem, 2)
    found = px.solve(problem, tau, method, starts=6, device="cpu", **settings)
    assert found.points.shape == (2, 6, problem.space.dim)
    assert found.values.shape == (2, 6)
    torch.testing.assert_close(found.values, problem.objective(found.points, tau))
