"""tau is a graph: a symmetric matrix of weights."""

import reprlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from proxlearn.errors import FileError, InputError
from proxlearn.instances.base import Instances

POWERS = 10  # of the matrix, to estimate its largest eigenvalue by
MOST_VERTICES = 20_000  # as in the largest of the Gset: their matrix takes 1.6 GB
HEAVIEST = 1e15  # sums of squares of weights have to be numbers, too
UNIT = 1.7  # the scale that graphs of any size are brought to: that of random ones on 8 vertices


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
    """How many times the common scale each graph has. Its scale is the length of a row of weights,
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
    """One graph or several of one size, checked: weights (v, v) or (i, v, v), or a file's path."""
    if tau is None:
        raise InputError("This is for graphs: give tau, a matrix of weights or a file.")
    if isinstance(tau, str | Path):
        tau = read_graph(tau)
    try:
        weights = torch.as_tensor(tau)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(
            "A graph is a matrix with a weight for every pair of vertices, 0 where there is no "
            f"edge, or the path of one file; in {reprlib.repr(tau)} one of them is missing or no "
            "number."
        ) from None
    if weights.is_complex():
        raise InputError("The weights of the graph are complex; they must be real numbers.")
    if weights.ndim not in (2, 3) or weights.shape[-1] != weights.shape[-2] or not weights.numel():
        raise InputError(
            f"tau has shape {tuple(weights.shape)}; expected a square matrix of weights (vertices, "
            "vertices) for one graph, or (instances, vertices, vertices) for several of one size, "
            "with two vertices or more."
        )
    weights = (weights[None] if weights.ndim == 2 else weights).float()
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


def read_graph(path: str | Path) -> Shaped[np.ndarray, "..."]:
    """A graph from a file: a .npy with its matrix, or text as in the Gset: `vertices edges` in the
    first line, then `i j weight` for every edge, vertices counted from 1."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"There is no graph at {path}: check the path.")
    try:
        if path.suffix == ".npy":
            return np.load(path)
        text = path.read_text()
    except (OSError, ValueError, EOFError) as error:
        raise FileError(f"{path} holds no graph: {error}") from None
    return _parsed(text, path)


def _parsed(text: str, path: Path) -> Float[np.ndarray, "v v"]:
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if not lines:
        raise FileError(f"{path} is empty: a graph begins with a line `vertices edges`.")
    try:
        vertices, edges = map(int, lines[0])
    except ValueError:
        raise FileError(
            f"{path} begins with {' '.join(lines[0])[:50]!r}; expected `vertices edges`."
        ) from None
    if vertices < 2:
        raise FileError(f"A graph needs at least two vertices, and {path} has {vertices}.")
    if missing := edges - (len(lines) - 1):
        said = f"{edges} edge{'s' * (edges != 1)} but lists {len(lines) - 1}"
        fix = f"{'add the missing' if missing > 0 else 'remove the extra'} edge"
        fix += f"{'s' * (abs(missing) > 1)} or correct the first line"
        raise FileError(f"{path} says it has {said}: {fix}.")
    if vertices > MOST_VERTICES:
        raise FileError(
            f"{path} announces {vertices:,} vertices, whose matrix of weights is too large: "
            f"{MOST_VERTICES:,} vertices are the most."
        )
    weights, seen = np.zeros((vertices, vertices), dtype=np.float32), set()
    for words in lines[1:]:
        a, b, weight = _edge(words, vertices, path)
        if (a, b) in seen:
            raise FileError(f"{path} has the edge {a + 1} {b + 1} twice; every edge is given once.")
        with np.errstate(over="ignore"):  # what is too large is said with all the others
            weights[a, b] = weights[b, a] = weight
        seen |= {(a, b), (b, a)}
    return weights


def _edge(words: list[str], vertices: int, path: Path) -> tuple[int, int, float]:
    try:
        a, b, weight = int(words[0]) - 1, int(words[1]) - 1, float(words[2])
        if len(words) != 3 or a == b or not (0 <= a < vertices and 0 <= b < vertices):
            raise ValueError
    except (IndexError, ValueError):
        raise FileError(
            f"{path} has the edge {' '.join(words)[:50]!r}; expected `i j weight` with two "
            f"different vertices from 1 to {vertices}."
        ) from None
    return a, b, weight
