"""The distinct optima among solutions: isolated points, curves and surfaces, up to symmetry."""

import json
import math
import time

import numpy as np
import pytest
import torch
from rich.console import Console
from scipy.ndimage import label
from torch import Tensor

import proxlearn as px
from proxlearn.answers.clusters import clusters
from proxlearn.answers.solutions import Solutions
from proxlearn.answers.table import SHOWN
from proxlearn.problems.base import held_out

BOX = px.Box(-5.0, 5.0, dim=2)
CUBE = px.Box(-1.0, 1.0, dim=3)
CONICS = {
    "circle": ((0.25, 0, 0.25, 0, 0, -1), ["continuum"]),
    "hyperbola": ((0.3, 0, -0.3, 0, 0, -1), ["continuum"] * 2),
    "two crossing lines": ((0.5, 0, -0.3, 0, 0, 0), ["continuum"]),
    "two parallel lines": ((0.3, 0, 0, 0, 0, -0.9), ["continuum"] * 2),
    "one line": ((0, 0, 0, 0.5, 1, -0.5), ["continuum"]),
    "nothing but a nearest point": ((0.4, 0.1, 0.5, 0.2, -0.1, 0.8), ["point"]),
}


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def around(centers: list[tuple[float, ...]], counts: list[int], spread: float = 1e-3) -> Tensor:
    """Points scattered closely around centers, shuffled."""
    generator = torch.Generator().manual_seed(0)
    at = torch.tensor(centers).repeat_interleave(torch.tensor(counts), 0)
    points = at + spread * torch.randn(at.shape, generator=generator)
    return points[torch.randperm(len(points), generator=generator)]


def circle(count: int, radius: float = 2.0, seed: int = 0) -> Tensor:
    """Random points of a circle: some gaps between them are far wider than others."""
    angle = 2 * math.pi * random(count, seed=seed)
    return radius * torch.stack((angle.cos(), angle.sin()), -1)


def solutions(points: Tensor, values: Tensor | None = None, space: px.Space = BOX) -> Solutions:
    made = Solutions.of(space, points[None], points[None])
    return Solutions(space, points[None], points[None], made.inside, values)


def unique(points: Tensor, values: Tensor | None = None, space: px.Space = BOX, **settings):
    return solutions(points, values, space).unique(**settings)


def branches(conic: Tensor, grid: int = 500) -> int:
    """How many connected pieces a conic has in the box, by the signs on a fine grid; without any,
    1 if it has a nearest point there."""
    a, b, c, d, e, f = conic.double().numpy()
    u, v = np.meshgrid(*[np.linspace(-5, 5, grid)] * 2)
    positive = (a * u * u + b * u * v + c * v * v + d * u + e * v + f > 0).astype(int)
    corners = positive[1:, 1:] + positive[:-1, 1:] + positive[1:, :-1] + positive[:-1, :-1]
    _, count = label((corners > 0) & (corners < 4), np.ones((3, 3)))  # pyright: ignore
    bend = np.array([[2 * a, b], [b, 2 * c]])
    center = -np.linalg.solve(bend, [d, e])
    return count or int(np.linalg.det(bend) > 0 and (abs(center) < 5).all())


def test_clusters_with_their_shares():
    centers = [(1.0, 1.0), (-2.0, 3.0), (4.0, -4.0)]
    optima = unique(around(centers, [50, 30, 20]))
    assert len(optima) == 3
    assert optima.values is None
    assert optima.certificates is None
    assert optima.starts == 100
    assert optima.hits.tolist() == [50, 30, 20]  # most reached first
    torch.testing.assert_close(optima.share, torch.tensor([0.5, 0.3, 0.2]))
    torch.testing.assert_close(optima.points, torch.tensor(centers), rtol=0, atol=5e-3)
    assert optima.kind == ["point"] * 3
    assert optima.dimension.tolist() == [0] * 3
    expected = torch.full((3,), 1e-3 * math.sqrt(2))
    torch.testing.assert_close(optima.spread, expected, rtol=0.5, atol=0)


def test_bounded_memory_gives_the_same(monkeypatch: pytest.MonkeyPatch):
    points = torch.cat((circle(200), around([(4.0, 4.0)], [50])))
    whole = unique(points)
    monkeypatch.setattr("proxlearn.answers.clusters.MAX_DISTANCES", 100)
    parts = unique(points)
    assert torch.equal(whole.points, parts.points)
    assert whole.kind == parts.kind


def test_the_best_is_first_and_stands_for_its_cluster():
    points = around([(1.0, 1.0), (-2.0, 3.0)], [50, 50], spread=5e-3)
    values = (points - torch.tensor([-2.0, 3.0])).square().sum(-1)[None]
    optima = unique(points, values)
    assert (optima.values.diff() > 0).all()
    assert optima.values[0] == values.min()
    torch.testing.assert_close(optima.points[0], torch.tensor([-2.0, 3.0]), rtol=0, atol=5e-3)


def test_what_left_the_space_is_no_optimum_but_counts_as_a_start():
    optima = unique(around([(1.0, 1.0), (9.0, 9.0)], [25, 75]))
    assert len(optima) == 1
    assert optima.share.item() == 0.25


def test_what_hardly_any_start_reached_is_left_out():
    points = around([(1.0, 1.0), (-3.0, 0.0)], [1999, 1])
    assert len(unique(points)) == 1
    assert len(unique(points, smallest_share=0.0)) == 2


def test_tolerances_in_x_and_in_the_value():
    two = torch.tensor([[0.0, 0.0], [0.5, 0.0]])
    values = torch.tensor([[1.0, 2.0]])
    assert len(unique(two)) == 2
    assert len(unique(two, tolerance=0.6)) == 1
    assert len(unique(two, tolerance=1e308)) == 1  # as large as floats are
    assert len(unique(two, values, tolerance=0.6, value_tolerance=1.5)) == 1
    assert len(unique(two, values, tolerance=0.6, value_tolerance=0.5)) == 2
    with pytest.raises(px.InputError, match="needs values"):
        unique(two, value_tolerance=0.5)


def test_nothing_is_no_optima():
    optima = unique(around([(9.0, 9.0)], [10]))
    assert len(optima) == 0
    assert optima.points.shape == (0, 2)
    assert optima.rows() == []
    assert "0 points and 0 continua from 0.0% of 10 starts" in repr(optima)


def test_it_is_of_one_instance():
    points = BOX.sample(3, 4)
    made = Solutions.of(BOX, points, points)
    with pytest.raises(px.InputError, match=r"of one instance, not of 3: use solutions\[0\]"):
        made.unique()
    assert len(made[1].unique()) >= 1


def test_the_certificate_is_that_of_the_point():
    points = around([(1.0, 1.0), (-2.0, 3.0)], [20, 10])
    which = torch.where(points[:, 0] > 0, 1, 3).to(torch.int8)[None]
    made = Solutions(
        BOX, points[None], points[None], BOX.contains(points)[None], certificates=which
    )
    optima = made.unique()
    assert optima.certificates == ["boundary"]  # the others are at a saddle
    assert optima.unconverged == pytest.approx(2 / 3)
    assert optima.rows()[0]["certificate"] == "boundary"
    assert "66.7% of the starts did not converge" in repr(optima)


# Isolated optima


def test_cosine_has_121_minima():
    found = px.solve(px.problem("cosine"), method="lbfgs", starts=4096, device="cpu")
    optima = found.unique()
    assert len(optima) == 121
    assert set(optima.kind) == {"point"}
    assert len({tuple(point) for point in optima.points.round().tolist()}) == 121
    assert optima.spread.max() < 1e-3


@pytest.mark.parametrize("starts", [20, 64, 200])
def test_few_starts_on_a_grid_are_no_surface(starts: int):
    """Where hardly any minimum is reached twice, there is nothing but single points to see."""
    found = px.solve(px.problem("cosine"), method="lbfgs", starts=starts, device="cpu")
    reached = found.points[0][found.inside[0]].round().unique(dim=0)
    optima = found.unique()
    assert len(optima) == len(reached)
    assert set(optima.kind) == {"point"}


@pytest.mark.parametrize("dim", [2, 3, 5])
@pytest.mark.parametrize("count", [64, 1024])
def test_scattered_points_are_no_set(dim: int, count: int):
    """As where an objective has more minima than there are starts."""
    box = px.Box(-1.0, 1.0, dim=dim)
    points = box.sample(count, generator=torch.Generator().manual_seed(0))
    optima = unique(points, space=box, smallest_share=0.0)
    assert set(optima.kind) == {"point"}
    assert len(optima) > 0.7 * count  # a few are neighbours within the tolerance


def test_himmelblau_has_four_minima():
    def himmelblau(x: Tensor) -> Tensor:
        u, v = x.unbind(-1)
        return (u * u + v - 11).square() + (u + v * v - 7).square()

    problem = px.Problem.from_function(himmelblau, px.Box(-6.0, 6.0, dim=2))
    optima = px.solve(problem, method="lbfgs", starts=512, device="cpu").unique()
    assert optima.kind == ["point"] * 4
    assert optima.share.sum() > 0.99


def test_springs_have_the_right_number_of_rests():
    """Starts everywhere, and some beside each rest, as a basin may be too small to be hit."""
    problem = px.problem("springs")
    for tau in held_out(problem, 4):
        (rests,) = problem.truth(tau[None])
        beside = rests.repeat(5, 1) + 1e-3 * random(5 * len(rests), 3)
        starts = torch.cat((problem.space.sample(400), beside))
        settings = {"method": "descent", "steps": 400, "rate": 0.1, "adam": False}
        optima = px.solve(problem, tau, starts=starts, device="cpu", **settings).unique()
        assert len(optima) == len(rests)
        assert set(optima.kind) == {"point"}


def test_noise_within_the_tolerance_is_no_continuum():
    """Stretched clumps, as of an operator in a narrow valley."""
    clump = around([(1.0, 1.0), (-2.0, 3.0)], [500, 500], spread=0.01)
    stretched = clump * torch.tensor([2.0, 0.2])
    assert unique(stretched).kind == ["point"] * 2


# Continuous sets


@pytest.mark.parametrize("name", CONICS)
def test_branches_of_known_conics(name: str):
    tau, kinds = CONICS[name]
    found = px.solve(px.problem("conic"), tau, method="lbfgs", starts=1024, device="cpu")
    optima = found.unique()
    assert optima.kind == kinds
    assert optima.dimension.tolist() == [int(kind == "continuum") for kind in kinds]


@pytest.mark.parametrize(("method", "least"), [("lbfgs", 36), ("operator", 31)])
def test_branches_of_random_conics(method: str, least: int):
    """Of 40 test conics, how many fall into as many sets as they have branches: 38 and 34; over
    four other draws 97% and 87%. Most others are hyperbolas whose branches nearly touch."""
    conic = px.problem("conic")
    tau = held_out(conic, 40, seed=7)
    found = px.solve(conic, tau, method=method, starts=1024, device="cpu")
    right = [len(found[k].unique()) == branches(tau[k]) for k in range(40)]
    assert sum(right) >= least


@pytest.mark.parametrize("count", [100, 300, 1000, 5000])
def test_a_circle_is_one_set_however_it_is_sampled(count: int):
    """The wide gaps between few points are far beyond the tolerance."""
    optima = unique(circle(count))
    assert optima.kind == ["continuum"]
    assert optima.dimension.tolist() == [1]
    assert optima.hits.tolist() == [count]
    assert optima.spread.item() == pytest.approx(2 * math.sqrt(2), rel=0.2)
    angle = torch.atan2(*circle(count).T).sort().values
    widest = max(angle.diff().max(), angle[0] + 2 * math.pi - angle[-1])
    assert optima.gap.item() <= 2 * widest + 0.08  # seen from the middle of balls of this size


def test_an_isolated_optimum_beside_a_curve():
    optima = unique(torch.cat((circle(900), around([(0.0, 0.0), (2.6, 0.0)], [60, 64]))))
    assert optima.kind == ["continuum", "point", "point"]
    assert optima.hits.tolist() == [900, 64, 60]


def test_two_curves_near_each_other_stay_two():
    optima = unique(torch.cat((circle(1000), circle(1000, 2.5, seed=1))))
    assert optima.hits.tolist() == [1000, 1000]
    assert optima.kind == ["continuum"] * 2


@pytest.mark.parametrize("count", [500, 8000])
def test_a_sheet_in_three_dimensions(count: int):
    uv = 1.6 * random(count, 2) - 0.8
    sheet = torch.cat((uv, 0.3 * (3 * uv[:, :1]).sin()), 1)
    optima = unique(sheet, space=CUBE)
    assert optima.kind == ["continuum"]
    assert optima.dimension.tolist() == [2]


def test_a_thousand_points_take_no_time():
    scattered, curve = CUBE.sample(1024), circle(1024)
    for points, space in ((scattered, CUBE), (curve, BOX)):
        began = time.process_time()
        unique(points, space=space)
        assert time.process_time() - began < 1.0  # a third of it is usual, checked shapes and all


# Symmetry


class Axes(px.Problem):
    """The quadratic form of tau on the sphere: an axis has two ends."""

    space = px.Sphere(3)
    parameters = px.Box(-1.0, 1.0, dim=3)

    def objective(self, x, tau):
        return (x.square() * tau[:, None]).sum(-1)

    def images(self, x):
        return torch.stack((x, -x))


class Cut(px.Problem):
    """A cut of the cycle of four vertices, relaxed to [-1, 1]^4: sides have no names."""

    space = px.Box(-1.0, 1.0, dim=4)

    def objective(self, x, tau):
        wells = (x.square() - 0.6).square().sum(-1)
        return wells + 0.05 * (x * x.roll(1, -1)).sum(-1)

    def images(self, x):
        return torch.stack((x, -x))


class Turned(px.Problem):
    """Three unit vectors that repel each other: only the angles between them count."""

    space = px.Circles(3)

    def objective(self, x, tau):
        first, second, third = x.unflatten(-1, (3, 2)).unbind(-2)
        return (first * second + second * third + third * first).sum(-1)

    def canonical(self, x):
        vectors = x.unflatten(-1, (3, 2))
        (u, v), (a, b) = vectors[..., :1, :].unbind(-1), vectors.unbind(-1)
        return torch.stack((u * a + v * b, u * b - v * a), -1).flatten(-2)


def test_the_sign_of_a_vector_can_be_left_out():
    found = px.solve(Axes(), [0.5, -0.8, 0.9], method="lbfgs", starts=200, device="cpu")
    optima = found.unique()
    assert optima.hits.tolist() == [200]
    assert optima.spread.item() < 1e-3
    assert optima.points[0].abs().tolist() == pytest.approx([0, 1, 0], abs=1e-2)
    plain = Solutions.of(found.space, found.points, found.starts)
    assert len(plain.unique()) == 2


def test_a_cut_and_its_complement_are_one():
    found = px.solve(Cut(), method="lbfgs", starts=1000, device="cpu")
    plain = Solutions.of(found.space, found.points, found.starts)
    assert len(found.unique()) == 8
    assert len(plain.unique()) == 16


def test_a_rotation_is_taken_out():
    """Without their symmetry the minima are two curves: the order is clockwise, or it is not."""
    found = px.solve(Turned(), method="lbfgs", starts=600, device="cpu")
    optima = found.unique()
    assert optima.kind == ["point"] * 2
    assert optima.hits.sum() == 600
    plain = Solutions.of(found.space, found.points, found.starts).unique()
    assert plain.kind == ["continuum"] * 2
    assert plain.dimension.tolist() == [1, 1]


def test_a_plane_has_two_descriptions():
    plane = torch.tensor([[0.6, 0.0, 0.8, 0.0]])
    assert len(unique(torch.cat((plane, -plane)), space=px.Planes())) == 1


# For a person, and for a file


def test_rows_are_json_and_the_table_shows_the_first():
    grid = torch.cartesian_prod(torch.arange(-4.0, 5.0), torch.arange(-4.0, 5.0)).repeat(3, 1)
    optima = unique(torch.cat((grid, 0.3 * circle(400) + 0.5)), space=px.Box(-6.0, 6.0, dim=2))
    rows = json.loads(json.dumps(optima.rows()))
    assert len(rows) == len(optima) == 82
    assert rows[0]["kind"] == "continuum"
    assert rows[0]["dimension"] == 1
    assert rows[5]["point"] == optima.points[5].tolist()
    assert rows[5]["hits"] == 3
    assert "81 points and 1 continua from 100.0% of 643 starts" in repr(optima)
    console = Console(width=120)
    with console.capture() as captured:
        console.print(optima)
    heading, first, second, *others = captured.get().splitlines()
    assert heading.split() == ["x1", "x2", "value", "starts", "spread", "kind"]
    assert first.rstrip().endswith("continuum, 1-D")
    assert second.rstrip().endswith("point")
    assert len(others) == SHOWN - 2 + 1
    assert others[-1] == "... and 62 more of 82"
    assert "... and 62 more of 82" in optima._repr_html_()
    assert len(optima[:3]) == 3
    assert optima[5] == list(optima)[5] == optima.rows()[5]


def test_optima_that_few_starts_reached_can_be_left_out_later():
    points = around([(0.0, 0.0), (3.0, 0.0), (0.0, 3.0)], [900, 90, 3])
    made = solutions(points).valued(
        px.Problem.from_function(lambda x: x.sum(-1), BOX), torch.zeros(1, 0)
    )
    every = made.unique(smallest_share=0.0, verify=False)
    assert len(every) == 3
    for share in (0.0, 0.01, 0.5, 1.0):
        left, asked = every.reached_by(share), made.unique(smallest_share=share, verify=False)
        assert left.rows() == asked.rows()
        assert left.starts == asked.starts == 993


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("limit", [math.inf, 0.3])
def test_a_tree_finds_the_clusters_that_all_distances_do(seed: int, limit: float):
    """Points of a curve, of two optima and of nowhere, with values of their own."""
    points = torch.cat(
        (circle(300, seed=seed), around([(4.0, 4.0), (-4.0, 4.0)], [50, 9]), 8 * random(60, 2) - 4)
    )
    values = random(len(points), seed=seed + 9).round()
    values[3] = torch.nan
    by = [
        clusters(points, values, BOX.pairwise, BOX.degrees, 0.07, limit, tree)
        for tree in (True, False)
    ]
    sets = [sorted((sorted(c.members.tolist()), c.dimension) for c in each) for each in by]
    assert sets[0] == sets[1]
    assert [c.gap for c in by[0]] == pytest.approx([c.gap for c in by[1]], rel=1e-4)


def test_scattered_solutions_do_not_take_the_square_of_their_number():
    box = px.Box(-5.0, 5.0, dim=3)
    seconds = []
    for count in (1000, 8000):
        points = box.sample(count, generator=torch.Generator().manual_seed(0))
        begun = time.process_time()
        unique(points, space=box, smallest_share=0.0)
        seconds.append(time.process_time() - begun)
    assert seconds[1] < 25 * seconds[0]  # 64 times would be the square
