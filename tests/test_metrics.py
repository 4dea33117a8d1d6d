"""The metrics against section 4 of the paper, written out as loops over single points."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import proxlearn as px
from proxlearn.answers import metrics

DELTAS = (0.05, 0.3, 1.0)
SPACES = {
    "box": px.Box(-1.0, 1.0, dim=2),
    "circles": px.Circles(2),
    "planes": px.Planes(1.0),
}


def solutions(
    space: px.Space, instances: int, count: int, seed: int, outside: bool = True
) -> px.Solutions:
    """Random points with random values, a few of them outside the space."""
    generator = torch.Generator().manual_seed(seed)
    points = space.sample(instances, count, generator=generator)
    if outside:
        points[:, ::4] *= 3
    made = px.Solutions.of(space, points, points)
    return px.Solutions(space, points, points, made.inside, values_of(points))


def values_of(points: Tensor) -> Tensor:
    """An objective of mixed sign, so that absolute and relative thresholds cut differently."""
    return points[..., 0] - 0.5 * points[..., 1].square() - 0.7


def witnesses_in(space: px.Space, count: int = 25) -> Tensor:
    return space.sample(count, generator=torch.Generator().manual_seed(99))


def distance(space: px.Space, a: Tensor, b: Tensor) -> float:
    return math.sqrt(space.squared_distance(a, b).item())


def hausdorff(found: px.Solutions, truth: px.Solutions) -> Tensor:
    """Of every instance, the largest distance from a point inside of either set to the other."""
    largest = []
    for i in range(len(found)):
        a, b = (each.points[i][each.inside[i]] for each in (found, truth))
        between = found.space.pairwise(a, b)
        largest.append(max(between.amin(0).max(), between.amin(1).max()))
    return torch.stack(largest)


def nearest(space: px.Space, to: Tensor, among: list[Tensor]) -> Tensor:
    """`proj_S(x)`: the first of the nearest."""
    return min(among, key=lambda point: distance(space, point, to))


def counting(each: px.Solutions, i: int, threshold: float | None) -> list[Tensor]:
    """`A_t` of one instance."""
    kept = []
    for n in range(each.points.shape[1]):
        low_enough = threshold is None or each.values[i, n].item() <= threshold
        if each.space.contains(each.points[i, n]).item() and low_enough:
            kept.append(each.points[i, n])
    return kept


def literal_gap(space: px.Space, a: list[Tensor], b: list[Tensor], witness: Tensor) -> float:
    """`D_t` of eq. (6) for one witness."""
    if not a and not b:
        return 0.0
    if not a or not b:
        return space.diameter
    on_a, on_b = nearest(space, witness, a), nearest(space, witness, b)
    there = distance(space, on_a, nearest(space, on_a, b))
    back = distance(space, on_b, nearest(space, on_b, a))
    return there / 2 + back / 2


def literal(found, truth, witnesses, threshold=None, relative=False):
    """WD_t, WP_t^delta, rho and rho_gt by loops, for every instance."""
    divergence, precision, rho, rho_gt = [], [], [], []
    for i in range(len(found)):
        t = threshold
        if relative:
            inside = [v for v, ok in zip(truth.values[i].tolist(), truth.inside[i]) if ok]
            t = threshold * min(inside)
        a, b = counting(found, i, t), counting(truth, i, t)
        gaps = [literal_gap(found.space, a, b, w) for w in witnesses]
        divergence.append(sum(gaps) / len(gaps))
        precision.append([sum(g < delta for g in gaps) / len(gaps) for delta in DELTAS])
        rho.append(len(a) / found.points.shape[1])
        rho_gt.append(len(b) / truth.points.shape[1])
    return tuple(torch.tensor(each) for each in (divergence, precision, rho, rho_gt))


def assert_same(result: metrics.Witnessed, expected: tuple[Tensor, ...]) -> None:
    parts = (result.divergence, result.precision, result.rho, result.rho_gt)
    for part, other in zip(parts, expected, strict=True):
        torch.testing.assert_close(part, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())
@pytest.mark.parametrize(
    ("threshold", "relative"), [(None, False), (-0.6, False), (0.5, True)], ids=str
)
def test_witnessed_metrics_are_those_of_the_paper(space, threshold, relative):
    found, truth = solutions(space, 3, 12, seed=1), solutions(space, 3, 9, seed=2)
    witnesses = witnesses_in(space)
    result = metrics.witnessed(found, truth, witnesses, DELTAS, threshold, relative)
    expected = literal(found, truth, witnesses, threshold, relative)
    assert_same(result, expected)
    assert 0 < expected[0].mean() < space.diameter  # the sets really differ, and are not empty
    assert expected[2].mean() < 1  # and some solutions really do not count


def test_threshold_of_each_instance():
    space = SPACES["box"]
    found, truth = solutions(space, 2, 12, seed=1), solutions(space, 2, 9, seed=2)
    witnesses, thresholds = witnesses_in(space), [-0.9, -0.3]
    result = metrics.witnessed(found, truth, witnesses, DELTAS, torch.tensor(thresholds))
    for i, threshold in enumerate(thresholds):
        expected = literal(found[i], truth[i], witnesses, threshold)
        torch.testing.assert_close(result.divergence[i], expected[0][0])


def test_empty_sets():
    """Both empty do not differ; one empty differs by the diameter."""
    space = SPACES["box"]
    some, other = (solutions(space, 1, 8, seed=k, outside=False) for k in (1, 2))
    none = px.Solutions.of(space, some.points + 50, some.points)
    witnesses = witnesses_in(space)
    for found, truth, divergence, precision in [
        (none, none, 0.0, 1.0),
        (some, none, space.diameter, 0.0),
        (none, some, space.diameter, 0.0),
    ]:
        result = metrics.witnessed(found, truth, witnesses, deltas=(0.1,))
        assert result.divergence.item() == pytest.approx(divergence)
        assert result.precision.item() == precision
    by_threshold = metrics.witnessed(some, other, witnesses, deltas=(0.1,), threshold=-100.0)
    assert by_threshold.divergence.item() == 0
    assert by_threshold.rho.item() == 0


@given(seed=st.integers(0, 10_000), count=st.integers(1, 20))
def test_a_set_does_not_differ_from_itself(seed: int, count: int):
    for space in SPACES.values():
        same = solutions(space, 2, count, seed, outside=False)
        result = metrics.witnessed(same, same, witnesses_in(space), deltas=(1e-3,))
        assert (result.divergence == 0).all()
        assert (result.precision == 1).all()


@given(seed=st.integers(0, 10_000), copies=st.integers(2, 5))
def test_duplicates_and_order_do_not_matter(seed: int, copies: int):
    space = SPACES["box"]
    found, truth = solutions(space, 2, 7, seed), solutions(space, 2, 6, seed + 1)
    repeated = found.points.repeat(1, copies, 1)
    order = torch.randperm(repeated.shape[1], generator=torch.Generator().manual_seed(seed))
    repeated = px.Solutions.of(space, repeated[:, order], repeated)
    witnesses = witnesses_in(space)
    once = metrics.witnessed(found, truth, witnesses, DELTAS)
    often = metrics.witnessed(repeated, truth, witnesses, DELTAS)
    torch.testing.assert_close(once.divergence, often.divergence)
    assert torch.equal(once.precision, often.precision)


@given(seed=st.integers(0, 10_000))
def test_metrics_are_symmetric_and_bounded(seed: int):
    for space in SPACES.values():
        found, truth = solutions(space, 2, 7, seed), solutions(space, 2, 6, seed + 1)
        witnesses = witnesses_in(space)
        forth = metrics.witnessed(found, truth, witnesses, DELTAS)
        back = metrics.witnessed(truth, found, witnesses, DELTAS)
        torch.testing.assert_close(forth.divergence, back.divergence)
        assert (forth.divergence <= space.diameter).all()
        assert (forth.precision.diff(dim=1) >= 0).all()  # a wider delta forgives more
        assert (forth.divergence <= hausdorff(found, truth) + 1e-5).all()


def test_bounded_memory_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch):
    space = SPACES["circles"]
    found, truth = solutions(space, 5, 12, seed=1), solutions(space, 5, 9, seed=2)
    witnesses = witnesses_in(space)

    def everything() -> tuple[Tensor, ...]:
        result = metrics.witnessed(found, truth, witnesses, DELTAS, threshold=-0.5)
        return result.divergence, result.precision, result.rho, result.rho_gt

    at_once, largest = everything(), []
    pairwise = px.Circles.pairwise

    def watched(self, x, y):
        distances = pairwise(self, x, y)
        largest.append(distances.numel())
        return distances

    monkeypatch.setattr(px.Circles, "pairwise", watched)
    monkeypatch.setattr(metrics, "MAX_DISTANCES", 12 * 25)  # one instance's worth
    piece_by_piece = everything()
    for a, b in zip(at_once, piece_by_piece, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=0)
    assert max(largest) <= 12 * 25


def test_plain_points_do_with_their_space():
    space = SPACES["box"]
    a, b = (solutions(space, 1, 9, seed=k) for k in (1, 2))
    witnesses = witnesses_in(space)
    of_points = metrics.witnessed(a.points[0], b.points[0], witnesses, space=space)
    torch.testing.assert_close(of_points.divergence, metrics.witnessed(a, b, witnesses).divergence)
    with pytest.raises(px.InputError, match="space="):
        metrics.witnessed(a.points[0], b.points[0], witnesses)
    with pytest.raises(px.InputError, match="of 1 and of 2 instances"):
        metrics.witnessed(a, solutions(space, 2, 9, seed=2), witnesses)


def test_recall_counts_the_known_minimizers_that_were_found():
    space = SPACES["box"]
    found = torch.tensor([[[0.0, 0.0], [0.5, 0.5], [9.0, 9.0]]])
    known = torch.tensor([[0.001, 0.0], [0.5, 0.6], [-0.5, 0.5], [9.0, 9.0]])
    reached = metrics.recall(px.Solutions.of(space, found, found), [known], tolerance=0.11)
    assert reached == (2, 4)  # one that left the space finds nothing


def test_a_threshold_without_values_is_refused():
    space = SPACES["box"]
    bare = px.Solutions.of(space, witnesses_in(space)[None], witnesses_in(space)[None])
    for relative in (False, True):
        with pytest.raises(px.InputError, match="needs values"):
            metrics.witnessed(bare, bare, witnesses_in(space), threshold=0.1, relative=relative)
