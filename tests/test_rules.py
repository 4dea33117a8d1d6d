"""The rules: losses worked out by hand, and what training with them leads to."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from making import fixed, untrained
from torch import Tensor

import proxlearn as px
from proxlearn.networks.coupling import Coupling
from proxlearn.training.loss import LOST, Gradient, Loss, Proximal

SMALL = Coupling(blocks=1, width=8, shared=8)


def l1(dim: int = 3) -> px.Problem:
    return px.Problem.from_function(
        lambda x: x.abs().sum(-1), px.Box(-2.0, 2.0, dim=dim), name="l1"
    )


def shrink(x: Tensor, threshold: float) -> Tensor:
    """The proximal operator of `|x|_1` at `lam = 1 / threshold`, in closed form."""
    return x.sign() * (x.abs() - threshold).clamp(min=0)


def applied(rule, operator: px.Operator, problem: px.Problem, x: Tensor):
    """A rule on one batch, with the one tau of a single objective: (y, terms, slope)."""
    return applied_to(rule, operator, problem, x, torch.zeros(len(x), 0))


def applied_to(rule, operator: px.Operator, problem: px.Problem, x: Tensor, tau: Tensor):
    """One application of an operator and what a rule makes of it: (y, terms, slope)."""
    y = operator.step(x, operator.prepare(operator.encode(tau)))
    return y, *Loss(rule, problem)(y, x, tau, torch.full((len(x),), rule.lam))


def test_proximal_loss_by_hand():
    """Eq. (3) for y = x/2: |y|_1 + lam/2 |y - x|^2."""
    problem = l1(dim=2)
    operator = fixed(problem, lambda x: x / 2)
    x = torch.tensor([[[1.0, -2.0], [0.0, 0.5]]])
    y, terms, _ = applied(Proximal(3.0), operator, problem, x)
    assert torch.equal(y, x / 2)
    value = (0.5 + 1.0 + 0.0 + 0.25) / 2  # the mean over two points
    pull = 3.0 / 2 * ((0.25 + 1.0) + (0.0 + 0.0625)) / 2
    assert terms["value"].item() == pytest.approx(value)
    assert terms["proximal"].item() == pytest.approx(pull)
    assert terms["loss"].item() == pytest.approx(value + pull)


SQUARE = px.Box(-2.0, 2.0, dim=2)


@pytest.mark.parametrize("space", [SQUARE, SQUARE.opened, px.Planes(), px.Lines()])
@pytest.mark.parametrize("rule", [Proximal(0.7), Gradient(rate=0.05, descents=2)])
def test_the_gradient_is_that_of_the_loss(rule: Proximal | Gradient, space: px.Space):
    """For points inside, beyond the bounds, and lost, where the objective is not asked for; a lam
    for each instance."""
    problem = px.Problem.from_function(lambda x: (x - 0.3).square().sum(-1) ** 1.5, space)
    generator = torch.Generator().manual_seed(0)
    x = space.sample(3, 6, generator=generator)
    y = x + 0.1 * torch.randn(x.shape, generator=generator)
    y[:, 4], y[:, 5] = 1.1 * y[:, 4], 1e4 * y[:, 5]
    tau, lam = torch.zeros(3, 0), torch.tensor([0.2, 1.0, 5.0])
    terms, slope = rule.slope(problem, y, x, tau, lam, 1 / 18)

    y.requires_grad_()
    if isinstance(rule, Proximal):
        seen = torch.where(space.contains(y, LOST)[..., None], y, space.project(y.detach()))
        values = problem.objective(space.retract(seen) if space.closed else seen, tau)
        expected = (values + lam[:, None] / 2 * space.squared_distance(x, y)).mean()
    else:
        target = x
        for _ in range(rule.descents):
            target = target.detach().requires_grad_()
            (down,) = torch.autograd.grad(problem.objective(target, tau).sum(), target)
            longest = rule.longest * space.diameter
            step = rule.rate * down
            step = step * (longest / step.norm(dim=-1, keepdim=True).clamp(min=longest))
            target = space.retract(target - step)
        expected = space.squared_distance(y, target.detach()).mean()
    (gradient,) = torch.autograd.grad(expected, y)
    torch.testing.assert_close(terms["loss"], expected.detach())
    torch.testing.assert_close(slope, gradient)


def test_proximal_loss_uses_the_spaces_own_distance():
    """A plane and its mirror image are one: moving between them costs nothing."""
    space = px.Planes()
    problem = px.Problem.from_function(lambda x: x[..., 3], space)
    operator = fixed(problem, lambda x: -x)
    _, terms, _ = applied(Proximal(10.0), operator, problem, space.sample(1, 4))
    assert terms["proximal"].item() == 0


@pytest.mark.parametrize("noisy", [False, True])
def test_points_on_steep_slopes_and_in_flat_valleys_count_alike(noisy: bool):
    """Gradients keep their directions and get the usual length, except where there is next to none;
    noisy ones are cut to ten times the usual length, so that means stay means."""
    steepness = torch.ones(1, 50)
    steepness[0, 7:10] = torch.tensor([1e6, 1e-2, 1e-9])

    class Steep(px.Problem):
        space = px.Box(-1.0, 1.0, dim=2)

        def objective(self, x, tau):
            return steepness * x.square().sum(-1)

    class Shaking(Steep):
        def refresh(self, tau, generator):
            return tau

    problem, x = Shaking() if noisy else Steep(), torch.full((1, 50, 2), 0.5)
    _, _, slope = applied(Proximal(0.0), fixed(problem, lambda x: x), problem, x)
    plain = (2 * steepness[..., None] * x / 50)[0]
    usual = plain.norm(dim=-1).log().mean().exp()
    expected = plain if noisy else plain * usual / plain.norm(dim=-1, keepdim=True)
    if noisy:
        expected[7] *= 10 * usual / plain[7].norm()
    normal = torch.arange(50) != 9
    torch.testing.assert_close(slope[0, normal], expected[normal], rtol=1e-4, atol=0)
    assert slope[0, 9].norm() < 1e-3 * usual


@pytest.mark.parametrize("noisy", [False, True])
def test_points_without_a_slope_say_nothing_of_the_usual_length(noisy: bool):
    """Such as those at rest in an image without boxes: half of them here."""

    class Half(px.Problem):
        space, parameters = px.Box(-2.0, 2.0, dim=2), px.Box(0.0, 1.0, dim=1)

        def objective(self, x, tau):
            return torch.where(tau > 0, x.square().sum(-1), 0 * x[..., 0])

    class Shaking(Half):
        def refresh(self, tau, generator):
            return tau

    problem, x = Shaking() if noisy else Half(), torch.full((2, 50, 2), 0.5)
    tau = torch.tensor([[0.0], [1.0]])
    _, _, slope = applied_to(Proximal(0.0), fixed(problem, lambda x: x), problem, x, tau)
    assert (slope[0] == 0).all()
    torch.testing.assert_close(slope[1], 2 * x[1] / 100)
    _, _, none = applied_to(Proximal(0.0), fixed(problem, lambda x: x), problem, x[:1], tau[:1])
    assert (none == 0).all()


def test_gradient_loss_is_the_regression_on_q_explicit_descent_steps(wells: px.Problem):
    rule = Gradient(rate=0.01, descents=4, longest=1.0)
    tau = torch.tensor([[1.0, 0.7], [0.6, 1.2]])
    x = wells.space.sample(2, 5, generator=torch.Generator().manual_seed(0))
    operator = fixed(wells, lambda x: x + 0.1)
    y, terms, _ = applied_to(rule, operator, wells, x, tau)

    target = x.clone()
    for _ in range(4):  # the gradient of sum_k (x_k^2 - tau_k^2)^2, by hand
        target = target - 0.01 * 4 * target * (target.square() - tau[:, None].square())
    torch.testing.assert_close(y, x + 0.1)
    expected = (x + 0.1 - target).square().sum(-1).mean()
    assert terms["loss"].item() == pytest.approx(expected.item(), rel=1e-4)


def test_gradient_targets_take_no_step_longer_than_allowed():
    steep = px.Problem.from_function(lambda x: 1e6 * x.square().sum(-1), px.Box(-1.0, 1.0, dim=2))
    rule = Gradient(rate=1.0, descents=3, longest=0.05)
    operator = fixed(steep, lambda x: x)
    _, terms, _ = applied(rule, operator, steep, steep.space.sample(1, 50))
    assert 0 < terms["loss"].item() <= (3 * 0.05 * steep.space.diameter) ** 2


def test_gradient_targets_stay_on_the_manifold():
    space = px.Sphere(3)
    problem = px.Problem.from_function(lambda x: x[..., 0], space)
    rule = Gradient(rate=0.05, descents=5)
    x = space.sample(1, 20, generator=torch.Generator().manual_seed(0))
    target = x.clone()
    for _ in range(5):
        target = torch.nn.functional.normalize(target - torch.tensor([0.05, 0.0, 0.0]), dim=-1)
    operator = fixed(problem, lambda x: target)
    _, terms, _ = applied(rule, operator, problem, x)
    assert terms["loss"].item() == pytest.approx(0.0, abs=1e-10)


@given(seed=st.integers(0, 10_000), lam=st.floats(0.1, 20.0), size=st.floats(1e-3, 1.0))
def test_the_exact_proximal_step_does_better_than_standing_still_or_any_other(
    seed: int, lam: float, size: float
):
    """The rule's loss is smallest at the proximal operator, here known in closed form."""
    problem, rule = l1(), Proximal(lam)
    x = problem.space.sample(1, 16, generator=torch.Generator().manual_seed(seed))
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))

    def loss(step) -> float:
        return applied(rule, fixed(problem, step), problem, x)[1]["loss"].item()

    exact = loss(lambda x: shrink(x, 1 / lam))
    assert exact <= loss(lambda x: x) + 1e-5
    assert exact <= loss(lambda x: shrink(x, 1 / lam) + size * noise) + 1e-5


def test_losses_reach_the_weights_but_targets_do_not(wells: px.Problem):
    tau = torch.tensor([[1.0, 0.7]])
    for rule in (Proximal(1.0), Gradient(0.01)):
        operator = untrained(wells.space, wells.instances, SMALL)
        x = wells.space.sample(1, 5, generator=torch.Generator().manual_seed(0))
        y, terms, slope = applied_to(rule, operator, wells, x, tau)
        y.backward(slope)
        assert not any(each.requires_grad for each in (slope, *terms.values()))
        slopes = operator.network.blocks[0].heads.bias.grad
        assert slopes is not None
        assert slopes.abs().max() > 0
        assert x.grad is None
        assert not x.requires_grad


@pytest.mark.parametrize(
    ("sampling", "steps", "bound"), [("pool", 1000, 1e-3), ("unfold", 300, 0.03)]
)
def test_training_approaches_the_true_proximal_operator(sampling: str, steps: int, bound: float):
    """App. D.2 in small: |x|_1 with lam = 2 has the shrinkage by 1/2 as its proximal operator.

    Standing still would have an MSE/d of 0.2. Unfolding costs three applications a step, so it
    gets fewer steps and is held to less.
    """
    problem = l1(dim=2)
    operator = px.learn(
        problem,
        steps=steps,
        lam=2.0,
        rate=1e-2,
        sampling=sampling,
        depth=2,
        applications=1,
        points=64,
        instances=6,
        architecture=Coupling(blocks=2, width=32, shared=32),
        device="cpu",
        progress=False,
    )
    x = problem.space.sample(1, 2000, generator=torch.Generator().manual_seed(1))
    y = operator.solve(starts=x, steps=1).points
    error = (y - shrink(x, 0.5)).square().mean().item()
    assert error < bound


def test_gradient_training_approaches_descent(wells: px.Problem, tiny: dict):
    tiny |= {"architecture": Coupling(1, 32, 32, gated=False), "rate": 5e-3, "lam": None}
    operator = px.learn(wells, steps=600, rule="gradient", **tiny)
    rule = operator.provenance["rule"]
    tau = torch.tensor([[1.0, 0.8]])
    x = wells.space.sample(1, 200, generator=torch.Generator().manual_seed(1))
    exact = fixed(wells, lambda x: x)
    still = applied_to(Gradient(**rule), exact, wells, x, tau)[1]["loss"]
    learned = applied_to(Gradient(**rule), operator, wells, x, tau)[1]["loss"]
    assert learned < 0.2 * still


def test_a_point_that_is_thrown_far_away_is_only_pulled_back():
    """Its objective may overflow; what is not a number still shows."""
    problem = px.Problem.from_function(lambda x: x.pow(8).sum(-1), px.Box(-1.0, 1.0, dim=2))
    x = torch.full((1, 3, 2), 0.5)
    far = torch.tensor([1.0, 1e6, torch.nan])[:, None]
    rule, some = Proximal(1.0), x[:, :2]
    _, terms, slope = applied(rule, fixed(problem, lambda x: x * far[:2]), problem, some)
    assert terms["loss"].isfinite()
    assert slope.isfinite().all()
    assert (slope[0, 1] > 0).all()
    assert applied(rule, fixed(problem, lambda x: x * far), problem, x)[1]["loss"].isnan()
