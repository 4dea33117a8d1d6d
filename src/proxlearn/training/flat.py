"""All weights of a module as one vector: clipping or updating them is then a few operations instead
of a few for each of them."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

PIECES = 30  # what a fused optimizer updates in one launch on a GPU


class Flat:
    """The weights of a module moved into one vector, and a vector for their gradients."""

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
