"""What every space promises, whichever it is."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kstest
from torch import Tensor

import proxlearn as px
from proxlearn import spaces
from proxlearn.spaces import Space, space_from

SPACES = {
    "box": px.Box(-5.0, 5.0, dim=2),
    "open box": px.Box(-5.0, 5.0, dim=2, open=True),
    "uneven box": px.Box((-1.0, 0.0, 3.0), (2.0, 0.1, 50.0)),
    "circles": px.Circles(3),
    "signs": spaces.Signs(4),
    "sphere": px.Sphere(3),
    "line's sphere": px.Sphere(1),
    "planes": px.Planes(0.7),
    "far planes": px.Planes(3.0),
    "lines": px.Lines(0.7),
    "far lines": px.Lines(3.0),
    "product": px.Product(px.Sphere(3), px.Box(0.0, 2.0, dim=1), px.Circles(2)),
    "nested product": px.Product(px.Planes(), px.Product(px.Box(-1.0, 1.0, dim=1), px.Sphere(2))),
}
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())


def drawn(space: Space, *shape: int, seed: int = 0) -> Tensor:
    return space.sample(*shape, generator=torch.Generator().manual_seed(seed))


def points(space: Space, count: int = 4) -> st.SearchStrategy[Tensor]:
    """Any points of the embedding, inside or not, zeros and all."""
    numbers = st.floats(-10, 10, width=32)
    return arrays(np.float32, (count, space.dim), elements=numbers).map(torch.from_numpy)


def test_every_kind_of_space_is_under_this_contract():
    kinds = {each for each in vars(spaces).values() if isinstance(each, type)}
    concrete = {each for each in kinds if issubclass(each, Space)} - {Space}
    assert concrete == {type(space) for space in SPACES.values()}


@every_space
def test_samples_are_inside_and_shaped(space: Space):
    x = drawn(space, 3, 500)
    assert x.shape == (3, 500, space.dim)
    assert x.isfinite().all()
    assert space.contains(x, edge=1e-5).all()


@every_space
def test_sampling_is_seeded(space: Space):
    assert torch.equal(drawn(space, 20, seed=1), drawn(space, 20, seed=1))
    assert not torch.equal(drawn(space, 20, seed=1), drawn(space, 20, seed=2))


@every_space
def test_samples_are_on_the_device_asked_for(space: Space):
    assert space.sample(2, 3, device="meta").device.type == "meta"
    if torch.cuda.is_available():
        assert space.sample(2, 3, device="cuda").is_cuda


@every_space
@given(data=st.data())
def test_projection_lands_inside_and_is_idempotent(space: Space, data: st.DataObject):
    once = space.project(data.draw(points(space)))
    assert space.contains(once, edge=1e-5).all()
    torch.testing.assert_close(space.project(once), once)


@every_space
@given(data=st.data())
def test_projection_is_the_nearest_point(space: Space, data: st.DataObject):
    x = data.draw(points(space))
    chosen = space.squared_distance(x, space.project(x)).sqrt()
    others = space.pairwise(x, drawn(space, 200))
    assert (chosen[:, None] <= others + 1e-3).all()


@every_space
@given(data=st.data())
def test_retraction_is_idempotent_and_leaves_inner_points_alone(space: Space, data: st.DataObject):
    once = space.retract(data.draw(points(space)))
    torch.testing.assert_close(space.retract(once), once)
    inner = drawn(space, 50)
    torch.testing.assert_close(space.retract(inner), inner)


def test_retraction_shows_what_left_an_open_box_and_keeps_to_all_else():
    outside = torch.tensor([[7.0, 0.0]])
    box, sphere = px.Box(-5.0, 5.0, dim=2), px.Sphere(2)
    assert torch.equal(box.retract(outside), torch.tensor([[5.0, 0.0]]))
    assert torch.equal(box.opened.retract(outside), outside)
    assert not box.opened.contains(outside).any()
    assert sphere.contains(sphere.retract(outside)).all()


@every_space
def test_a_space_without_its_bounds_is_the_same_in_all_else(space: Space):
    opened = space.opened
    assert opened.opened == opened
    assert not opened.closed
    assert space.closed == (space != opened)
    x = drawn(space, 20)
    assert torch.equal(drawn(opened, 20), x)
    assert torch.equal(opened.to_unit(x), space.to_unit(x))
    far = x + 100
    assert torch.equal(opened.contains(space.retract(far)), space.contains(space.retract(far)))


def test_a_box_of_a_file_that_does_not_say_is_open():
    written = px.Box(-1.0, 1.0, dim=2).describe()
    assert spaces.space_from(written) == px.Box(-1.0, 1.0, dim=2)
    del written["open"]  # as in earlier versions, where points left every box
    assert spaces.space_from(written) == px.Box(-1.0, 1.0, dim=2, open=True)


@every_space
def test_points_far_away_and_non_numbers_are_outside(space: Space):
    x = drawn(space, 10)
    assert not space.contains(x + 100).any()
    assert not space.contains(x * torch.nan).any()
    assert not space.contains(x + torch.inf).any()


@every_space
@given(data=st.data())
def test_distance_is_symmetric_and_zero_on_itself(space: Space, data: st.DataObject):
    x, y = data.draw(points(space)), data.draw(points(space))
    torch.testing.assert_close(space.squared_distance(x, y), space.squared_distance(y, x))
    assert (space.squared_distance(x, y) >= 0).all()
    assert (space.squared_distance(x, x) == 0).all()


@every_space
@given(data=st.data())
def test_pairwise_agrees_with_squared_distance(space: Space, data: st.DataObject):
    x, y = data.draw(points(space, 4)), data.draw(points(space, 3))
    expected = space.squared_distance(x[:, None].expand(4, 3, -1), y[None].expand(4, 3, -1))
    torch.testing.assert_close(space.pairwise(x, y).square(), expected, rtol=1e-4, atol=1e-4)
    batched = space.pairwise(torch.stack((x, -x)), torch.stack((y, -y)))
    torch.testing.assert_close(batched[0], space.pairwise(x, y))


@every_space
def test_distance_of_a_standstill_has_a_gradient(space: Space):
    """A network that starts at the identity has y = x: the proximal term must not be NaN there."""
    x = drawn(space, 5)
    y = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(space.squared_distance(x, space.retract(y)).sum(), y)
    assert slope.isfinite().all()


@every_space
def test_diameter_bounds_all_distances_and_is_not_wildly_large(space: Space):
    x = drawn(space, 2000)
    largest = space.pairwise(x, x).max().item()
    assert largest <= space.diameter * (1 + 1e-5)
    assert space.diameter < 2 * largest


@every_space
@given(data=st.data())
def test_unit_coordinates_are_invertible(space: Space, data: st.DataObject):
    x = data.draw(points(space))
    torch.testing.assert_close(space.from_unit(space.to_unit(x)), x, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(space.to_unit(space.from_unit(x)), x, rtol=1e-4, atol=1e-2)


def test_unit_coordinates_of_a_box_fill_the_unit_box():
    space = SPACES["uneven box"]
    unit = space.to_unit(drawn(space, 1000))
    torch.testing.assert_close(unit.amin(0), -torch.ones(3), rtol=0, atol=0.02)
    torch.testing.assert_close(unit.amax(0), torch.ones(3), rtol=0, atol=0.02)


@every_space
def test_describes_itself(space: Space):
    assert space_from(json.loads(json.dumps(space.describe()))) == space


@pytest.mark.parametrize(
    "space", [px.Sphere(3), px.Box(-1.0, 1.0, dim=3), px.Planes(1.0), px.Lines(1.0)]
)
def test_samples_are_uniform(space: Space):
    """On a sphere of three dimensions every coordinate is uniform (Archimedes)."""
    for coordinate in drawn(space, 2000).T[:3]:
        assert kstest(coordinate.numpy(), "uniform", (-1, 2)).pvalue > 1e-3


def test_angles_on_circles_are_uniform():
    pairs = drawn(px.Circles(2), 2000).unflatten(-1, (2, 2))
    for angle in torch.atan2(pairs[..., 1], pairs[..., 0]).T:
        assert kstest(angle.numpy(), "uniform", (-math.pi, 2 * math.pi)).pvalue > 1e-3


def test_a_plane_and_its_mirror_image_are_one():
    space, plane = px.Planes(1.0), torch.tensor([[0.6, 0.0, 0.8, 0.3]])
    assert space.squared_distance(plane, -plane).item() == 0
    assert space.pairwise(plane, -plane).item() == 0
    torch.testing.assert_close(space.project(-plane), plane)


def test_a_line_has_no_direction():
    space, line = px.Lines(1.0), torch.tensor([[0.6, 0.0, 0.8, 0.0, 0.3, 0.0]])
    same = line * torch.tensor([-1.0, -1, -1, 1, 1, 1])
    assert space.squared_distance(line, same).item() == 0
    assert space.pairwise(line, same).item() == 0
    other = line * torch.tensor([1.0, 1, 1, -1, -1, -1])
    assert space.pairwise(line, other).item() == pytest.approx(0.6)


@pytest.mark.parametrize("reach", [0.3, 1.0])
def test_lines_are_projected_as_a_search_over_all_directions_finds(reach: float):
    space, x = (
        px.Lines(reach),
        torch.randn(40, 6, generator=torch.Generator().manual_seed(3)).double(),
    )
    every = px.Sphere(3).sample(200_000, generator=torch.Generator().manual_seed(4)).double()
    for one, found in zip(x, space.project(x)):
        point = one[3:]
        beside = point - (every @ point)[:, None] * every
        beside *= (reach / beside.norm(dim=1, keepdim=True)).clamp(max=1.0)
        lines = torch.cat((every, beside), 1)
        best = space.squared_distance(one.expand_as(lines), lines).min()
        chosen = space.squared_distance(one, found)
        assert best - 1e-3 < chosen <= best + 1e-9


@every_space
def test_tangent_directions_are_orthonormal_and_stay_in_the_space(space: Space):
    x = drawn(space, 50).double()
    x, basis = space.project(x), space.tangent(space.project(x))
    assert basis.shape[:2] == (50, space.dim)
    torch.testing.assert_close(
        basis.mT @ basis, torch.eye(basis.shape[-1], dtype=x.dtype).expand(50, -1, -1)
    )
    for direction in basis.unbind(-1):  # to first order: off by the square of the step
        step = space.retract(x + 1e-4 * direction) - (x + 1e-4 * direction)
        assert step.norm(dim=-1).max() < 1e-7


def test_tangent_directions_are_all_there_are():
    sizes = {name: space.tangent(drawn(space, 1)).shape[-1] for name, space in SPACES.items()}
    assert sizes["sphere"] == 2
    assert sizes["line's sphere"] == 0
    assert sizes["circles"] == 3
    assert sizes["planes"] == 3
    assert sizes["lines"] == 4
    assert sizes["product"] == 2 + 1 + 2


@every_space
def test_bounds_are_those_of_the_projection(space: Space):
    low, high = (torch.tensor(each) for each in space.bounds)
    assert low.shape == high.shape == (space.dim,)
    x = drawn(space, 100)
    assert ((x >= low) & (x <= high)).all()
    for bound, side in ((low, -1), (high, 1)):
        for k in bound.isfinite().nonzero().flatten().tolist():
            out = x.clone()
            out[:, k] = bound[k] + side
            assert (space.project(out)[:, k] == bound[k]).all()
