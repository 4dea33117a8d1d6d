"""The learned particle swarm: its features, its meta-loss, its file, and that it goes down."""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import proxlearn as px
from proxlearn.common.seeds import generator_for
from proxlearn.solvers.swarm.learn import ENTROPY, Lesson, learn_swarm, meta_loss
from proxlearn.solvers.swarm.network import POPULATION, Swarm, load_swarm, log_and_sign
from proxlearn.solvers.swarm.swarm import Swarming

NONE = torch.zeros(1, 0)
BOWL = px.Problem.from_function(
    lambda x: x[..., 0] ** 2 + 25 * x[..., 1] ** 2, px.Box(-1.0, 3.0, dim=2), name="bowl"
)
HIMMELBLAU = px.Problem.from_function(
    lambda x: (x[..., 0] ** 2 + x[..., 1] - 11) ** 2 + (x[..., 0] + x[..., 1] ** 2 - 7) ** 2,
    px.Box(-5.0, 5.0, dim=2),
    name="himmelblau",
)
FOUR = torch.tensor(
    [[3.0, 2.0], [-2.805118, 3.131313], [-3.779310, -3.283186], [3.584428, -1.848127]]
)
QUICK = {"device": "cpu", "progress": False, "runs": 20, "rate": 2e-2}


def moved(swarm: Swarm, problem: px.Problem, tau: Tensor, starts: Tensor, steps: int) -> Tensor:
    return Swarming(swarm, steps).run(problem, tau, starts)


@pytest.fixture(scope="module")
def swarm() -> Swarm:
    """Trained for a bowl, for a few seconds."""
    return learn_swarm(BOWL, steps=60, **QUICK)


def test_a_trained_swarm_goes_down_a_bowl(swarm: Swarm):
    """An untrained one hardly moves; a trained one has nearly arrived after 20 moves."""
    starts = BOWL.space.sample(1, 64, generator=generator_for(1, "starts"))
    before = BOWL.objective(starts, NONE).mean()
    idle = moved(Swarm(BOWL.space, swarm.height), BOWL, NONE, starts, 20)
    after = [BOWL.objective(moved(swarm, BOWL, NONE, starts, k), NONE).mean() for k in (5, 20, 60)]
    assert BOWL.objective(idle, NONE).mean() > 0.2 * before
    assert after[0] < 0.2 * before
    assert after[1] < 0.01 * before
    assert after[2] < 0.002 * before


def test_a_trained_swarm_finds_the_four_minima_of_himmelblau():
    found = px.solve(
        HIMMELBLAU,
        None,
        "swarm",
        starts=256,
        device="cpu",
        swarm=learn_swarm(HIMMELBLAU, steps=80, **QUICK),
    )
    apart = torch.cdist(found.points[0], FOUR).amin(1)
    assert (apart < 0.1).float().mean() > 0.9
    assert (torch.cdist(FOUR, found.points[0]).amin(1) < 0.02).all()
    assert found.values.median() < 0.05  # of 0 to 890


def test_a_family_is_one_swarm(wells: px.Problem):
    """It is never told tau: the gradient says enough."""
    tau = torch.tensor([[1.0, 0.7], [0.6, 1.3], [1.4, 1.4]])
    swarm = learn_swarm(wells, steps=40, **QUICK)
    found = px.solve(wells, tau, "swarm", starts=32, device="cpu", swarm=swarm)
    assert found.values.mean() < 0.01 * wells.objective(found.starts, tau).mean()


def test_no_particle_ends_higher_than_it_began_or_outside(swarm: Swarm):
    """The result is the best place inside that each has been to, even where all leads outside."""
    slope = px.Problem.from_function(lambda x: x.sum(-1), BOWL.space, name="slope")
    starts = slope.space.sample(1, 12)
    found = moved(swarm, slope, NONE, starts, 200)
    assert slope.space.contains(found).all()
    assert (slope.objective(found, NONE) <= slope.objective(starts, NONE)).all()


@pytest.mark.parametrize("count", [1, 4, 7])
def test_any_number_of_starts_is_grouped_by_four(swarm: Swarm, count: int):
    starts = BOWL.space.sample(2, count)
    found = moved(swarm, BOWL, torch.zeros(2, 0), starts, 3)
    assert found.shape == (2, count, 2)
    whole = torch.cat((starts, starts[:, :1].expand(2, -count % POPULATION, 2)), 1)
    if count != 1:  # where the first would be repeated three times
        torch.testing.assert_close(
            found, moved(swarm, BOWL, torch.zeros(2, 0), whole, 3)[:, :count]
        )
    assert torch.equal(moved(swarm, BOWL, NONE, starts[:1], 0), starts[:1])


def test_moving_a_bounded_number_at_once_changes_nothing(swarm: Swarm, monkeypatch):
    starts = BOWL.space.sample(3, 18)
    whole = moved(swarm, BOWL, torch.zeros(3, 0), starts, 4)
    monkeypatch.setattr("proxlearn.solvers.swarm.swarm.MAX_POINTS", 8)
    torch.testing.assert_close(moved(swarm, BOWL, torch.zeros(3, 0), starts, 4), whole)


def test_populations_do_not_see_each_other_and_their_particles_do(swarm: Swarm):
    starts = BOWL.space.sample(1, 8, generator=generator_for(2, "starts"))
    changed = starts.clone()
    changed[:, 7] = 0.01
    first, second = (moved(swarm, BOWL, NONE, each, 10) for each in (starts, changed))
    torch.testing.assert_close(first[:, :4], second[:, :4])
    assert (first[:, 4:7] - second[:, 4:7]).abs().max() > 1e-5


def test_neighbours_draw_if_they_are_better(swarm: Swarm):
    x = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 3.0]]])
    apart, drawn = swarm._neighbours(x, torch.tensor([[3.0, 1.0, 2.0, 9.0]]))
    torch.testing.assert_close(apart[0, 0, 0], x[0])  # from the first, at 0, to each
    torch.testing.assert_close(drawn[0, 0, 0], torch.tensor([0, math.exp(-1), math.exp(-4), 0]))
    assert (drawn[0, 0, 1] == 0).all()  # the best is drawn by none


@given(st.floats(-1e6, 1e6, width=32))
def test_features_of_any_size_are_of_unit_size(number: float):
    size, sign = log_and_sign(torch.tensor([number]))[0].tolist()
    assert -1 <= size <= 1
    assert -1 <= sign <= 1
    if 1e-4 < abs(number) < 1e4:
        assert sign * math.exp(10 * size) == pytest.approx(number, rel=1e-4)


def test_meta_loss_is_the_mean_and_the_entropy_with_its_derivative():
    heights = torch.randn(3, 2, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    loss, weights = meta_loss(heights)
    entropies = []
    for run in range(2):
        p = torch.exp(-heights[:, run]) / torch.exp(-heights[:, run]).sum()
        entropies.append(-(p * p.log()).sum())
    expected = heights.mean() + ENTROPY * sum(entropies) / 2
    torch.testing.assert_close(loss, expected)
    bump = torch.zeros_like(heights)
    bump[1, 0, 2] = 1e-6
    difference = (meta_loss(heights + bump)[0] - meta_loss(heights - bump)[0]) / 2e-6
    assert weights[1, 0, 2].item() == pytest.approx(difference.item(), abs=1e-7)


def test_every_population_starts_afresh_in_its_turn(wells: px.Problem):
    lesson = Lesson(wells, torch.device("cpu"), 1e-2, runs=20, unroll=2, seed=0)
    lesson.step_once()
    assert (lesson.state.hidden != 0).any((1, 2, 3)).all()
    before = lesson.tau.clone()
    lesson.restart(3)
    fresh = torch.zeros(20, dtype=torch.bool)
    fresh[6:8] = True
    assert torch.equal((lesson.state.hidden == 0).all(3).all(2).all(1), fresh)
    assert torch.equal((lesson.tau != before).any(1), fresh)


def test_a_file_gives_the_same_swarm_back(swarm: Swarm, tmp_path: Path):
    again = load_swarm(swarm.save(tmp_path / "swarm.safetensors"), device="cpu")
    starts = BOWL.space.sample(1, 8)
    both = (moved(each, BOWL, NONE, starts, 5) for each in (swarm, again))
    torch.testing.assert_close(*both)
    assert again.provenance == swarm.provenance
    assert again.provenance["steps"] == 60
    assert repr(again) == "Swarm(trained for 'bowl' in 60 steps)"


def test_files_that_hold_no_swarm_are_refused(swarm: Swarm, tmp_path: Path):
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(swarm.save(tmp_path / "whole.safetensors").read_bytes()[:500])
    with pytest.raises(px.FileError, match="not a whole safetensors file"):
        load_swarm(cut)
    with pytest.raises(px.FileError, match="no swarm file"):
        load_swarm(tmp_path / "missing.safetensors")
    px.pretrained("conic").save(tmp_path / "conic.safetensors")
    with pytest.raises(px.FileError, match="holds no proxlearn swarm"):
        load_swarm(tmp_path / "conic.safetensors")


def test_bad_input_is_said(swarm: Swarm, any_type: None):
    with pytest.raises(px.InputError, match="give a swarm trained for it"):
        px.solve(HIMMELBLAU, None, "swarm", starts=4, device="cpu", swarm=swarm)
    with pytest.raises(px.InputError, match="steps must be a whole number, 0"):
        px.solve(BOWL, None, "swarm", starts=4, device="cpu", swarm=swarm, steps=-1)
    with pytest.raises(px.InputError, match="not both"):
        learn_swarm(BOWL, steps=3, seconds=1.0, **QUICK)
    for wrong in ({"steps": 0}, {"seconds": -1.0}, {"runs": 0}, {"unroll": 0}, {"rate": 0.0}):
        with pytest.raises(px.InputError, match=f"{next(iter(wrong))} must be a positive"):
            learn_swarm(BOWL, **QUICK | wrong)
    for name in ("steps", "runs", "unroll"):
        with pytest.raises(px.InputError, match=rf"{name} must be a whole number, not 2\.5"):
            learn_swarm(BOWL, **QUICK | {name: 2.5})
    with pytest.raises(px.InputError, match="learn_swarm or load_swarm gave, not 'x'"):
        px.solve(BOWL, None, "swarm", starts=4, device="cpu", swarm="x")


def test_an_objective_that_breaks_on_the_way_is_said():
    """Finite in the box, no number outside, and downhill leads there."""
    edge = px.Problem.from_function(
        lambda x: (x.sum(-1) + 2.2).log(), px.Box(-1.0, 1.0, dim=2, open=True), name="edge"
    )
    with pytest.raises(px.TrainingError, match="stopped being a number"):
        learn_swarm(edge, steps=60, **QUICK)


def test_auto_starts_train_one_swarm(monkeypatch: pytest.MonkeyPatch):
    trained = []
    monkeypatch.setattr(
        "proxlearn.solvers.swarm.swarm.learn_swarm",
        lambda problem, **_: trained.append(problem) or Swarm(problem.space, 1.0),
    )
    found = px.solve(HIMMELBLAU, None, "swarm", starts="auto", unseen_level=0.9, device="cpu")
    assert found.points.shape[1] >= 256
    assert len(trained) == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_trains_the_same_way(recwarn: pytest.WarningsRecorder):
    swarm = learn_swarm(BOWL, steps=60, **QUICK | {"device": "cuda"})
    found = px.solve(BOWL, None, "swarm", starts=64, device="cuda", swarm=swarm)
    assert found.values.mean() < 0.01 * BOWL.objective(found.starts, NONE.cuda()).mean()
    assert not [each for each in recwarn if "piece by piece" in str(each.message)]
