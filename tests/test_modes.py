"""Mean shift on many sets of points at once, against plain mean shift of one set."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from proxlearn.detections.modes import BANDWIDTH, at_front, modes_of, not_near_better

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU"
))]  # fmt: skip


def gathered(seed: int, points: int = 200, spread: float = 0.001, stray: float = 0.2) -> Tensor:
    """Points around six places of [0, 1]^4, and some anywhere."""
    generator = torch.Generator().manual_seed(seed)
    places = torch.rand(6, 4, generator=generator)
    which = torch.randint(6, (points,), generator=generator)
    x = places[which] + spread * torch.randn(points, 4, generator=generator)
    strays = torch.rand(points, generator=generator) < stray
    return torch.where(strays[:, None], torch.rand(points, 4, generator=generator), x)


def plain_mean_shift(x: Tensor, width: float = BANDWIDTH) -> tuple[Tensor, Tensor]:
    """The modes of one set by the book, and how many points are within the bandwidth of each."""
    found = []
    for seed in ((x / width).round() * width).unique(dim=0):
        for _ in range(300):
            mean = x[(x - seed).norm(dim=-1) <= width].mean(0)
            moved, seed = (mean - seed).abs().amax(), mean
            if moved <= 1e-3 * width:
                break
        found.append((int(((x - seed).norm(dim=-1) <= width).sum()), seed))
    found.sort(key=lambda each: -each[0])
    modes: list[Tensor] = []
    many = []
    for count, seed in found:
        if all((seed - other).norm() > width for other in modes):
            modes.append(seed)
            many.append(count)
    return torch.stack(modes), torch.tensor(many)


def every(x: Tensor) -> Tensor:
    return torch.ones(x.shape[:2], dtype=torch.bool)


@pytest.mark.parametrize("spread", [0.0005, 0.002])
@pytest.mark.parametrize("stray", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("device", DEVICES)
def test_modes_are_those_of_plain_mean_shift(spread: float, stray: float, device: str):
    x = torch.stack([gathered(seed, spread=spread, stray=stray) for seed in range(3)])
    found = modes_of(x.to(device), every(x).to(device))
    for k, own in enumerate(x):
        places, many = plain_mean_shift(own)
        ours = found.places[k][found.real[k]].cpu()
        assert len(ours) == len(places)
        apart = torch.cdist(places, ours, compute_mode="donot_use_mm_for_euclid_dist")
        assert apart.amin(1).max() < 1e-4
        assert apart.amin(0).max() < 1e-4
        sizes = (torch.cdist(ours, own) <= BANDWIDTH).sum(1)
        assert (sizes[:-1] - sizes[1:] >= -1).all()  # most points first, up to rounding
        assert int(sizes[0]) == pytest.approx(int(many[0]), abs=1)


def test_modes_are_those_of_scikit_learn():
    cluster = pytest.importorskip("sklearn.cluster", reason="scikit-learn is not installed")
    x = gathered(0, points=300, spread=0.001, stray=0.1)
    theirs = cluster.MeanShift(bandwidth=BANDWIDTH, bin_seeding=True).fit(x.double().numpy())
    found = modes_of(x[None], every(x[None]))
    of_point = torch.from_numpy(theirs.cluster_centers_)[theirs.labels_].float()
    ours = found.places[0][found.of_point[0]]
    assert (of_point - ours).abs().max() < 1e-4
    assert int(found.real.sum()) == len(theirs.cluster_centers_)


def test_a_point_belongs_to_the_nearest_mode():
    x = gathered(3)[None]
    found = modes_of(x, every(x))
    apart = torch.cdist(x[0], found.places[0][found.real[0]])
    own = apart.gather(1, found.of_point[0][:, None])[:, 0]
    torch.testing.assert_close(own, apart.amin(1), rtol=0, atol=1e-4)


def test_sets_do_not_see_each_other_and_points_that_do_not_count_say_nothing():
    x = torch.stack([gathered(4), gathered(5, stray=0.9)])
    counts = torch.rand(2, 200, generator=torch.Generator().manual_seed(0)) < 0.7
    spoiled = torch.where(counts[..., None], x, torch.nan)
    both = modes_of(spoiled, counts)
    for k in range(2):
        alone = modes_of(x[k][counts[k]][None], every(x[k][counts[k]][None]))
        real = both.real[k]
        assert int(real.sum()) == int(alone.real.sum())
        torch.testing.assert_close(both.places[k][real], alone.places[0], rtol=0, atol=1e-6)


def test_a_set_without_points_has_no_mode():
    x = torch.rand(2, 5, 4)
    counts = torch.tensor([[False] * 5, [True] * 5])
    found = modes_of(x, counts)
    assert found.real.any(1).tolist() == [False, True]


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_kept_is_the_greedy_choice_of_every_row(seed: int, count: int):
    generator = torch.Generator().manual_seed(seed)
    close = torch.rand(3, count, count, generator=generator) < 0.3
    close = close | close.mT | torch.eye(count, dtype=torch.bool)
    real = torch.rand(3, count, generator=generator) < 0.8
    keep = not_near_better(close, real)
    for row in range(3):
        chosen: list[int] = []
        for k in range(count):
            if real[row, k] and not any(close[row, k, other] for other in chosen):
                chosen.append(k)
        assert keep[row].nonzero()[:, 0].tolist() == chosen


def test_at_front_keeps_the_order_and_one_column_at_least():
    real = torch.tensor([[False, True, False, True], [False, False, False, True]])
    numbers, left = at_front(real, torch.arange(8).view(2, 4))
    assert numbers[0].tolist() == [1, 3]
    assert int(numbers[1, 0]) == 7
    assert left.tolist() == [[True, True], [True, False]]
    assert at_front(torch.zeros(2, 3, dtype=torch.bool))[0].shape == (2, 1)
