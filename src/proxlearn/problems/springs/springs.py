"""All the ways a chain of springs can rest between two nails."""

import itertools

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.problems.base import Problem
from proxlearn.spaces import Box

SPAN = 1.0  # from the nail at 0 to the nail at SPAN


class Springs(Problem):
    """Four springs on a rail, end to end between two nails; a spring may point left or right.

    x = (p_1, p_2, p_3), where the joints sit; tau = (r_1, ..., r_4), the rest lengths. With
    `u_k = p_k - p_{k-1}`, `p_0 = 0` and `p_4 = SPAN`, the energy is `sum_k (|u_k| - r_k)^2`.
    """

    name = "springs"
    # A margin of 1/4 around all minimizers; the rail goes on.
    space = Box((-1.5, -1.75, -1.0), (2.0, 2.75, 2.5), open=True)
    parameters = Box(0.3, 1.0, dim=4)
    lam = 40.0  # ridges between basins are kinks, which no estimate of curvature sees in full

    def objective(self, x, tau):
        nails = x.new_zeros(1).expand_as(x[..., :1])
        joints = torch.cat((nails, x, nails + SPAN), -1)
        return (joints.diff(dim=-1).abs() - tau[:, None]).square().sum(-1)

    def truth(self, tau):
        return [rests(lengths) for lengths in tau]


def rests(lengths: Float[Tensor, " m"]) -> Float[Tensor, "k m-1"]:
    """Every rest configuration, in closed form.

    Say which springs point right, `s_k = 1`, and which left, `s_k = -1`. As long as they do, the
    energy is `|u - s r|^2`, and the nails ask for `sum_k u_k = SPAN`: the nearest such u is
    `s r + c` with the same c for all. It is at rest if every spring then points as it was said to.
    """
    signs = lengths.new_tensor(list(itertools.product((1.0, -1.0), repeat=len(lengths))))
    natural = signs * lengths
    stretched = natural + (SPAN - natural.sum(1, keepdim=True)) / len(lengths)
    at_rest = (signs * stretched > 0).all(1)
    return stretched[at_rest].cumsum(1)[:, :-1]
