"""Where are the dots? tau is a small picture, and the optima are the dots in it.

A problem whose instances are not vectors: it draws pictures together with the dots in them, the
objective knows the dots, and the operator sees the picture alone. Use it by its path:

    operator = px.learn(px.problem("examples/dots.py"), seconds=60)
    operator.solve(picture)  # (1, 16, 16): no dots and no objective needed
"""

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.instances.picture import Pictures
from proxlearn.problems.base import Problem
from proxlearn.spaces import Box

SIDE, MOST = 16, 4  # pixels along a side, dots in a picture
BLUR = 0.06  # standard deviation of a dot, in widths of the picture
WOBBLE = 0.01  # of where a dot is taken to be, drawn anew at every step of training


class Dots(Problem):
    """`f(x)` = squared distance to the nearest of 1 to 4 dots, as measured with a shaky hand.

    A batch is {"picture": (i, 1, 16, 16), "dots": (i, 4, 2), "present": (i, 4)}: pictures have
    different numbers of dots, so these are padded to four and `present` tells which are real.
    """

    name = "dots"
    space = Box(0.0, 1.0, dim=2)  # the picture: x to the right, y down
    instances = Pictures(1, SIDE, SIDE)  # what an operator sees
    lam = 4.0  # a step goes a third of the way to the nearest dot

    def sample(self, count, split, generator):
        device = generator.device
        dots = Box(0.1, 0.9, dim=2).sample(count, MOST, generator=generator, device=device)
        number = torch.randint(1, MOST + 1, (count, 1), generator=generator, device=device)
        present = torch.arange(MOST, device=device) < number
        return {"picture": paint(dots, present), "dots": dots, "present": present}

    def refresh(self, tau, generator):
        # The wobble adds the same constant to the mean everywhere, so the optima stay the dots.
        shape, device = tau["dots"].shape, generator.device
        noise = torch.randn(shape, generator=generator, device=device)
        return tau | {"dots": tau["dots"] + WOBBLE * noise}

    def observe(self, tau):
        return tau["picture"]

    def objective(self, x, tau):
        squares = (x[:, :, None] - tau["dots"][:, None]).square().sum(-1)  # (i, points, dots)
        return squares.masked_fill(~tau["present"][:, None], torch.inf).amin(-1)

    def truth(self, tau):
        return [dots[present] for dots, present in zip(tau["dots"], tau["present"])]


def paint(dots: Float[Tensor, "i 4 2"], present: Tensor) -> Float[Tensor, "i 1 16 16"]:
    """Blurred dots, white on black."""
    centre = (torch.arange(SIDE, device=dots.device) + 0.5) / SIDE
    across = (-(centre - dots[..., :1]).square() / (2 * BLUR**2)).exp()  # (i, dots, columns)
    down = (-(centre - dots[..., 1:]).square() / (2 * BLUR**2)).exp()  # (i, dots, rows)
    blobs = present[..., None, None] * down[..., :, None] * across[..., None, :]
    return blobs.amax(1, keepdim=True)
