"""Cuts of graphs: a side, +1 or -1, for every vertex. Their values, rounding to them, all of them
where they can be listed, and the classical local search."""

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.batch import Points, Values
from proxlearn.errors import InputError
from proxlearn.instances.graph import graphs
from proxlearn.problems.base import Problem
from proxlearn.spaces import Signs

Sides = Float[Tensor, "i n v"]
Weights = Float[Tensor, "i v v"]
MOST_LISTED = 20  # vertices whose cuts can all be listed
MOST_SHOWN = 100  # vertices of a cut in a table
EXACT = 1e-5  # cuts whose values differ by no more than this share are equally good


class Cuts(Problem):
    """Max-cut itself: x are the sides of the vertices, `f(x) = -sum_{i<j} w_ij (1 - x_i x_j) / 2`
    is minus the weight of the edges that are cut. A cut and its complement are one."""

    name = "maxcut"
    discrete = True

    def __init__(self, vertices: int):
        self.space = Signs(vertices)

    def objective(self, x, tau):
        return 0.0 - cut_values(x, tau)  # no -0

    def batch(self, tau):
        return graphs(tau)

    def canonical(self, x):
        """The cut or its complement: the one with the first vertex on the side +1."""
        return x * x[..., :1]

    def written(self, point, value):
        """The weight that is cut, and the side of every vertex in order."""
        sides = "".join("+" if side > 0 else "-" for side in point)
        if len(sides) > MOST_SHOWN:
            sides = f"{sides[:MOST_SHOWN]}... ({sides.count('+')} of {len(sides)} on +)"
        weight = "" if value is None else f"{0.0 - value:.4g}"
        return {"weight\ncut": weight, "sides of the vertices": sides}


def cut_values(sides: Sides, weights: Weights) -> Values:
    """The weight of the edges between the two sides."""
    return (weights.sum((1, 2))[:, None] - ((sides @ weights) * sides).sum(-1)) / 4


def best_half_circles(x: Points, weights: Weights) -> Sides:
    """The best of the v cuts into vertices on one half of the circle and on the other.
    The half turns from angle 0; vertices it passes change sides, gaining `x_k sum_j w_kj x_j`."""
    u, v = x.unflatten(-1, (-1, 2)).unbind(-1)
    angle = torch.atan2(v, u)
    sides = torch.where(angle >= 0, 1.0, -1.0).to(weights)
    order = torch.where(angle >= 0, angle, angle + torch.pi).argsort(-1)
    gained, most, best = torch.zeros_like(angle[..., 0]), torch.zeros_like(angle[..., 0]), sides
    instance = torch.arange(len(x), device=x.device)[:, None]
    for vertex in order.unbind(-1):  # (i n): the one that every point's half passes next
        side = sides.gather(-1, vertex[..., None])
        gained = gained + side[..., 0] * (weights[instance, vertex] * sides).sum(-1)
        sides = sides.scatter(-1, vertex[..., None], -side)
        better = gained > most
        most = torch.where(better, gained, most)
        best = torch.where(better[..., None], sides, best)
    return best


def all_cuts(vertices: int, like: Tensor) -> Float[Tensor, "k v"]:
    """Every cut of so many vertices, the first of them on the side +1."""
    if vertices > MOST_LISTED:
        raise InputError(
            f"A graph of {vertices} vertices has 2^{vertices - 1} cuts, too many to list: "
            f"{MOST_LISTED} vertices are the most."
        )
    numbers = torch.arange(2 ** (vertices - 1), device=like.device)
    bits = numbers[:, None] >> torch.arange(vertices, device=like.device)
    return (1 - 2 * (bits & 1).flip(-1)).to(like)


def enumerated(weights: Weights) -> list[Float[Tensor, "k v"]]:
    """All maximum cuts of every graph, by looking at every cut there is."""
    sides = all_cuts(weights.shape[-1], weights)
    every = [cut_values(sides[None], one[None])[0] for one in weights]
    return [sides[values >= values.max() - EXACT * values.max().abs()] for values in every]


def one_exchange(sides: Sides, weights: Weights) -> Sides:
    """The classical local search of many cuts: move the vertex that gains most, until none does."""
    sides = sides.clone()
    loose = EXACT * weights.abs().sum((1, 2))[:, None, None] / weights.shape[-1]
    gains = sides * (sides @ weights)
    instance = torch.arange(len(sides), device=sides.device)[:, None]
    for _ in range(100 * weights.shape[-1]):
        gain, vertex = gains.max(-1, keepdim=True)
        moves = gain > loose
        if not moves.any():
            break
        change = torch.where(moves, -2 * sides.gather(-1, vertex), 0.0)
        # Moving k changes the others' gains by -2 x_k w_kj x_j, and turns its own around.
        gains = gains + change * weights[instance, vertex[..., 0]] * sides
        gains = torch.where(moves, gains.scatter(-1, vertex, -gain), gains)
        sides = sides.scatter_add(-1, vertex, change)
    return sides
