"""tau is a set of vectors: what it may be given as, and a network that attends to its members."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.instances.set import Sets
from proxlearn.networks.attending import Attending
from proxlearn.problems.base import held_out

SMALL = Attending(blocks=1, width=16, shared=32)
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU"
))]  # fmt: skip
PLACES = Sets((-1.0, -1.0), (1.0, 1.0), most=4)  # sets of points in a square
HILLS = Sets((0.0, 0.0, -1.0), (1.0, 1.0, 1.0), most=4, switch=2)  # the last number: is it there?


class Nearest(px.Problem):
    """The optima are the members."""

    name = "nearest"
    space = px.Box(-1.0, 1.0, dim=2)
    instances = PLACES
    architecture = SMALL
    lam = 4.0

    def sample(self, count, split, generator):
        own = {"generator": generator, "device": generator.device}
        members = 1.8 * torch.rand(count, 4, 2, **own) - 0.9
        there = torch.rand(count, 4, 1, **own) < 0.6
        there[:, 0] = True
        return torch.cat((members, there.float()), -1).flatten(1)

    def objective(self, x, tau):
        members, there = self.instances.members(tau)
        square = (x[:, :, None] - members[:, None]).square().sum(-1)
        return square.masked_fill(~there[:, None], torch.inf).amin(-1)

    def truth(self, tau):
        members, there = self.instances.members(tau)
        return [each[kept] for each, kept in zip(members, there)]


def trained(problem: px.Problem, device: str = "cpu", **settings) -> px.Operator:
    how = {"steps": 20, "instances": 24, "points": 8, "depth": 2, "applications": 10}
    return px.learn(problem, device=device, progress=False, **how | settings)


def members_of(instances: Sets, batch: Tensor) -> list[list[list[float]]]:
    members, there = instances.members(batch)
    return [each[kept].tolist() for each, kept in zip(members, there)]


@pytest.fixture(scope="module")
def operator() -> px.Operator:
    """It moves points, well or not."""
    return trained(px.problem("peaks"), architecture=SMALL)


@pytest.fixture(scope="module")
def peaks() -> Tensor:
    """Of one landscape, those that are there (k, 6)."""
    instances = px.problem("peaks").instances
    members, there = instances.members(held_out(px.problem("peaks"), 1))
    assert 3 <= there.sum() < 8
    return members[there]


def test_a_set_may_be_given_in_many_ways():
    one = [[0.0, 0.5], [-0.5, 1.0], [1.0, 0.0]]
    for given in (one, torch.tensor(one), np.array(one), [one], torch.tensor([one])):
        assert members_of(PLACES, PLACES.batch(given)) == [one]
    batch = PLACES.batch([one, one[:1], torch.tensor(one[1:])])  # of different sizes
    assert batch.shape == (3, 3 * 3)
    assert members_of(PLACES, batch) == [one, one[:1], one[1:]]
    assert torch.equal(PLACES.batch(batch), batch)  # a batch is one already
    for size in (1, 2, 5):
        batch = PLACES.batch(torch.rand(7, size, 2))
        assert torch.equal(PLACES.batch(batch), batch)


def test_a_number_of_its_own_may_say_that_a_member_is_there():
    flat = [0.1, 0.2, 0.5, 0.3, 0.4, -0.5, 0.5, 0.6, 1.0]
    batch = HILLS.batch(flat)
    assert batch.tolist() == [pytest.approx(flat)]
    (there,) = members_of(HILLS, batch)
    assert there == [pytest.approx(flat[:3]), pytest.approx(flat[6:])]
    assert HILLS.numbers == 12  # of the command line's files
    assert len(HILLS.batch([flat, flat[:3]])) == 2
    (one,) = members_of(HILLS, HILLS.batch(flat[:3]))
    assert one == [pytest.approx(flat[:3])]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "give tau, a set of vectors of 2 numbers"),
        ([[0.1, 0.2, 0.3, 0.4]], r"shape \(1, 4\); expected a set of vectors of 2 numbers"),
        (torch.zeros(0, 2), "at least one member"),
        (torch.zeros(1, 2, 3, 2), "expected a set"),
        ([[0.1, float("nan")]], "NaN or infinite"),
        ("points", "must be a set of vectors of 2 numbers, not 'points'"),
        ([[[0.1, 0.2]], "points"], "not 'points'"),
        ([[0.1, 0.2], [0.3]], r"shape \(2,\); expected a set"),
    ],
)
def test_what_is_no_set_is_refused_in_a_sentence(given, said: str):
    with pytest.raises(px.InputError, match=said):
        PLACES.batch(given)


def test_a_set_is_read_from_what_is_typed_and_from_files(tmp_path: Path):
    one = [[0.0, 0.5], [-0.5, 1.0]]
    file, array = tmp_path / "set.json", tmp_path / "set.npy"
    file.write_text(json.dumps(one))
    np.save(array, np.array(one))
    for text in (json.dumps(one), str(file), str(array)):
        assert members_of(PLACES, PLACES.read(text)) == [one]
    assert members_of(HILLS, HILLS.read("0.5,0.5,1,0.25,0.5,0")) == [[[0.5, 0.5, 1.0]]]
    with pytest.raises(px.InputError, match=r"--tau must be a set .* not 'here'"):
        PLACES.read("here")
    with pytest.raises(px.FileError, match="There is no set"):
        PLACES.read(str(tmp_path / "none.json"))


def test_sets_unlike_those_of_training_are_warned_of():
    inside, far = [[0.5, 0.5]], [[0.5, 0.5], [0.5, 3.0]]
    batch = PLACES.batch([inside, far, inside * 5])
    assert PLACES.knows(batch).tolist() == [True, False, False]
    with pytest.warns(px.RangeWarning) as caught:
        PLACES.warn_of_unknown(batch)
    said = [str(each.message) for each in caught]
    assert "1 of 8 vectors, such as" in said[0]
    assert "1 of 3 sets have more than 4 vectors" in said[1]
    gone = HILLS.batch([0.5, 0.5, 1.0, 9.0, 9.0, -0.5])  # far away, and not there
    assert HILLS.knows(gone).all()


@pytest.mark.filterwarnings("ignore::proxlearn.errors.RangeWarning")
def test_neither_the_order_of_members_nor_what_is_not_there_matters(peaks: Tensor):
    operator = px.Operator.untrained(px.problem("peaks"), Attending(start_at_identity=False))
    starts = operator.space.sample(32, generator=torch.Generator().manual_seed(0))

    def found(tau) -> Tensor:
        return operator.solve(tau, starts, steps=3).points[0]

    usual = found(peaks)
    assert (usual - starts).abs().max() > 1e-3  # they have moved
    torch.testing.assert_close(found(peaks.flip(0)), usual, rtol=0, atol=1e-5)
    more = torch.cat((peaks, torch.tensor([[0.3, 0.7, -0.2, 0.1, 0.1, 1.0]])))
    torch.testing.assert_close(found(more), usual, rtol=0, atol=1e-5)
    torch.testing.assert_close(found([peaks, peaks.repeat(3, 1)]), usual, rtol=0, atol=1e-5)
    assert (found(peaks[1:]) - usual).abs().max() > 1e-3  # and it is the set that they look at

    problem = px.problem("peaks")
    codes = problem.encoder()(problem.batch([peaks, peaks.flip(0), more, peaks[1:]]))
    torch.testing.assert_close(codes[1:3], codes[:1].expand(2, -1))
    assert (codes[3] - codes[0]).abs().max() > 1e-3


@pytest.mark.filterwarnings("ignore::proxlearn.errors.RangeWarning")
def test_any_number_of_members_will_do(operator: px.Operator, peaks: Tensor):
    for some in (peaks[:1], peaks.repeat(5, 1), torch.tensor([[0.5, 0.5, -1.0, 0.1, 0.1, 0.0]])):
        found = operator.solve(some, starts=16)
        assert found.points.isfinite().all()
        assert found.values.isfinite().all()


def test_peaks_are_given_as_ever_or_as_a_list(operator: px.Operator, tmp_path: Path):
    problem, tau = px.problem("peaks"), held_out(px.problem("peaks"), 2)
    assert tau.shape == (2, 48)
    whole = operator.solve(tau, starts=16)
    torch.testing.assert_close(whole.values, problem.objective(whole.points, tau))
    loaded = px.load(operator.save(tmp_path / "peaks.safetensors"), "cpu")
    assert loaded.instances == problem.instances
    one = tau[0].tolist()
    for given in (one, tau[0], [one[k : k + 6] for k in range(0, 48, 6)]):
        found = loaded.solve(given, whole.starts[0])
        torch.testing.assert_close(found.points[0], whole.points[0], rtol=0, atol=1e-5)
        lowest = px.solve(problem, given, "lbfgs", starts=64, device="cpu").values.min()
        assert lowest == pytest.approx(
            problem.objective(problem.truth(tau)[0][None], tau[:1]).min()
        )


def test_sets_of_different_sizes_are_streamed(operator: px.Operator, peaks: Tensor):
    taus = [peaks, peaks[:2], peaks[1:]]
    starts = operator.space.sample(8, generator=torch.Generator().manual_seed(0))
    streamed = torch.cat([each.points for each in operator.stream(taus, starts)])
    for tau, points in zip(taus, streamed, strict=True):
        torch.testing.assert_close(operator.solve(tau, starts).points[0], points)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("error::proxlearn.errors.SpeedWarning")  # on a GPU it is captured
def test_a_problem_over_sets_is_trained_saved_loaded_and_solved(device: str, tmp_path: Path):
    problem = Nearest()
    operator = trained(problem, device, steps=300, instances=96, points=4, rate=1e-2)
    tau = held_out(problem, 16)
    found = operator.solve(tau, starts=64).cpu()
    hits, known = px.metrics.recall(found, problem.truth(tau), tolerance=0.05)
    assert hits >= 0.85 * known
    loaded = px.load(operator.save(tmp_path / "nearest.safetensors"), device)
    seen = loaded.solve(members_of(PLACES, tau), found.starts)
    torch.testing.assert_close(seen.points.cpu(), found.points, rtol=0, atol=1e-4)


def test_a_range_of_lam_and_arrival_are_learned_with_sets():
    operator = trained(Nearest(), lam=(1.0, 16.0), steps=100, applications=None)
    tau = held_out(Nearest(), 1)
    low, high = (operator.solve(tau, 8, steps=1, lam=lam).points for lam in (1.0, 16.0))
    assert (low - high).abs().max() > 1e-3
    assert operator.network.code_size == operator.network.encoder.size + 1


def test_what_is_no_set_gets_no_attending_network():
    with pytest.raises(px.InputError, match="for sets of vectors, and tau is 6 numbers"):
        px.learn(px.problem("conic"), architecture="attending", steps=1, device="cpu")
    with pytest.raises(px.InputError, match="blocks"):
        Attending(blocks=0)
