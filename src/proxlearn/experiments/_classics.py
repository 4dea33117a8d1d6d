"""Functions of the literature: points x (... d) to values (...)."""

import math

import torch
from torch import Tensor


def himmelblau(x: Tensor) -> Tensor:
    u, v = x.unbind(-1)
    return (u * u + v - 11).square() + (u + v * v - 7).square()


def six_hump_camel(x: Tensor) -> Tensor:
    u, v = x.unbind(-1)
    return (4 - 2.1 * u**2 + u**4 / 3) * u**2 + u * v + (4 * v**2 - 4) * v**2


def three_hump_camel(x: Tensor) -> Tensor:
    u, v = x.unbind(-1)
    return 2 * u**2 - 1.05 * u**4 + u**6 / 6 + u * v + v**2


def branin(x: Tensor) -> Tensor:
    u, v = x.unbind(-1)
    bowl = v - 5.1 / (4 * math.pi**2) * u**2 + 5 / math.pi * u - 6
    return bowl.square() + 10 * (1 - 1 / (8 * math.pi)) * u.cos() + 10


def goldstein_price(x: Tensor) -> Tensor:
    u, v = x.unbind(-1)
    first = 19 - 14 * u + 3 * u**2 - 14 * v + 6 * u * v + 3 * v**2
    second = 18 - 32 * u + 12 * u**2 + 48 * v - 36 * u * v + 27 * v**2
    return (1 + (u + v + 1).square() * first) * (30 + (2 * u - 3 * v).square() * second)


def mccormick(x: Tensor) -> Tensor:
    u, v = x.unbind(-1)
    return (u + v).sin() + (u - v).square() - 1.5 * u + 2.5 * v + 1


def styblinski_tang(x: Tensor) -> Tensor:
    return (x**4 - 16 * x**2 + 5 * x).sum(-1) / 2


def levy(x: Tensor) -> Tensor:
    w = 1 + (x - 1) / 4
    first, last = w[..., :-1], w[..., -1]
    between = ((first - 1).square() * (1 + 10 * (math.pi * first + 1).sin().square())).sum(-1)
    end = (last - 1).square() * (1 + (2 * math.pi * last).sin().square())
    return (math.pi * w[..., 0]).sin().square() + between + end


def rastrigin(x: Tensor) -> Tensor:
    return (x.square() - 10 * (2 * math.pi * x).cos() + 10).sum(-1)


def griewank(x: Tensor) -> Tensor:
    u, v = x.unbind(-1)
    return x.square().sum(-1) / 4000 - u.cos() * (v / math.sqrt(2)).cos() + 1


def ackley(x: Tensor) -> Tensor:
    far = (x.square().mean(-1) + 1e-6).sqrt()
    return -20 * (-0.2 * far).exp() - (2 * math.pi * x).cos().mean(-1).exp()


def bird(x: Tensor) -> Tensor:
    u, v = x.unbind(-1)
    first = u.sin() * (1 - v.cos()).square().exp()
    return first + v.cos() * (1 - u.sin()).square().exp() + (u - v).square()


def holder_table(x: Tensor) -> Tensor:
    u, v = x.unbind(-1)
    return -(u.sin() * v.cos() * (1 - x.norm(dim=-1) / math.pi).abs().exp()).abs()


def deb(x: Tensor) -> Tensor:
    return -(5 * math.pi * x).sin().pow(6).mean(-1)


def michalewicz(x: Tensor) -> Tensor:
    k = torch.arange(1, x.shape[-1] + 1).to(x)
    return -(x.sin() * (k * x.square() / math.pi).sin() ** 20).sum(-1)


def schwefel(x: Tensor) -> Tensor:
    return -(x * x.abs().sqrt().sin()).sum(-1)


def shubert(x: Tensor) -> Tensor:
    k = torch.arange(1, 6).to(x)
    return (k * ((k + 1) * x[..., None] + k).cos()).sum(-1).prod(-1)


def vincent(x: Tensor) -> Tensor:
    return -(10 * x.clamp(min=1e-3).log()).sin().mean(-1)


def easom(x: Tensor) -> Tensor:
    return -x.cos().prod(-1) * (-(x - math.pi).square().sum(-1)).exp()


def rosenbrock(x: Tensor) -> Tensor:
    u, v = x.unbind(-1)
    return (1 - u).square() + 100 * (v - u * u).square()


def keane(x: Tensor) -> Tensor:
    u, v = x.unbind(-1)
    return -((u - v).sin() * (u + v).sin()).square() / (x.square().sum(-1) + 1e-6).sqrt()


def modified_rastrigin(x: Tensor) -> Tensor:
    waves = torch.tensor([3.0, 4.0])
    return (10 + 9 * (2 * math.pi * waves * x).cos()).sum(-1)
