"""The optimizer: orthogonal steps for matrices, Adam's for the rest, groups of their own."""

import copy

import pytest
import torch
from torch import nn

from proxlearn.training.optimizer import (
    CLIP,
    ENTRIES,
    MOMENTUM,
    Optimizer,
    keep_books,
    orthogonal,
    shorten,
)


def module() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 48), nn.Linear(48, 20), nn.Linear(20, 48), nn.Linear(48, 3))


def filled(optimizer: Optimizer, seed: int = 1) -> None:
    """Gradients as a backward pass leaves them."""
    generator = torch.Generator().manual_seed(seed)
    for weight in optimizer.weights:
        weight.grad = torch.randn(weight.shape, generator=generator)
    optimizer.gather()


def test_singular_values_come_near_one():
    matrices = torch.randn(5, 24, 60, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonal(matrices))
    assert values.min() > 0.6
    assert values.max() < 1.3
    assert torch.equal(orthogonal(torch.zeros(2, 16, 16)), torch.zeros(2, 16, 16))


def test_an_orthogonal_step_keeps_the_singular_vectors():
    """It is U V^T of the gradient's U S V^T, but for singular values near 1 instead of 1."""
    gradient = torch.randn(20, 40, generator=torch.Generator().manual_seed(0))
    u, _, vh = torch.linalg.svd(gradient, full_matrices=False)
    inner = u.mT @ orthogonal(gradient[None])[0] @ vh.mT
    assert (inner - inner.diag().diag()).abs().max() < 1e-4


@pytest.mark.parametrize("sides", [(32, 48), (48, 32), (32, 32)])
def test_a_matrix_moves_against_its_momentum_made_orthogonal(sides):
    layer = nn.Linear(sides[1], sides[0], bias=False)
    before = layer.weight.detach().clone()
    optimizer = Optimizer(layer, 0.1)
    filled(optimizer)
    optimizer.step()
    gradient = optimizer.gradient.view(sides)
    ahead = gradient * (1 - MOMENTUM) + MOMENTUM * (1 - MOMENTUM) * gradient
    tall = sides[0] > sides[1]
    expected = orthogonal(ahead.mT[None])[0].mT if tall else orthogonal(ahead[None])[0]
    moved = 0.1 * ENTRIES * max(sides) ** 0.5 * expected
    torch.testing.assert_close(layer.weight.detach(), before - moved)


def test_shorter_matrices_are_padded_in_a_batch_and_move_as_alone():
    layers = nn.Sequential(nn.Linear(64, 32, bias=False), nn.Linear(32, 32, bias=False))
    alone = Optimizer(copy.deepcopy(layers[1]), 0.1)
    both = Optimizer(layers, 0.1)
    assert [len(runs) for runs in both.batches] == [2]
    alone.gradient.fill_(0).view(32, 32).copy_(torch.randn(32, 32))
    both.gradient[-32 * 32 :].copy_(alone.gradient)
    alone.step()
    both.step()
    torch.testing.assert_close(both.values[-32 * 32 :], alone.values)


def test_matrices_of_one_size_are_one_batch_and_vectors_go_by_adam():
    model = module()
    optimizer = Optimizer(model, 0.1)
    batches = [[run.alike.sides for run in runs] for runs in optimizer.batches]
    assert batches == [[(32, 48)], [(20, 48), (20, 48)]]  # the last is tall, the one before wide
    assert [len(adam.mean) for adam in optimizer.adams] == [48 + 20 + 48 + 3 * 48 + 3]
    before = [weight.detach().clone() for weight in model.parameters()]
    filled(optimizer)
    optimizer.step()
    assert all((old != new).all() for old, new in zip(before, model.parameters()))
    bias = model[0].bias
    expected = torch.full_like(bias, 0.1)  # Adam's first step is as long as the rate
    torch.testing.assert_close((before[1] - bias).abs(), expected)


def test_groups_have_rates_and_decay_of_their_own_and_frozen_weights_stay():
    model = module()
    model[0].rate_factor = 0.5
    model[1].weight_decay = 0.3
    model[2].requires_grad_(False)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    plain = module()
    for each in (model, plain):
        optimizer = Optimizer(each, 0.1)
        generator = torch.Generator().manual_seed(1)
        for weight in each.parameters():
            weight.grad = torch.randn(weight.shape, generator=generator)
        optimizer.gather()
        optimizer.step()
    new, usual = dict(model.named_parameters()), dict(plain.named_parameters())
    for name, old in before.items():
        if name.startswith("0"):
            torch.testing.assert_close(new[name] - old, (usual[name] - old) / 2)
        elif name.startswith("1"):
            torch.testing.assert_close(new[name], usual[name] - 0.1 * 0.3 * old)
        elif name.startswith("2"):
            assert torch.equal(new[name], old)
        else:
            torch.testing.assert_close(new[name], usual[name])


def test_a_state_that_is_restored_goes_on_alike():
    first, second = Optimizer(module(), 0.1), Optimizer(module(), 0.1)
    for seed in (1, 2):
        filled(first, seed)
        first.step()
    second.values.copy_(first.values)
    second.restore(copy.deepcopy(first.state()))
    for optimizer in (first, second):
        optimizer.set_rate(0.05)
        filled(optimizer, 3)
        optimizer.step()
    assert torch.equal(first.values, second.values)


def test_shared_weights_are_updated_once():
    layer = nn.Linear(32, 32)
    optimizer = Optimizer(nn.Sequential(layer, nn.SiLU(), layer), 0.1)
    assert len(optimizer.values) == 32 * 32 + 32


def test_a_tiny_gradient_is_made_orthogonal_too():
    """Its squares are 0 in single precision."""
    tiny = 1e-25 * torch.randn(2, 24, 60, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(orthogonal(tiny), orthogonal(tiny * 1e20))


def test_a_long_gradient_is_shortened_and_one_that_overflows_is_not_fine():
    usual, smooth, count, fine = torch.tensor(1.0), torch.ones(1), torch.zeros(()), torch.zeros(())

    def take(gradient: torch.Tensor) -> None:
        lengths = shorten(gradient, usual)
        keep_books(*lengths, torch.ones(1), usual, smooth, count, fine)

    long = torch.tensor([30.0, 40.0])
    take(long)
    torch.testing.assert_close(long, torch.tensor([0.6, 0.8]) * CLIP)
    assert fine == 1
    take(torch.tensor([1e30, 1e30]))
    take(torch.tensor([3.0, 4.0]))
    assert fine == 1  # and so the next report ends the training with an error
