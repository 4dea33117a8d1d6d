"""Proximal operators in closed form, against a fine grid search."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from proxlearn.problems.sparse import thresholds

GRID = torch.arange(-30_000, 30_001).double() / 10_000  # 0 is among them, exactly


def mcp_penalty(y: Tensor, tau: float) -> Tensor:
    near = y.abs().clamp(max=1 / (2 * tau))
    return near - tau * near.square()


# A name, the operator (x, weight) and its penalty.
CASES: dict[str, tuple[Callable, Callable]] = {
    "soft": (thresholds.soft, lambda y: y.abs()),
    "half": (thresholds.half, lambda y: y.abs() ** 0.5),
    **{
        f"power {p}": (lambda x, w, p=p: thresholds.power(x, w, p), lambda y, p=p: y.abs() ** p)
        for p in (0.1, 0.2, 0.35, 0.5, 2 / 3, 0.9, 1.0)
    },
    **{
        f"mcp {t}": (lambda x, w, t=t: thresholds.mcp(x, w, t), lambda y, t=t: mcp_penalty(y, t))
        for t in (0.25, 0.5, 1.0, 2.0)
    },
}
every_case = pytest.mark.parametrize("case", CASES)


def loss(penalty: Callable, y: Tensor, x: Tensor, weight: float) -> Tensor:
    return (y - x).square() / 2 + weight * penalty(y)


@every_case
@pytest.mark.parametrize("weight", [0.0, 1e-3, 0.04, 0.3, 1.0])
def test_threshold_is_the_best_of_a_fine_grid(case: str, weight: float):
    operator, penalty = CASES[case]
    x = torch.linspace(-2.5, 2.5, 233, dtype=torch.double)
    y = operator(x, weight)
    best, where = loss(penalty, GRID, x[:, None], weight).min(1)
    ours = loss(penalty, y, x, weight)
    assert (ours <= best + 1e-12).all()  # no grid point is better
    apart = (y - GRID[where]).abs() > 2e-4
    assert (ours[apart] >= best[apart] - 1e-6).all()  # another place only where two are as good
    assert apart.sum() <= 2


@every_case
@given(x=st.floats(-2.5, 2.5), weight=st.floats(0.0, 2.0))
def test_threshold_beats_every_grid_point(case: str, x: float, weight: float):
    operator, penalty = CASES[case]
    at = torch.tensor([x], dtype=torch.double)
    y = operator(at, weight)
    # What rounding at a threshold may choose wrongly is as good up to rounding.
    assert loss(penalty, y, at, weight) <= loss(penalty, GRID, at, weight).min() + 1e-9
    assert y.abs() <= at.abs() + 1e-12  # never away from 0,
    assert (y * at >= 0).all()  # nor across it


@pytest.mark.parametrize(("p", "closed"), [(0.5, "half"), (1.0, "soft")])
@given(x=st.floats(-4.0, 4.0), weight=st.floats(0.001, 1.0))
def test_the_general_power_agrees_with_the_closed_forms(p: float, closed: str, x, weight):
    at = torch.tensor([x], dtype=torch.double)
    ours, theirs = thresholds.power(at, weight, p), CASES[closed][0](at, weight)
    tie = (ours == 0) != (theirs == 0)  # at the threshold itself, either is right
    assert tie or torch.allclose(ours, theirs, rtol=1e-6, atol=1e-9)


def test_thresholds_work_in_single_precision_and_broadcast():
    x = torch.linspace(-2, 2, 41).expand(3, 5, 41)
    weight, p = torch.tensor([0.0, 0.1, 1.0])[:, None, None], torch.tensor([0.2, 0.5, 1.0])
    p = p[:, None, None]
    for found, exact in (
        (thresholds.power(x, weight, p), thresholds.power(x.double(), weight.double(), p.double())),
        (thresholds.half(x, weight), thresholds.half(x.double(), weight.double())),
        (thresholds.mcp(x, weight, p), thresholds.mcp(x.double(), weight.double(), p.double())),
    ):
        assert found.dtype == torch.float32
        assert found.shape == (3, 5, 41)
        torch.testing.assert_close(found, exact.float(), rtol=1e-4, atol=1e-5)
    assert torch.equal(thresholds.power(x, 0.0, 0.5), x)


@pytest.mark.parametrize("x", [0.0, 1e-40, 1e-25, 1e-10, 3.0])
@pytest.mark.parametrize("weight", [0.0, 1e-40, 1e-30, 1e-12])
def test_next_to_no_weight_leaves_every_number_as_it_is(x: float, weight: float):
    at = torch.tensor([-x, x])
    powers = [thresholds.power(at, weight, p) for p in (0.01, 0.2, 0.5, 1.0)]
    for found in (thresholds.half(at, weight), *powers):
        # A weight w > 0 has a threshold, at most about w^(1/2) here.
        torch.testing.assert_close(found, at, rtol=1e-5, atol=2 * weight**0.5)
