"""How weights are updated: the rate's schedule, shortened gradients, all weights as one vector."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

CLIP = 3.0  # gradients longer than this many times the usual are shortened
PIECES = 30  # of the weights: what a fused optimizer updates in one launch on a GPU


class Flat:
    """All weights of a module moved into one vector, and a vector for their gradients: clipping or
    updating them is then a few operations instead of a few for each of them."""

    def __init__(self, module: nn.Module):
        self.weights = list(module.parameters())
        self.values = torch.cat([weight.detach().flatten() for weight in self.weights])
        self.gradient = torch.zeros_like(self.values)
        sizes = [weight.numel() for weight in self.weights]
        for weight, piece in zip(self.weights, self.values.split(sizes)):
            weight.data = piece.view(weight.shape)

    def pieces(self) -> list[nn.Parameter]:
        """The vector in equal pieces, as the parameters of an optimizer."""
        size = -(-len(self.values) // PIECES)
        pieces = [nn.Parameter(piece) for piece in self.values.split(size)]
        for piece, gradient in zip(pieces, self.gradient.split(size)):
            piece.grad = gradient
        return pieces

    def gather(self) -> Float[Tensor, " w"]:
        """The gradients of all weights, moved into one vector; 0 where there is none."""
        every = (torch.zeros_like(w) if w.grad is None else w.grad for w in self.weights)
        torch.cat([each.flatten() for each in every], out=self.gradient)
        for weight in self.weights:
            weight.grad = None
        return self.gradient


def keep_books(
    gradient: Float[Tensor, " w"],
    values: Float[Tensor, " t"],
    usual_norm: Tensor,
    smooth: Float[Tensor, " t"],
    count: Tensor,
    fine: Tensor,
) -> None:
    """Shorten a gradient that is far longer than usual, so that a wild batch does not undo the
    rest, and keep the books: of its usual length, the running means of the loss's terms, the steps,
    and the last of them that was fine."""
    norm = gradient.norm()
    shorter = torch.minimum(norm, CLIP * usual_norm)
    gradient.mul_(shorter / norm.clamp(min=1e-30))
    usual_norm.lerp_(shorter, 0.02)
    smooth.lerp_(values, 0.02)
    count.add_(1)
    # A sum is a number only if all of its parts are; fmax passes over what is not. A good step
    # after a bad one does not make it good.
    last = torch.fmax(fine, count + 0 * (norm + values[0]))
    fine.copy_(torch.where(fine == count - 1, last, fine))


def schedule(spent: float) -> float:
    """The learning rate's factor: a short warm-up, then a cosine to 0."""
    return min(1.0, spent / 0.01) * 0.5 * (1 + math.cos(math.pi * min(spent, 1.0)))
