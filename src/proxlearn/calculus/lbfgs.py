"""L-BFGS's inverse Hessian, for many points at once."""

import torch
from jaxtyping import Float
from torch import Tensor

Pair = tuple[Float[Tensor, "i n d"], Float[Tensor, "i n d"]]  # a step and its change of gradient


def inverse_hessian_times(
    slope: Float[Tensor, "i n d"], pairs: list[Pair]
) -> Float[Tensor, "i n d"]:
    """The two-loop recursion; a pair without positive curvature counts for nothing."""
    q, stack = slope, []
    scale = torch.ones_like(slope[..., :1])
    for step, change in reversed(pairs):
        product = (step * change).sum(-1, keepdim=True)
        rho = torch.where(product > 1e-10, 1 / product, 0.0)
        alpha = rho * (step * q).sum(-1, keepdim=True)
        q = q - alpha * change
        stack.append((step, change, rho, alpha))
    if pairs:
        step, change = pairs[-1]
        product = (step * change).sum(-1, keepdim=True)
        scale = torch.where(product > 1e-10, product / change.square().sum(-1, keepdim=True), scale)
    r = scale * q
    for step, change, rho, alpha in reversed(stack):
        r = r + step * (alpha - rho * (change * r).sum(-1, keepdim=True))
    return r
