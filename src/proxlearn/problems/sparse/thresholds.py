"""Proximal operators in closed form: `argmin_y |y - x|^2 / 2 + weight * penalty(y)` by coordinates.

x and the other arguments may be tensors of any shapes that go together. Where two minimizers tie,
at the threshold itself, it is 0 that is taken.
"""

import math

import torch
from torch import Tensor

NEWTON = 5  # steps to the root: they double the digits, from a first error of a few percent
TINY = 1e-18  # in place of a zero that would be divided by; its square is one over a finite number


def soft(x: Tensor, weight: Tensor | float) -> Tensor:
    """Of `|y|`: every coordinate moves towards 0 by at most the weight."""
    return x.sign() * (x.abs() - weight).clamp(min=0.0)


def half(x: Tensor, weight: Tensor | float) -> Tensor:
    """Of `|y|^(1/2)`: the half threshold, a root of a cubic by its cosine formula."""
    weight = torch.as_tensor(weight, dtype=x.dtype, device=x.device)
    size = x.abs()
    threshold = 1.5 * weight ** (2 / 3)
    cosine = weight / 4 * (size / 3).clamp(min=TINY) ** -1.5
    angle = cosine.clamp(max=1.0).acos()
    root = 2 / 3 * x * (1 + (2 * math.pi / 3 - 2 / 3 * angle).cos())
    return torch.where(size > threshold, root, 0.0)


def power(x: Tensor, weight: Tensor | float, p: Tensor | float) -> Tensor:
    """Of `|y|^p` for any 0 < p <= 1: the threshold in closed form, the root beyond it by Newton.

    A root y of `y - |x| + weight p y^(p-1)` is at least the `least` below, where the slope is
    1 - p/2 or more; from |x|, which is to the right of it, Newton's steps never pass it.
    """
    weight, p = (torch.as_tensor(each, dtype=x.dtype, device=x.device) for each in (weight, p))
    size = x.abs()
    least = ((2 * weight * (1 - p)).clamp(min=0.0) ** (1 / (2 - p))).clamp(min=TINY)
    threshold = least + weight * p * least ** (p - 1)
    root = torch.maximum(size, least)
    for _ in range(NEWTON):
        excess = root - size + weight * p * root ** (p - 1)
        slope = 1 - weight * p * (1 - p) * root ** (p - 2)
        root = torch.maximum(root - excess / slope, least)
    pulled = torch.where(size > threshold, x.sign() * root, 0.0)
    return torch.where(weight > 0, pulled, x)  # however small x is


def mcp(x: Tensor, weight: Tensor | float, tau: Tensor | float) -> Tensor:
    """Of the minimax concave penalty, `|y| - tau y^2` up to `1 / (2 tau)` and constant beyond.
    A weight of `1 / (2 tau)` or more leaves nothing convex: then it is 0 or x itself."""
    weight, tau = (torch.as_tensor(each, dtype=x.dtype, device=x.device) for each in (weight, tau))
    size, convex = x.abs(), 1 - 2 * weight * tau
    firm = torch.where(size <= 1 / (2 * tau), soft(x, weight) / convex.clamp(min=TINY), x)
    hard = torch.where(size > (weight / (2 * tau)).sqrt(), x, 0.0)
    return torch.where(convex > 0, firm, hard)
