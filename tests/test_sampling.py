"""Importance sampling (app. C): which points the operator is trained on, counted exactly."""

import copy
from collections import Counter
from collections.abc import Callable

import pytest
import torch
from making import fixed, untrained
from torch import Tensor

import proxlearn as px
from proxlearn.networks.coupling import Coupling
from proxlearn.training.loss import Loss, Proximal
from proxlearn.training.sampling import Pool, Unfold

GROUP, DEPTH, POINTS = 3, 4, 5  # taus in a group, applications deep, points of a tau
INSTANCES = GROUP * (DEPTH + 1)
CPU = torch.device("cpu")


class Line(px.Space):
    """Numbers that all start at 0, so that a point's coordinate can count its applications."""

    dim = 1
    diameter = 1.0

    def __init__(self, end: float = 1e9):
        self.end = end

    def sample(self, *shape, generator=None, device="cpu"):
        return torch.zeros(*shape, 1, device=device)

    def project(self, x):
        return x.clamp(0, self.end)

    def retract(self, x):
        return x

    def contains(self, x, edge=1e-3):
        return (x[..., 0] <= self.end).all() if x.ndim == 1 else x[..., 0] <= self.end


class Numbered(px.Problem):
    """Every instance drawn gets the next number as its tau."""

    name = "numbered"
    parameters = px.Box(0.0, 1e6, dim=1)

    def __init__(self, end: float = 1e9):
        self.space, self.drawn = Line(end), 0

    def sample(self, count, split, generator):
        assert split == "train"
        first, self.drawn = self.drawn, self.drawn + count
        return torch.arange(first, self.drawn, dtype=torch.float32)[:, None]

    def objective(self, x, tau):
        return x[..., 0] + tau


def remembering() -> tuple[Callable, list[tuple[Tensor, Tensor]]]:
    """A loss that remembers what it was given; the loss is where the points were."""
    seen: list[tuple[Tensor, Tensor]] = []

    def loss(y: Tensor, x: Tensor, tau: Tensor, lam: Tensor):
        seen.append((x.clone(), tau.clone()))
        return {"loss": x.mean()}, torch.ones_like(y)

    return loss, seen


def operator_for(problem: px.Problem) -> px.Operator:
    """Its application adds 1 to every point."""
    return fixed(problem, lambda x: x + 1)


def pool_of(problem: px.Problem, depth: int = DEPTH) -> Pool:
    return Pool(problem, INSTANCES, POINTS, depth, (1.0, 1.0), 0, CPU)


def test_ages_in_a_batch_of_the_pool_are_exactly_0_to_depth():
    problem = Numbered()
    pool, (judged, seen) = pool_of(problem), remembering()
    fill = pool.chunks * (DEPTH + 1)  # every batch visited so often that every group was replaced
    for _ in range(3 * fill):
        pool.apply(operator_for(problem), judged)
        pool.refill()
    for x, _ in seen[fill - pool.chunks :]:
        assert x.shape == (INSTANCES, POINTS, 1)
        ages = x.amax((1, 2))
        assert torch.equal(ages, x.amin((1, 2)))  # the points of a tau are of one age
        expected = {float(k): GROUP for k in range(DEPTH + 1)}
        assert Counter(ages.tolist()) == expected


def test_one_group_of_the_pool_is_replaced_at_each_visit_with_its_taus():
    problem = Numbered()
    pool, (judged, seen) = pool_of(problem), remembering()
    visits = pool.chunks * (2 * DEPTH + 3)
    for _ in range(visits):
        pool.apply(operator_for(problem), judged)
        pool.refill()
    for k in range(pool.chunks, visits):
        (x, tau), (_, before) = seen[k], seen[k - pool.chunks]  # the same batch, a visit earlier
        new = (tau != before)[:, 0]
        assert new.sum() == GROUP
        assert (x[new] == 0).all()
        assert (x[~new] > 0).all()
        assert tau[new].min() > max(tau.max() for _, tau in seen[:k])  # freshly drawn
    assert problem.drawn == pool.chunks * INSTANCES + visits * GROUP


def test_points_of_the_pool_that_left_the_space_start_afresh():
    end = 2.0  # a third application leads out
    problem = Numbered(end)
    pool, (judged, seen) = pool_of(problem), remembering()
    for _ in range(2 * pool.chunks * (DEPTH + 1)):
        pool.apply(operator_for(problem), judged)
        pool.refill()
    for x, _ in seen[-pool.chunks :]:
        ages = Counter(x.amax((1, 2)).tolist())
        assert max(ages) == end
        assert ages == {0.0: 2 * GROUP, 1.0: 2 * GROUP, 2.0: GROUP}  # ages 3 and 4 became 0 and 1


def test_a_pool_smaller_than_its_groups_still_has_one_tau_each():
    problem = Numbered()
    pool = Pool(problem, 2, POINTS, DEPTH, (1.0, 1.0), 0, CPU)
    assert (pool.group, pool.batch) == (1, DEPTH + 1)


def test_unfold_applies_the_operator_depth_plus_1_times():
    problem = Numbered()
    unfold = Unfold(problem, 6, POINTS, DEPTH, (1.0, 1.0), 0, CPU)
    judged, seen = remembering()
    applied, terms = unfold.apply(operator_for(problem), judged)
    assert [x.unique().tolist() for x, _ in seen] == [[float(k)] for k in range(DEPTH + 1)]
    assert all(torch.equal(tau, seen[0][1]) for _, tau in seen)
    assert terms["loss"].item() == sum(range(DEPTH + 1)) / (DEPTH + 1)  # the mean over k
    assert all(torch.equal(slope, torch.full_like(y, 1 / (DEPTH + 1))) for y, slope in applied)
    unfold.apply(operator_for(problem), judged)
    assert seen[-1][1].min() > seen[0][1].max()  # new taus at every step


def test_no_gradient_flows_from_one_application_into_the_next(wells: px.Problem):
    operator = untrained(wells.space, wells.instances, Coupling(1, 8, 8))
    given = []

    def watching(y: Tensor, x: Tensor, tau: Tensor, lam: Tensor):
        given.append(x)
        return Loss(Proximal(1.0), wells)(y, x, tau, lam)

    for sampling in (Pool, Unfold):
        sampler = sampling(wells, 6, POINTS, 2, (1.0, 1.0), 0, CPU)
        for _ in range(2):
            (*_, (y, slope)), _ = sampler.apply(operator, watching)
            sampler.refill()
            y.backward(slope)
    assert given
    assert not any(x.requires_grad for x in given)


@pytest.mark.parametrize("sampling", [Pool, Unfold])
def test_sampling_goes_on_from_its_state_bit_for_bit(sampling, wells: px.Problem):
    torch.manual_seed(0)
    architecture = Coupling(1, 8, 8, start_at_identity=False)
    operator = untrained(wells.space, wells.instances, architecture)

    def fresh(seed: int):
        sampler = sampling(wells, 6, POINTS, 2, (1.0, 1.0), seed, CPU)
        return sampler, sampler.generator

    def losses(sampler, count: int) -> Tensor:
        judged = Loss(Proximal(1.0), wells)
        found = []
        for _ in range(count):
            found.append(sampler.apply(operator, judged)[1]["loss"])
            sampler.refill()
        return torch.stack(found)

    first, generator = fresh(seed=0)
    losses(first, 13)
    state = copy.deepcopy(first.state())
    position = generator.get_state()
    expected = losses(first, 20)

    second, generator = fresh(seed=1)
    second.restore(state)
    generator.set_state(position)
    assert torch.equal(losses(second, 20), expected)
