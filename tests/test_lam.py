"""One operator for many proximal weights."""

import warnings
from pathlib import Path

import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.errors import InputError, RangeWarning
from proxlearn.networks.coupling import Coupling
from proxlearn.training.sampling import Pool

LAMS = (1.0, 8.0)


@pytest.fixture(scope="module")
def l1() -> px.Problem:
    return px.Problem.from_function(lambda x: x.abs().sum(-1), px.Box(-2.0, 2.0, dim=2), name="l1")


@pytest.fixture(scope="module")
def operator(l1: px.Problem) -> px.Operator:
    """The proximal operators of |x|_1 for every lam from 1 to 8."""
    return px.learn(
        l1,
        steps=1500,
        lam=LAMS,
        rate=3e-3,
        depth=2,
        applications=1,
        points=32,
        instances=18,
        architecture=Coupling(blocks=2, width=32, shared=32),
        device="cpu",
        progress=False,
    )


def shrink(x: Tensor, lam: float) -> Tensor:
    """The proximal operator in closed form."""
    return x.sign() * (x.abs() - 1 / lam).clamp(min=0)


def starts(count: int = 500) -> Tensor:
    return px.Box(-2.0, 2.0, dim=2).sample(1, count, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("lam", [1.2, 2.0, 4.0, 7.0])
def test_each_lam_of_the_range_gives_its_own_proximal_operator(operator: px.Operator, lam: float):
    x = starts()
    y = operator.solve(starts=x, steps=1, lam=lam).points
    assert (y - shrink(x, lam)).square().mean() < 2e-3
    others = [other for other in (1.2, 2.0, 4.0, 7.0) if other != lam]
    for other in others:  # nearer to its own than to any other
        assert (y - shrink(x, lam)).square().mean() < (y - shrink(x, other)).square().mean()


def test_several_lam_are_a_schedule_whose_last_stays(operator: px.Operator):
    x = starts(20)
    once = operator.solve(starts=x, steps=1, lam=4.0).points
    twice = operator.solve(starts=once, steps=2, lam=2.0).points
    torch.testing.assert_close(operator.solve(starts=x, steps=3, lam=[4.0, 2.0]).points, twice)


def test_the_usual_lam_is_in_the_middle_of_the_range(operator: px.Operator):
    assert operator.lam == pytest.approx((LAMS[0] * LAMS[1]) ** 0.5)
    x = starts(20)
    asked = operator.solve(starts=x, steps=1, lam=operator.lam).points
    assert torch.equal(operator.solve(starts=x, steps=1).points, asked)


def test_a_problems_own_lam_is_the_usual_one_where_it_is_in_the_range(tiny: dict):
    operator = px.learn(px.problem("conic"), steps=1, **tiny | {"lam": (0.1, 10.0)})
    assert operator.lam == px.problem("conic").lam


def test_a_file_remembers_the_range(operator: px.Operator, tmp_path: Path):
    loaded = px.load(operator.save(tmp_path / "l1.safetensors"), "cpu")
    assert loaded.lams == LAMS
    x = starts(20)
    for lam in (1.5, 6.0):
        expected = operator.solve(starts=x, lam=lam).points
        assert torch.equal(loaded.solve(starts=x, lam=lam).points, expected)


def test_lams_are_drawn_over_the_whole_range(wells: px.Problem):
    pool = Pool(wells, 600, 1, 2, (0.1, 10.0), 0, torch.device("cpu"))
    lam = pool.lam
    assert lam.min() > 0.1
    assert lam.max() < 10.0
    assert 0.45 < (lam < 1).float().mean() < 0.55  # every order of magnitude is as likely


def test_an_operator_for_one_lam_refuses_another(wells: px.Problem, tiny: dict):
    operator = px.learn(wells, steps=1, **tiny)
    assert operator.solve([1.0, 1.0], starts=3, lam=1.0).points.shape == (1, 3, 2)
    with pytest.raises(InputError, match=r"trained for lam = 1 alone"):
        operator.solve([1.0, 1.0], starts=3, lam=2.0)


def test_a_lam_outside_the_range_is_a_guess(operator: px.Operator):
    with pytest.warns(RangeWarning, match=r"outside the trained range \[1, 8\]"):
        operator.solve(starts=starts(3), lam=20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        operator.solve(starts=starts(3), lam=8.0)


@pytest.mark.parametrize("lam", [0.0, -1.0, [], [1.0, -2.0]])
def test_a_lam_to_solve_with_that_is_none(operator: px.Operator, lam):
    with pytest.raises(InputError, match="lam must be a positive number"):
        operator.solve(starts=starts(3), lam=lam)


@pytest.mark.parametrize(
    "lam", [(2.0, 1.0), (0.0, 1.0), (1.0,), (1.0, 2.0, 3.0), (1.0, float("nan"))]
)
def test_a_range_that_is_none(wells: px.Problem, lam):
    with pytest.raises(InputError, match="0 < low < high"):
        px.learn(wells, steps=1, lam=lam)
