"""An operator that knows when a point has arrived."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import proxlearn as px
from proxlearn.networks.arrival import (
    FLOOR,
    Arrival,
    falls,
    levels,
)
from proxlearn.networks.base import Network
from proxlearn.networks.coupling import Coupling
from proxlearn.operators.applying import Arriving
from proxlearn.training.arrival import Lessons, learn_arrival, pays_off

SMALL = Coupling(1, 8, 8, start_at_identity=False)
TOLD = 5  # numbers of a point in the plane that arrival is told, by default


class Ring(Network):
    """In place of a network: an application halves the distance to the circle of radius
    0.5 + tau/4, and turns every point a little towards angle 0, as a trained one may."""

    code_size = 1

    def __init__(self):
        super().__init__()
        self.architecture = SMALL
        self.weight = nn.Parameter(torch.zeros(()))

    def prepare(self, code, lam):
        return {"code": code}

    def forward(self, x, prepared):
        radius = (x.norm(dim=-1) + 0.5 + prepared["code"] / 4) / 2
        angle = 0.99 * torch.atan2(x[..., 1], x[..., 0])
        return torch.stack((radius * angle.cos(), radius * angle.sin()), -1)


@pytest.fixture(scope="module")
def ring() -> px.Problem:
    """All points at the distance 1 + tau/2 are solutions, of value 0."""
    space, parameters = px.Box(-2.0, 2.0, dim=2, open=True), px.Box(-1.0, 1.0, dim=1)
    return px.Problem.from_function(
        lambda x, tau: (x.norm(dim=-1) - 1 - tau[..., 0] / 2).square(), space, parameters, "ring"
    )


@pytest.fixture(scope="module")
def knowing(ring: px.Problem) -> px.Operator:
    """An operator that was taught when a point has arrived."""
    operator = px.Operator.untrained(ring, SMALL, 2.0, applications=8, precision="fp32")
    operator.network = Ring()
    torch.manual_seed(0)
    operator.arrival = learn_arrival(operator, ring, (16, 16), 0, lambda done, _: done / 120)
    assert operator.arrival is not None
    return operator


TAU = torch.tensor([[-0.7], [0.0], [0.6]])


def arrived(operator: px.Operator, starts: Tensor, steps: int, tau: Tensor = TAU) -> px.Solutions:
    return operator.bind(tau).arrive(starts, (steps,))[0]


def judged_by(operator: px.Operator):
    """Where points go next, their levels and the errors of these."""
    return Arriving(operator, operator.space).prepare(None, TAU, TAU)


def test_levels_are_what_they_say(ring: px.Problem, knowing: px.Operator):
    """Within twice the error that is claimed, and the error is small."""
    for steps in (1, 3, 5):
        points = knowing.solve(TAU, 256, steps=steps).points
        _, levels, errors = judged_by(knowing)(points)
        starts = ring.space.sample(3, 4096)
        values = torch.cat((ring.objective(starts, TAU), ring.objective(points, TAU)), 1)
        usual = values[:, :4096].median(1, keepdim=True).values  # the best value is 0
        true = (ring.objective(points, TAU) / usual + FLOOR).log10()
        off = (true - levels).abs()
        assert off.median() < 0.2
        assert (off < 2 * errors + 0.05).float().mean() > 0.8


def test_points_stop_by_themselves(knowing: px.Operator):
    solutions = knowing.solve(TAU, 256)
    assert solutions.arrived is not None
    assert solutions.arrived.all()
    assert solutions.applications is not None
    assert 1 < solutions.applications.float().mean() < 30
    assert solutions.values is not None
    assert solutions.values.quantile(0.95) < 1e-2


def test_a_hundred_applications_are_no_worse_than_a_few(knowing: px.Operator, ring: px.Problem):
    """Applied for ever, the operator pulls the circle together; one that stops covers it."""
    starts = ring.space.sample(3, 256)
    collapsed = knowing.bound(ring, TAU).apply(starts, (100,))[0].points
    few, many = (each.points for each in knowing.bound(ring, TAU).arrive(starts, (60, 100)))
    assert (few == many).all()
    assert ring.objective(many, TAU).quantile(0.95) < 1e-2
    assert (many[..., 0] < 0).float().mean() > 0.35
    assert (collapsed[..., 0] < 0).float().mean() < 0.01


def test_what_has_arrived_stays(knowing: px.Operator, ring: px.Problem):
    starts = ring.space.sample(3, 64)
    once = arrived(knowing, starts, 100)
    again = arrived(knowing, once.points, 100)
    moved = (again.points - once.points).norm(dim=-1)
    assert (moved == 0).float().mean() > 0.9
    assert moved.max() < 0.3  # another try of so many applications may find a lower level
    assert (again.applications <= knowing.arrival.patience).all()
    one_by_one = arrived(knowing, starts[1:2, 3:4], 100, TAU[1:2]).points
    torch.testing.assert_close(one_by_one[0, 0], once.points[1, 3])


def test_no_steps_are_the_starts(knowing: px.Operator, ring: px.Problem):
    starts = ring.space.sample(3, 8)
    none = arrived(knowing, starts, 0)
    assert (none.points == starts).all()
    assert not none.arrived.any()


class Outwards(Network):
    """Takes every point twice as far from the middle."""

    def prepare(self, code, lam):
        return {"code": code}

    def forward(self, x, prepared):
        return 2 * x


def test_what_leaves_the_space_is_seen_to_have_left(ring: px.Problem):
    operator = px.Operator.untrained(ring, SMALL, 2.0, applications=8, precision="fp32")
    operator.network, operator.arrival = Outwards(), Arrival(TOLD, 1, patience=8)
    starts = ring.space.sample(3, 16)
    gone = arrived(operator, starts, 100)
    assert not gone.inside.any()
    assert not gone.arrived.any()
    assert (arrived(operator, starts, 0).points == starts).all()


def test_one_that_stops_too_early_is_not_kept(ring: px.Problem, knowing: px.Operator):
    stopper = Arrival(TOLD, 1)
    for weight in stopper.parameters():
        nn.init.zeros_(weight)  # every level is the same: no step pays
    assert not pays_off(knowing, ring, stopper, 0)
    assert knowing.arrival is not None
    assert pays_off(knowing, ring, knowing.arrival, 0)


def test_a_step_has_to_fall_by_more_than_the_error():
    level, new = torch.zeros(1, 4), torch.tensor([[-0.2, -0.4, -0.4, -1.1]])
    error = torch.tensor([[0.01, 0.01, 1.0, 1.0]])
    assert falls(level, new, error).tolist() == [[False, True, False, True]]


def test_a_point_arrives_when_it_is_down_or_nothing_comes_of_it(knowing: px.Operator):
    """Judged by a network that says 0, 0, -1, -1, ... of one point and -8 at once of another."""
    said = iter([[0.0, 0.0], [0.0, -8.0], [-1.0, -8.0], *[[-1.2, -8.0]] * 8])

    def judged(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x + 1, torch.tensor([next(said)]), torch.full((1, 2), 0.1)

    method, x = Arriving(knowing, knowing.space), torch.zeros(1, 2, 2)
    state = method.init(judged, x)
    went = []
    for _ in range(4):
        state = method.one_step(judged, state)
        went.append(state.goes[0].tolist())
    assert went == [[True, False], [True, False], [True, False], [False, False]]
    assert state.best[0, 0].tolist() == [2.0, 2.0]  # -1.2 is no fall: it stays where it had -1


def test_levels_run_from_the_median_start_to_the_best():
    values = torch.tensor([[[1.0, 3.0, 5.0]], [[1.0, 1.2, 3.0]]])
    true = levels(values)
    assert true[0, 0, 1] == pytest.approx(0.0, abs=1e-4)
    assert true[1, 0, 0] == pytest.approx(-8.0, abs=1e-4)
    assert true[1, 0, 1] == pytest.approx(-1.0, abs=1e-3)
    assert levels(torch.ones(2, 1, 3)).isfinite().all()  # a flat objective
    values[1, 0, 2] = torch.inf
    assert levels(values)[1, 0, 2] == 3
    assert levels(values)[0, 0, 1] == pytest.approx(0.0, abs=1e-4)


class Outward(Ring):
    """An application takes every point farther out."""

    def forward(self, x, prepared):
        return 1.2 * x


def test_outside_is_no_place_to_arrive_at():
    """Where an objective falls without end outside the space, levels are still of those inside."""
    space, parameters = px.Box(-2.0, 2.0, dim=2, open=True), px.Box(-1.0, 1.0, dim=1)
    falling = px.Problem.from_function(lambda x, tau: -x.square().sum(-1).exp(), space, parameters)
    operator = px.Operator.untrained(falling, SMALL, 2.0, applications=8, precision="fp32")
    operator.network = Outward()
    _, told, true = Lessons(operator, falling, (4, 64), seed=0).examples()
    farthest = told[..., :2].abs().amax(-1)
    assert (true[farthest > 1.01] == 3).all()
    assert true[farthest < 1].max() < 0.1
    assert true[farthest < 1].min() < -4


class Settled(Ring):
    """Its points stay where they come to their circle."""

    settles = True

    def forward(self, x, prepared):
        away = x.norm(dim=-1, keepdim=True)
        return x * (away + 0.5 + prepared["code"][:, None] / 4) / (2 * away)


def test_points_of_an_operator_that_settles_stop_when_they_stay(ring: px.Problem):
    operator = px.Operator.untrained(ring, SMALL, 2.0, applications=8, precision="fp32")
    operator.network = Settled()
    assert operator.stops
    found = operator.solve(TAU, 256)
    assert found.arrived is not None
    assert found.arrived.all()
    assert found.values.max() < 1e-6
    assert 1 < found.applications.max() < 100
    few = px.solve(ring, TAU, "arriving", operator=operator, steps=1)
    assert not few.arrived.all()  # one application says nothing of the next
    torch.testing.assert_close(
        found.points, operator.solve(TAU, 256, steps=100).points, atol=1e-3, rtol=0
    )


def test_learned_saved_and_loaded(ring: px.Problem, tmp_path: Path):
    small = Coupling(1, 16, 16)
    operator = px.learn(
        ring, steps=400, lam=2.0, device="cpu", progress=False, architecture=small, points=16
    )
    if operator.arrival is None:  # not taught enough by so short a training
        operator.arrival = Arrival(TOLD, 1)
    found = operator.solve(TAU, 32)
    again = px.load(operator.save(tmp_path / "ring.safetensors"), "cpu")
    torch.testing.assert_close(again.solve(TAU, 32).points, found.points)
    assert again.arrival is not None
    saved = px.Solutions.load(found.save(tmp_path / "solutions.npz"))
    assert torch.equal(saved.arrived, found.arrived)
    assert found.polished().arrived is None  # it was of where the points had been


def test_given_applications_are_all_there_is(ring: px.Problem):
    small = Coupling(1, 8, 8)
    made = {"steps": 5, "lam": 2.0, "device": "cpu", "progress": False, "architecture": small}
    operator = px.learn(ring, applications=3, **made)
    assert operator.arrival is None
    with pytest.raises(px.InputError, match="does not know when a point has arrived"):
        arrived(operator, ring.space.sample(3, 2), 5)


def test_methods(ring: px.Problem, knowing: px.Operator):
    how = {"starts": 64, "device": "cpu", "operator": knowing}
    few, many = (px.solve(ring, TAU, "arriving", steps=k, **how) for k in (2, 100))
    by_itself = px.solve(ring, TAU, "operator", **how)
    assert many.values is not None
    assert few.values is not None
    assert many.values.mean() < few.values.mean()
    torch.testing.assert_close(by_itself.points, many.points)


def test_a_range_of_lam(ring: px.Problem):
    small = Coupling(1, 16, 16)
    operator = px.learn(
        ring, steps=40, lam=(1.0, 4.0), device="cpu", progress=False, architecture=small
    )
    operator.arrival = operator.arrival or Arrival.of(operator.network, 2)
    assert operator.solve(TAU, 8, lam=1.5).arrived is not None
    assert operator.solve(TAU, 8, lam=[4.0, 1.0]).arrived is None  # a schedule has its length


def test_what_does_not_go_with_it_says_so(knowing: px.Operator, ring: px.Problem):
    with pytest.raises(px.InputError, match="not with a schedule"):
        knowing.bind(TAU).arrive(ring.space.sample(3, 2), (5,), lam=[1.0, 2.0])
    with pytest.raises(px.InputError, match=r"px.load\(path\), not 'x'"):
        px.solve(ring, TAU, "arriving", operator="x", device="cpu")


def test_no_number_of_steps_is_the_methods_own(knowing: px.Operator, ring: px.Problem):
    how = {"starts": 8, "device": "cpu", "operator": knowing}
    own, none = (px.solve(ring, TAU, "arriving", **how, **more) for more in ({}, {"steps": None}))
    torch.testing.assert_close(own.points, none.points)


def test_doubts_and_auto_go_with_it(knowing: px.Operator):
    found = knowing.solve(TAU[0], "auto")
    assert found.certificates is not None
    assert found.unique().kind == ["continuum"]
