"""Graphs from files and from networkx, as matrices of weights."""

from ast import literal_eval
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from proxlearn.common.arrays import read_npy
from proxlearn.common.contents import brief, check_file, text_of
from proxlearn.common.memory import afford
from proxlearn.errors import FileError, InputError, ProxlearnError

MOST_VERTICES = 20_000  # as in the largest of the Gset: their matrix takes 1.6 GB
MATRICES = 8  # of single precision that solving a graph takes at once, the weights included
DEEP = (RecursionError, MemoryError)  # what Python raises for brackets nested too deep
# What networkx reads, by the ending: its function and settings. A GML need not have labels.
READERS: dict[str, tuple[str, dict[str, str]]] = {
    ".graphml": ("read_graphml", {}),
    ".gml": ("read_gml", {"label": "id"}),
    ".gexf": ("read_gexf", {}),
    ".net": ("read_pajek", {}),
    ".adjlist": ("read_adjlist", {}),
}


def read_graph(path: str | Path) -> Shaped[np.ndarray, "..."]:
    """A graph from a file: a .npy with its matrix, one of `READERS`, or a text of edges, `i j
    weight` or `i j` each, with comments after a #. In front of them, `vertices edges` says how many
    there are, as in the Gset; without that line (always in an .edgelist) vertices may have any
    names."""
    path = Path(path)
    check_file(path, what="graph")
    if path.suffix == ".npy":
        return read_npy(path, "a graph")
    if path.suffix in READERS:
        return matrix_of(_by_networkx(path))
    return _parsed(text_of(path, "graph"), path)


def _by_networkx(path: Path) -> Any:
    """A graph of a format that networkx reads."""
    try:
        import networkx
    except ImportError:
        raise FileError(f"To read {path}: pip install 'proxlearn[graphs]'.") from None
    name, settings = READERS[path.suffix]
    try:
        text_of(path, "graph")  # an error where it is too large
        graph = getattr(networkx, name)(path, **settings)
    except ProxlearnError:
        raise
    except Exception as error:  # networkx has no error of its own for a damaged file
        raise FileError(f"{path} holds no graph: {brief(error)}.") from None
    if not len(graph):
        raise FileError(f"{path} holds no graph: it has no vertices.")
    return graph


def is_networkx(graph: Any) -> bool:
    return hasattr(graph, "is_directed") and hasattr(graph, "nodes")


def matrix_of(graph: Any) -> Float[np.ndarray, "v v"]:
    """The weights of a graph of networkx in the order of its nodes, 1 for an edge without one."""
    if graph.is_directed():
        raise InputError("The graph is directed; a cut is of undirected edges: to_undirected().")
    place = {node: k for k, node in enumerate(graph.nodes)}
    weights = _no_edges(len(place), "The graph")
    for a, b, weight in graph.edges(data="weight", default=1.0):
        try:
            weights[place[a], place[b]] += float(weight)  # parallel edges add up
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"The edge between {brief(a)} and {brief(b)} has the weight {brief(repr(weight))}, "
                "which is no number."
            ) from None
        weights[place[b], place[a]] = weights[place[a], place[b]]
    return weights


def _no_edges(vertices: int, whose: str) -> Float[np.ndarray, "v v"]:
    """The matrix of a graph without edges, to put them into."""
    _check_vertices(vertices, whose)
    return np.zeros((vertices, vertices), dtype=np.float32)


def _check_vertices(vertices: int, whose: str) -> None:
    """An error where a graph is too large to be solved."""
    if vertices > MOST_VERTICES:
        raise FileError(
            f"{whose} has {vertices:,} vertices, whose matrix of weights is too large: "
            f"{MOST_VERTICES:,} vertices are the most."
        )
    check_size(1, vertices)


def check_size(graphs: int, vertices: int) -> None:
    """An error where so many graphs need more memory than there is."""
    what = "A graph" if graphs == 1 else f"{graphs:,} graphs"
    what += f" of {vertices:,} vertices, as a matrix of weights,"
    afford(MATRICES * graphs * 4 * vertices**2, what, "give a smaller graph, or one at a time")


def _parsed(text: str, path: Path) -> Float[np.ndarray, "v v"]:
    lines = [line.partition("#")[0].split(maxsplit=2) for line in text.splitlines()]
    lines = [words for words in lines if words]
    if not lines:
        raise FileError(
            f"{path} is empty: a graph is a line `vertices edges`, and an edge in every other line."
        )
    first = lines[0]
    # `0 1` or `1 2` in front of other lines is an edge: no graph of so few vertices has any.
    counted = all(map(_is_whole, first)) and (int(first[0]) > 1 or len(lines) == 1)
    if len(first) == 2 and counted and path.suffix != ".edgelist":
        return _counted(int(first[0]), int(first[1]), lines[1:], path)
    edges = [_edge(words, path) for words in lines]
    names = {name: None for a, b, _ in edges for name in (a, b)}  # in the order of appearance
    in_order = sorted(names, key=int) if all(map(_is_whole, names)) else list(names)
    return _weights(edges, {name: k for k, name in enumerate(in_order)}, path)


def _counted(
    vertices: int, edges: int, lines: list[list[str]], path: Path
) -> Float[np.ndarray, "v v"]:
    """A graph whose vertices are numbers from 1, or from 0 where there is a 0."""
    if vertices < 2:
        raise FileError(f"A graph needs at least two vertices, and {path} has {vertices}.")
    if missing := edges - len(lines):
        said = f"{edges} edge{'s' * (edges != 1)} but lists {len(lines)}"
        fix = f"{'add the missing' if missing > 0 else 'remove the extra'} edge"
        fix += f"{'s' * (abs(missing) > 1)} or correct the first line"
        raise FileError(
            f"{path} says it has {said}: {fix}. (A list of edges alone is a file .edgelist.)"
        )
    found = [_edge(words, path) for words in lines]
    begin = 0 if any("0" in each[:2] for each in found) else 1
    _check_vertices(vertices, str(path))  # before as many names are made
    return _weights(found, {str(begin + k): k for k in range(vertices)}, path)


def _weights(
    edges: list[tuple[str, str, float]], place: dict[str, int], path: Path
) -> Float[np.ndarray, "v v"]:
    """The matrix of edges between vertices whose places in it are known."""
    weights, seen = _no_edges(len(place), str(path)), set()
    for a, b, weight in edges:
        if a == b or a not in place or b not in place:
            every = list(place)
            raise FileError(
                f"{path} has the edge {f'{a} {b}'[:50]!r}; expected two different vertices from "
                f"{every[0]} to {every[-1]}."
            )
        i, j = place[a], place[b]
        if (i, j) in seen:
            raise FileError(f"{path} has the edge {a} {b} twice; every edge is given once.")
        with np.errstate(over="ignore"):  # what overflows is reported with all other weights
            weights[i, j] = weights[j, i] = weight
        seen |= {(i, j), (j, i)}
    return weights


def _edge(words: list[str], path: Path) -> tuple[str, str, float]:
    """Two vertices and a weight: a number, 1 where none is given, or in a dictionary, as networkx
    writes it."""
    try:
        a, b, *rest = words
        about = rest[0].strip() if rest else "1"
        if about.startswith("{"):
            about = literal_eval(about).get("weight", 1)
        return _name(a), _name(b), float(about)
    except (ValueError, SyntaxError, TypeError, AttributeError, OverflowError, *DEEP):
        raise FileError(
            f"{path} has the edge {' '.join(words)[:50]!r}; expected `i j weight`, or `i j` for a "
            "weight of 1."
        ) from None


def _name(vertex: str) -> str:
    """One name for all spellings of a vertex, such as 7 and 07."""
    return str(int(vertex)) if _is_whole(vertex) else vertex


def _is_whole(vertex: str) -> bool:
    return vertex.isascii() and vertex.isdecimal() and len(vertex) < 20
