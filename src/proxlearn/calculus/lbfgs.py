"""L-BFGS's directions, for many points at once."""

import torch

from proxlearn.calculus.derivatives import Held
from proxlearn.common.batch import Points

Pair = tuple[Points, Points]  # a step and its change of gradient


def downhill(slope: Points, pairs: list[Pair], held: Held | None = None) -> Points:
    """`-B slope` with the inverse Hessian B that the last steps tell of, by the two-loop recursion;
    `-slope` where that leads uphill. A pair without positive curvature counts for nothing, and so
    do coordinates that bounds hold: the direction is 0 there, and B that of the others."""
    if held is not None:
        slope = slope.masked_fill(held, 0.0)
        pairs = [(s.masked_fill(held, 0.0), y.masked_fill(held, 0.0)) for s, y in pairs]
    q, stack = slope, []
    scale = torch.ones_like(slope[..., :1])
    for step, change in reversed(pairs):
        product = (step * change).sum(-1, keepdim=True)
        curved = product > 1e-10
        if not stack:  # the last step
            scale = torch.where(curved, product / change.square().sum(-1, keepdim=True), scale)
        rho = torch.where(curved, 1 / product, 0.0)
        alpha = rho * (step * q).sum(-1, keepdim=True)
        q = q - alpha * change
        stack.append((step, change, rho, alpha))
    r = scale * q
    for step, change, rho, alpha in reversed(stack):
        r = r + step * (alpha - rho * (change * r).sum(-1, keepdim=True))
    uphill = (r * slope).sum(-1, keepdim=True) <= 0
    return -torch.where(uphill, slope, r)
