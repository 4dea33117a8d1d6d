"""Solutions: what came out for each start, and the distinct optima among them."""

import pytest
import torch
from torch import Tensor

import proxlearn as px

BOX = px.Box(-5.0, 5.0, dim=2)


def around(centers: list[tuple[float, float]], counts: list[int], spread: float = 1e-3) -> Tensor:
    """Points scattered closely around centers, shuffled."""
    generator = torch.Generator().manual_seed(0)
    at = torch.tensor(centers).repeat_interleave(torch.tensor(counts), 0)
    points = at + spread * torch.randn(at.shape, generator=generator)
    return points[torch.randperm(len(points), generator=generator)]


def solutions(points: Tensor, values: Tensor | None = None, space: px.Space = BOX) -> px.Solutions:
    made = px.Solutions.of(space, points[None], points[None])
    return px.Solutions(space, points[None], points[None], made.inside, values)


def test_inside_is_what_the_space_says_and_a_number():
    points = torch.tensor(
        [[0.0, 0.0], [5.004, 0.0], [6.0, 0.0], [torch.nan, 0.0], [torch.inf, 1.0]]
    )
    assert solutions(points).inside[0].tolist() == [True, True, False, False, False]


def test_unique_finds_the_clusters_with_their_shares():
    points = around([(1.0, 1.0), (-2.0, 3.0), (4.0, -4.0)], [50, 30, 20])
    optima = solutions(points).unique()
    assert len(optima) == 3
    assert optima.values is None
    torch.testing.assert_close(optima.share, torch.tensor([0.5, 0.3, 0.2]))  # most reached first
    expected = torch.tensor([[1.0, 1.0], [-2.0, 3.0], [4.0, -4.0]])
    torch.testing.assert_close(optima.points, expected, rtol=0, atol=5e-3)
    assert optima.kind == ["point"] * 3


def test_instances_can_be_iterated_over_and_have_an_end():
    two = px.Solutions.of(BOX, torch.zeros(2, 3, 2), torch.zeros(2, 3, 2))
    assert [len(one) for one in two] == [1, 1]
    with pytest.raises(IndexError, match="2 instances"):
        two[2]


def test_unique_in_bounded_memory_is_the_same(monkeypatch: pytest.MonkeyPatch):
    whole = solutions(around([(1.0, 1.0), (-2.0, 3.0)], [50, 30])).unique()
    monkeypatch.setattr("proxlearn.solutions.MAX_DISTANCES", 100)
    parts = solutions(around([(1.0, 1.0), (-2.0, 3.0)], [50, 30])).unique()
    assert torch.equal(whole.points, parts.points)


def test_unique_puts_the_best_first_and_takes_the_best_of_each():
    points = around([(1.0, 1.0), (-2.0, 3.0)], [50, 50], spread=5e-3)
    values = (points - torch.tensor([-2.0, 3.0])).square().sum(-1)[None]
    optima = solutions(points, values).unique()
    assert (optima.values.diff() > 0).all()
    assert optima.values[0] == values.min()
    torch.testing.assert_close(optima.points[0], torch.tensor([-2.0, 3.0]), rtol=0, atol=5e-3)


def test_unique_ignores_what_left_the_space_but_counts_its_starts():
    points = around([(1.0, 1.0), (9.0, 9.0)], [25, 75])
    optima = solutions(points).unique()
    assert len(optima) == 1
    assert optima.share.item() == 0.25


def test_unique_leaves_out_what_hardly_any_start_reached():
    points = around([(1.0, 1.0), (-3.0, 0.0)], [1999, 1])
    assert len(solutions(points).unique()) == 1
    assert len(solutions(points).unique(smallest_share=0.0)) == 2


def test_unique_calls_a_curve_of_solutions_a_continuum():
    angle = torch.linspace(0, 6.28, 1000)
    circle = 2 * torch.stack((angle.cos(), angle.sin()), -1)
    optima = solutions(torch.cat((circle, around([(4.0, 4.0)], [100])))).unique()
    assert optima.kind == ["continuum", "point"]


def test_unique_uses_the_spaces_distance_and_tolerance():
    plane = torch.tensor([[0.6, 0.0, 0.8, 0.0]])
    both = torch.cat((plane, -plane))
    assert len(solutions(both, space=px.Planes()).unique()) == 1
    two = torch.tensor([[0.0, 0.0], [0.5, 0.0]])
    assert len(solutions(two).unique()) == 2
    assert len(solutions(two).unique(tolerance=0.6)) == 1


def test_unique_of_nothing_is_empty():
    optima = solutions(around([(9.0, 9.0)], [10])).unique()
    assert len(optima) == 0
    assert optima.points.shape == (0, 2)
    assert len(optima.share) == 0


def test_unique_is_of_one_instance():
    points = BOX.sample(3, 4)
    made = px.Solutions.of(BOX, points, points)
    with pytest.raises(px.InputError, match=r"of one instance, not of 3: use solutions\[0\]"):
        made.unique()
    assert len(made[1].unique()) >= 1


def test_picking_instances():
    points = BOX.sample(5, 4)
    made = px.Solutions(BOX, points, points + 1, BOX.contains(points), points.sum(-1), 7)
    assert len(made) == 5
    assert torch.equal(made[2].points, points[2:3])
    assert torch.equal(made[-1].values, points[-1:].sum(-1))
    assert torch.equal(made[1:3].starts, points[1:3] + 1)
    assert made[0].applications == 7


def test_repr_says_how_many_and_how_good():
    points = torch.tensor([[0.0, 0.0], [9.0, 0.0]])
    assert "1 instances x 2 points in 2-D, 50.0% inside" in repr(solutions(points))
    assert "best value -3" in repr(solutions(points, torch.tensor([[-3.0, 1.0]])))
