"""Streaming: any number of taus, in order, lazily and in bounded memory."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from making import problem_over, untrained

import proxlearn as px
from proxlearn.instances import Instances, Vectors
from proxlearn.instances.picture import Pictures
from proxlearn.networks.coupling import Coupling
from proxlearn.networks.encoders import Encoder
from proxlearn.networks.encoders.vector import Vector
from proxlearn.operators import applying

RANDOM = Coupling(blocks=2, width=16, shared=24, start_at_identity=False)
BOX = px.Box(-5.0, 5.0, dim=2)
PARAMETERS = px.Box(-1.0, 1.0, dim=3)
TAUS = PARAMETERS.sample(7, generator=torch.Generator().manual_seed(0))
STARTS = BOX.sample(6, generator=torch.Generator().manual_seed(1))


def make(instances: Instances | None = None, architecture: Coupling = RANDOM) -> px.Operator:
    torch.manual_seed(0)
    return untrained(BOX, instances or Vectors.over(PARAMETERS), architecture).eval()


def points_of(stream: Iterable[px.Solutions]) -> torch.Tensor:
    return torch.cat([solutions.points for solutions in stream])


@pytest.fixture
def two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two taus of six starts fit."""
    monkeypatch.setattr(applying, "ON_GPU", 13)


@pytest.mark.parametrize(
    "given",
    [
        lambda: TAUS,
        lambda: TAUS.numpy(),
        lambda: TAUS.double().numpy(),
        lambda: list(TAUS),
        lambda: TAUS.tolist(),
        lambda: iter(TAUS),
        lambda: (tuple(tau) for tau in TAUS.tolist()),
        lambda: (row for row in TAUS.numpy()),
        lambda: (row for row in TAUS[:, None]),  # (1, p) is one instance too
    ],
    ids=["tensor", "array", "float64", "tensors", "lists", "iterator", "tuples", "rows", "batches"],
)
@pytest.mark.usefixtures("two_at_once")
def test_any_iterable_is_solved_in_order(given):
    operator = make()
    stream = list(operator.stream(given(), starts=STARTS))
    assert [len(each) for each in stream] == [2, 2, 2, 1]
    whole = operator.solve(TAUS, starts=STARTS)
    torch.testing.assert_close(points_of(stream), whole.points, rtol=0, atol=1e-6)
    assert torch.equal(torch.cat([each.inside for each in stream]), whole.inside)
    assert all((each.applications == operator.applications).all() for each in stream)


@pytest.mark.usefixtures("two_at_once")
def test_the_starts_are_those_of_one_tau():
    operator = make()
    for seed in (0, 1):
        stream = operator.stream(TAUS, starts=6, steps=2, seed=seed)
        alone = [operator.solve(tau, starts=6, steps=2, seed=seed).points for tau in TAUS]
        torch.testing.assert_close(points_of(stream), torch.cat(alone), rtol=0, atol=1e-6)


@pytest.mark.usefixtures("two_at_once")
def test_more_starts_than_fit_at_once_are_solved_one_tau_at_a_time():
    operator, many = make(), BOX.sample(30, generator=torch.Generator().manual_seed(2))
    stream = list(operator.stream(TAUS[:2], starts=many))
    assert [each.points.shape for each in stream] == [(1, 30, 2), (1, 30, 2)]
    expected = operator.solve(TAUS[:2], starts=many).points
    torch.testing.assert_close(points_of(stream), expected, rtol=0, atol=1e-6)


def test_values_come_with_the_problem_at_hand(wells: px.Problem, tiny: dict):
    operator = px.learn(wells, steps=1, **tiny)
    (solutions,) = operator.stream([[1.0, 1.0], [0.5, 1.5]], starts=9)
    expected = solutions.points.square() - torch.tensor([[[1.0, 1.0]], [[0.25, 2.25]]])
    torch.testing.assert_close(solutions.values, expected.square().sum(-1))
    operator.problem = None
    (bare,) = operator.stream([[1.0, 1.0]], starts=9)
    assert bare.values is None


@pytest.mark.usefixtures("two_at_once")
def test_no_more_taus_are_drawn_than_are_solved():
    drawn = []

    def endless() -> Iterator[list[float]]:
        while True:
            drawn.append(1)
            yield [0.1, 0.2, 0.3]

    stream = make().stream(endless(), starts=STARTS)
    assert len(drawn) == 0
    next(stream)
    assert len(drawn) == 2
    next(stream)
    assert len(drawn) == 4


@pytest.mark.parametrize("nothing", [[], torch.zeros(0, 3), np.zeros((0, 3)), iter(())])
def test_no_taus_give_no_solutions(nothing):
    assert list(make().stream(nothing)) == []


def test_work_on_tau_is_done_once_per_chunk(monkeypatch: pytest.MonkeyPatch):
    calls = []
    forward = Vector.forward
    monkeypatch.setattr(
        Vector, "forward", lambda self, seen: calls.append(len(seen)) or forward(self, seen)
    )
    monkeypatch.setattr(applying, "ON_GPU", 18)
    list(make().stream(TAUS, starts=STARTS, steps=20))
    assert calls == [3, 3, 1]


# Structured taus


@pytest.mark.usefixtures("two_at_once")
def test_pictures_are_streamed():
    operator = make(Pictures(1, 9, 10))
    pictures = torch.rand(5, 1, 9, 10)
    whole = operator.solve(pictures, starts=STARTS).points
    for given in (pictures, pictures.numpy(), list(pictures), pictures.tolist()):
        stream = points_of(operator.stream(given, starts=STARTS))
        torch.testing.assert_close(stream, whole, rtol=0, atol=1e-5)


class Pair(Instances):
    """tau is {"left": (2,), "right": (1,)}, one at a time or stacked."""

    def batch(self, tau):
        tau = {name: torch.as_tensor(part) for name, part in tau.items()}
        return {name: part[None] if part.ndim == 1 else part for name, part in tau.items()}


class Joined(Encoder):
    size = 3

    def forward(self, observed):
        return torch.cat([observed["left"], observed["right"]], -1)


@pytest.mark.usefixtures("two_at_once")
def test_dicts_are_streamed():
    pairs = problem_over(BOX, Pair())
    pairs.encoder = lambda: Joined(Pair())
    operator = px.Operator.untrained(pairs, RANDOM)
    operator.problem = None
    stream = operator.stream(({"left": t[:2], "right": t[2:]} for t in TAUS), starts=STARTS)
    whole = operator.solve({"left": TAUS[:, :2], "right": TAUS[:, 2:]}, starts=STARTS).points
    torch.testing.assert_close(points_of(stream), whole, rtol=0, atol=1e-6)


def test_a_problem_that_shows_a_part_of_tau_streams_what_is_seen():
    dots = px.problem(str(Path(__file__).parent.parent / "examples/dots.py"))
    operator = make(dots.instances)
    operator.problem = dots
    pictures = dots.sample(3, "test", torch.Generator().manual_seed(0))["picture"]
    (solutions,) = operator.stream(iter(pictures), starts=STARTS)
    assert solutions.points.shape == (3, 6, 2)
    assert solutions.values is None


# Bad input


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([0.1, 0.2], "Tau 4 .*tau must be 3 numbers, .*; this one has 2"),
        ([0.1, 0.2, float("nan")], "Tau 4 .*NaN or infinite"),
        (torch.full((3,), torch.inf), "Tau 4 .*NaN or infinite"),
        ("conic", "Tau 4 .*must be 3 numbers"),
        ([0.1, None, 0.2], "Tau 4 .*must be 3 numbers"),
        (None, "Tau 4 .*give tau, 3 numbers"),
        ([[0.1] * 3] * 2, "Tau 4 .*is a batch of 2 instances: give .* one at a time"),
        ({"a": 1}, "Tau 4 .*must be 3 numbers"),
    ],
    ids=str,
)
@pytest.mark.parametrize("others", [TAUS.tolist(), list(TAUS)], ids=["lists", "tensors"])
@pytest.mark.usefixtures("two_at_once")
def test_a_bad_tau_is_named_after_the_good_ones_before_it(others: list, bad, words: str):
    stream = make().stream(iter([*others[:4], bad, *others[4:]]), starts=STARTS)
    assert len(points_of([next(stream), next(stream)])) == 4
    with pytest.raises(px.InputError, match=words):
        next(stream)


@pytest.mark.usefixtures("two_at_once")
def test_a_bad_row_of_an_array_is_named():
    taus = TAUS.clone()
    taus[5, 1] = torch.nan
    for given in (taus, taus.numpy()):
        with pytest.raises(px.InputError, match="Tau 5 "):
            list(make().stream(given, starts=STARTS))
    with pytest.raises(px.InputError, match=r"Tau 0 .*tau must be 3 numbers"):
        list(make().stream(TAUS[0], starts=STARTS))  # one tau, where many are expected


def test_a_bad_picture_is_named():
    operator = make(Pictures(1, 9, 10))
    pictures = [torch.rand(1, 9, 10), torch.rand(1, 9, 10), torch.rand(1, 9, 9)]
    with pytest.raises(px.InputError, match=r"Tau 2 .*\(1, 1, 9, 9\)"):
        list(operator.stream(pictures))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"taus": 5}, "taus is 5; expected"),
        ({"taus": None}, "taus is None; expected"),
        ({"taus": torch.tensor(1.0)}, "expected instances to go through"),
        ({"starts": 0}, "starts must be a whole number, 1 or more"),
        ({"starts": torch.zeros(7, 4, 2)}, r"starts has shape \(7, 4, 2\)"),
    ],
    ids=str,
)
def test_bad_arguments_are_said_at_once(settings: dict, words: str):
    with pytest.raises(px.InputError, match=words):
        make().stream(**{"taus": TAUS} | settings)


# A million


def resident() -> int:
    """Bytes of memory in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to see memory")
def test_a_million_taus_take_no_more_memory_than_a_few(monkeypatch: pytest.MonkeyPatch):
    """All the solutions together are 64 MB: held, they would show."""
    monkeypatch.setattr(applying, "ON_GPU", 1 << 17)
    operator = make(architecture=Coupling(1, 2, 2, gated=False, start_at_identity=False))
    row = TAUS[0].numpy()
    taus = (row for _ in range(1_000_000))
    count, after = 0, []
    for solutions in operator.stream(taus, starts=8, steps=1):
        count += len(solutions)
        after.append(resident())
    assert count == 1_000_000
    assert len(after) > 50
    assert max(after) - max(after[:10]) < 16 * 2**20
