"""A share of the points of a training begins near solutions that are known there."""

from pathlib import Path
from typing import Any

import pytest
import torch
from making import fixed

import proxlearn as px
from proxlearn.gpu.parallel import ALONE, Process
from proxlearn.problems.base import sampled
from proxlearn.training.sampling import Pool, Sampler, Unfold

INSTANCES, POINTS, DEPTH = 12, 400, 2
NEAR = {"near": 0.5}
SAMPLINGS = pytest.mark.parametrize("sampling", [Pool, Unfold])


class Dots(px.Problem):
    """tau says where three dots are and which of them are there; a third of them is not, and the
    places of those are far outside."""

    name = "dots"
    space = px.Box(-1.0, 1.0, dim=2)
    parameters = px.Box(0.0, 1.0, dim=9)
    near = 0.5

    def _taken_apart(self, tau: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        dots, real = tau.unflatten(1, (3, 3)).split((2, 1), -1)
        real = real[..., 0] > 1 / 3
        return torch.where(real[..., None], dots, 100.0), real

    def known(self, tau):
        return self._taken_apart(tau)

    def around(self, known, noise, far):
        return self.space.project(known + 1e-4 * far[..., None] * noise)

    def objective(self, x, tau):
        dots, _ = self._taken_apart(tau)
        return torch.cdist(x, dots).amin(-1)


def started(sampling: type[Sampler], near: float, process: Process = ALONE) -> list[Any]:
    """The points of the first application of some steps, and their taus."""
    problem, seen = Dots(), []
    sampler = sampling(
        problem, INSTANCES, POINTS, DEPTH, (1.0, 1.0), 0, torch.device("cpu"), process, near=near
    )

    def judged(y, x, tau, lam):
        seen.append((x.clone(), tau.clone()))
        return {"loss": x.mean()}, torch.zeros_like(y)

    operator = fixed(problem, lambda x: x)
    for _ in range(3 if sampling is Pool else 1):
        sampler.apply(operator, judged)
        sampler.refill()
    return seen


def beside(x: torch.Tensor, tau: torch.Tensor) -> torch.Tensor:
    """Which dot each point begins beside: none is -1."""
    dots, real = Dots().known(tau)
    near = (torch.cdist(x, dots) < 1e-3) & real[:, None]
    return torch.where(near.any(-1), near.long().argmax(-1), -1)


@SAMPLINGS
@pytest.mark.parametrize("near", [0.0, 0.25, 0.5, 1.0])
def test_so_large_a_share_begins_near_a_known_solution_each_as_often(sampling, near: float):
    for x, tau in started(sampling, near):
        _, real = Dots().known(tau)
        which = beside(x, tau)
        some = real.any(1)
        assert (which[some] >= 0).double().mean() == pytest.approx(near, abs=0.03)
        assert (which[~some] == -1).all()  # no solution is known: they are uniform
        assert Dots.space.contains(x).all()
        for dots, each in zip(real, which):
            share = torch.stack([(each == k).double().mean() for k in range(3)])
            expected = near * dots.double() / max(1, int(dots.sum()))
            torch.testing.assert_close(share, expected, atol=0.1, rtol=0)


@SAMPLINGS
def test_without_a_share_nothing_else_is_drawn_than_before(sampling, wells: px.Problem):
    def drawn(**near: float) -> torch.Tensor:
        sampler = sampling(wells, 6, 4, 2, (1.0, 1.0), 0, torch.device("cpu"), **near)
        return torch.rand(3, generator=sampler.generator)

    assert torch.equal(drawn(), drawn(near=0.0))


def test_processes_together_begin_where_one_does():
    (whole, taus), *_ = started(Unfold, 0.5)
    parts = [started(Unfold, 0.5, Process(rank, 2))[0] for rank in range(2)]
    assert torch.equal(torch.cat([x for x, _ in parts]), whole)
    assert torch.equal(torch.cat([tau for _, tau in parts]), taus)


def test_a_problem_has_a_share_of_its_own_which_a_setting_overrides(tiny: dict):
    plain, own, none = (px.learn(Dots(), steps=3, **tiny, **k) for k in ({}, NEAR, {"near": 0}))
    weights = [each.network.state_dict() for each in (plain, own, none)]
    alike = [all(torch.equal(a, b[k]) for k, a in weights[0].items()) for b in weights[1:]]
    assert alike == [True, False]


@pytest.mark.parametrize("sampling", ["pool", "unfold"])
def test_a_training_with_such_starts_is_resumed_bit_for_bit(
    sampling: str, tiny: dict, tmp_path: Path, interrupt_at, same_weights, report_each_step
):
    settings = tiny | NEAR | {"steps": 12, "sampling": sampling}
    straight = px.learn(Dots(), **settings)
    px.learn(Dots(), out=tmp_path, watch=interrupt_at(5), **settings)
    assert same_weights(straight, px.learn(Dots(), out=tmp_path, resume=True, **settings))


def test_points_begin_at_all_distances_by_default(wells: px.Problem):
    generator = torch.Generator().manual_seed(0)
    known = torch.zeros(1, 10_000, wells.space.dim)
    noise = torch.randn(known.shape, generator=generator)
    far = torch.rand(1, 10_000, generator=generator)
    begun = wells.around(known, noise, far)
    assert wells.space.contains(begun).all()
    way = (begun - known).norm(dim=-1)[0] / wells.space.diameter
    assert 0.02 < way.median() < 0.04  # half way between 0.003 and 0.3 in orders of magnitude
    assert (way < 0.003).double().mean() < 0.1
    assert (way > 0.3).double().mean() < 0.1


def test_where_no_solutions_are_known_a_sentence_says_so(wells: px.Problem, tiny: dict):
    with pytest.raises(px.InputError, match=r"near = 0.3 asks.*'wells' none are known: leave it"):
        px.learn(wells, steps=1, near=0.3, **tiny)


@pytest.mark.parametrize("near", [-0.1, 1.5, float("nan"), "half"])
def test_a_share_is_a_number_from_0_to_1(wells: px.Problem, tiny: dict, near: Any):
    with pytest.raises(px.InputError, match="near must be a share of the points, from 0 to 1, not"):
        px.learn(wells, steps=1, near=near, **tiny)


def test_known_solutions_of_built_in_problems_are_in_their_space():
    """Wherever one says that it knows some."""
    for name in px.problems.names():
        problem = px.problem(name)
        if problem.near:
            known, real = problem.known(sampled(problem, 3, "train", torch.Generator()))  # pyright: ignore
            assert problem.space.contains(known)[real].all()
