"""With the objective at hand, only what leads to an optimum is listed as one."""

from dataclasses import replace

import torch
from torch import Tensor

import proxlearn as px
from proxlearn.answers.solutions import Solutions

BOX = px.Box(-1.0, 1.0, dim=2)
VALLEY = px.Problem.from_function(  # one minimum, at 0, in a long valley along the first axis
    lambda x: 1e-2 * x[..., 0].square() + x[..., 1].square(), BOX
)
WELLS = px.Problem.from_function(  # four minima, at (+-0.5, +-0.5)
    lambda x: (x.square() - 0.25).square().sum(-1), BOX
)
RING = px.Problem.from_function(lambda x: (x.square().sum(-1) - 0.25).square(), BOX)


def solutions(points: Tensor, problem: px.Problem) -> Solutions:
    found = Solutions.of(BOX, points[None], points[None])
    return found.with_values(problem, torch.zeros(1, 0))


def strung(count: int = 200) -> Tensor:
    """Points along the valley that have not arrived."""
    return torch.stack((torch.linspace(-0.04, 0.04, count), torch.zeros(count)), -1)


def test_points_on_their_way_along_a_valley_are_no_continuum():
    found = solutions(strung(), VALLEY)
    assert found.unique(verify=False).kind == ["continuum"]
    optima = found.unique()
    assert optima.kind == ["point"]
    assert optima.verified
    assert optima.share[0] == 1
    assert found.polished().unique().kind == ["point"]


def test_points_along_a_curve_of_optima_are_one():
    angle = torch.linspace(0, 2 * torch.pi, 401)[:-1]
    on_it = 0.5 * torch.stack((angle.cos(), angle.sin()), -1)
    stray = torch.tensor([[0.56, 0.0]])  # leads to the ring, too
    for found in (solutions(on_it, RING), solutions(torch.cat((on_it, stray)), RING)):
        optima = found.unique()
        assert optima.kind == ["continuum"]
        assert optima.hits.tolist() == [found.points.shape[1]]
        assert found.polished().unique().kind == ["continuum"]


def test_a_single_start_counts_where_it_leads_to_an_optimum_and_not_elsewhere():
    """One start in 3,000 beside a minimum, and many at the maximum in the middle."""
    at = torch.tensor([[0.5, 0.5]]).repeat(2989, 1)
    one, middle = torch.tensor([[-0.5, 0.501]]), torch.zeros(10, 2)
    found = solutions(torch.cat((at, one, middle)), WELLS)
    optima = found.unique()
    assert len(optima) == 2
    assert sorted(optima.hits.tolist()) == [1, 2989]
    assert optima.unconverged == 10 / 3000
    assert len(found.unique(verify=False)) == 2  # the middle, and not the one


def test_places_that_lead_to_the_same_optimum_are_one():
    off = torch.tensor([[0.5, 0.5], [0.52, 0.5], [0.5, 0.47]]).repeat(50, 1)
    found = solutions(off, WELLS)
    assert len(found.unique(verify=False)) == 3
    optima = found.unique()
    assert len(optima) == 1
    assert optima.hits.tolist() == [150]
    torch.testing.assert_close(optima.points[0], torch.tensor([0.5, 0.5]))


def test_a_place_far_from_the_optimum_downhill_of_it_is_none():
    found = solutions(torch.tensor([[0.3, 0.3], [0.5, 0.5]]).repeat(50, 1), WELLS)
    optima = found.unique()
    assert optima.hits.tolist() == [50]
    assert optima.unconverged == 0.5


def test_what_cannot_be_verified_says_so():
    class Rounding(px.Problem):
        space = BOX

        def objective(self, x, tau):
            with torch.no_grad():
                return x.square().sum(-1)

    points = 0.01 * torch.randn(100, 2)
    found = Solutions.of(BOX, points[None], points[None])
    assert not found.unique().verified
    blind = replace(found, values=torch.zeros(1, 100), problem=Rounding(), tau=torch.zeros(1, 0))
    assert not blind.unique().verified
    assert "where this operator leads" in repr(px.unseen(blind))
