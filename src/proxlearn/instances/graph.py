"""tau is a graph: a symmetric matrix of weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.checks import array
from proxlearn.errors import InputError
from proxlearn.instances._graph_files import check_size, is_networkx, matrix_of, read_graph
from proxlearn.instances.base import Instances

POWERS = 10  # of the matrix, to estimate its largest eigenvalue by
HEAVIEST = 1e15  # the largest weight: sums of squares of weights have to be finite
UNIT = 1.7  # the scale that all graphs are brought to, that of random ones on 8 vertices


@dataclass(frozen=True)
class Graphs(Instances):
    """Graphs of so many vertices; of `any_size`, `vertices` are the most in training."""

    encoder = "pairs"
    vertices: int
    any_size: bool = False

    @property
    def words(self):
        return f"graphs of {'any number of' if self.any_size else self.vertices} vertices"

    def batch(self, tau):
        weights = graphs(tau)
        if not self.any_size and weights.shape[-1] != self.vertices:
            raise InputError(
                f"The graph has {weights.shape[-1]} vertices, but this operator is for graphs of "
                f"{self.vertices}: give one of those, or use an operator for any size."
            )
        return weights

    def read(self, text):
        weights = read_graph(text)
        if weights.ndim == 3 and len(weights) != 1:
            raise InputError(
                f"{text} holds {len(weights)} graphs; --tau takes one: save its matrix (vertices, "
                "vertices) alone, or solve them all in Python with operator.solve(file)."
            )
        return weights

    def parts(self, observed):
        return observed.shape[-1] if self.any_size else None


def unit_scale(weights: Float[Tensor, "i v v"]) -> Float[Tensor, " i"]:
    """The scale of each graph, as a multiple of `UNIT`. It is the length of a row of weights,
    root mean square over the vertices that have an edge; or a quarter of the largest eigenvalue
    where that is more, as in large dense graphs: none is much stiffer than in training."""
    heaviest = weights.abs().amax((1, 2)).clamp(min=torch.finfo(weights.dtype).tiny)
    weights = weights / heaviest[:, None, None]  # so that squares neither vanish nor overflow
    square = weights.square().sum(-1)
    length = (square.sum(-1) / (square > 0).sum(-1).clamp(min=1)).sqrt()
    vector = square.sqrt()[..., None]
    for _ in range(POWERS):
        vector = weights @ torch.nn.functional.normalize(vector, dim=1)
    return heaviest * torch.maximum(length, vector.norm(dim=1)[:, 0] / 4) / UNIT


def at_unit_scale(weights: Float[Tensor, "i v v"]) -> Float[Tensor, "i v v"]:
    """Graphs with the same optima, all at one scale; a graph without edges stays as it is."""
    tiny = torch.finfo(weights.dtype).tiny
    return weights / unit_scale(weights).clamp(min=tiny)[:, None, None]


def graphs(tau: Any) -> Float[Tensor, "i v v"]:
    """One graph or several of one size, checked: weights (v, v) or (i, v, v), a file's path, or a
    graph of networkx."""
    if tau is None:
        raise InputError("This is for graphs: give tau, a matrix of weights or a file.")
    if isinstance(tau, str | Path):
        tau = read_graph(tau)
    if is_networkx(tau):
        tau = matrix_of(tau)
    expected = (
        "a matrix with a weight for every pair of vertices, 0 where there is no edge, or the path "
        "of one file"
    )
    weights = array("A graph", tau, expected)
    if weights.ndim not in (2, 3) or weights.shape[-1] != weights.shape[-2] or not weights.numel():
        raise InputError(
            f"tau has shape {tuple(weights.shape)}; expected a square matrix of weights (vertices, "
            "vertices) for one graph, or (instances, vertices, vertices) for several of one size, "
            "with two vertices or more."
        )
    weights = weights[None] if weights.ndim == 2 else weights
    check_size(len(weights), weights.shape[-1])
    weights = weights.float()
    if weights.shape[-1] < 2:
        raise InputError("A graph of one vertex has nothing to cut: give two vertices or more.")
    _check_weights(weights)
    return weights


def _check_weights(weights: Float[Tensor, "i v v"]) -> None:
    wrong = (~(weights.abs() <= HEAVIEST)).nonzero()
    if len(wrong):
        k, a, b = wrong[0].tolist()
        raise InputError(
            f"The weight between vertices {a + 1} and {b + 1}{_of(k, weights)} is "
            f"{weights[k, a, b]:g}; every weight must be a finite number, 0 where there is no "
            f"edge and {HEAVIEST:g} at most (dividing all of them by one number moves no cut)."
        )
    if weights.diagonal(dim1=1, dim2=2).any():
        raise InputError("A vertex has an edge to itself; the diagonal of the matrix must be 0.")
    wrong = ((weights - weights.mT).abs() > 1e-5 * weights.abs()).nonzero()
    if len(wrong):
        k, a, b = wrong[0].tolist()
        raise InputError(
            f"The matrix of weights is not symmetric: vertices {a + 1} and {b + 1}"
            f"{_of(k, weights)} have {weights[k, a, b]:g} one way and {weights[k, b, a]:g} the "
            "other."
        )


def _of(k: int, weights: Float[Tensor, "i v v"]) -> str:
    """Which graph it is, where there are several."""
    return f" of graph {k + 1}" if len(weights) > 1 else ""
