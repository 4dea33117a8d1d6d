"""Graph files: lists of edges as the Gset and networkx have them, GraphML and its like, and
matrices, with edges that are not there, weights that are no numbers, and sizes that are wrong."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

import proxlearn as px
from fuzzing._spoiled import bytes_spoiled, npy_of, npy_spoiled, pick, words_spoiled
from fuzzing.frame import Act, WrongAnswerError, command, finite
from proxlearn.instances.graph import graphs

WHAT = "graph files"
CASES = 500
STARTS = 16
ODD = (
    "", "#\n", "\n\n", "20000 1\n1 2 1\n", "20001 1\n1 2 1\n", "1000000000 0\n", "2 0\n", "0 1",
    "3 1\n1 2 1e30\n", "3 1\n1 2 1e14\n", "3 1\n1 2 1e-30\n", "2 1\n1 2 1e-45\n", "1 0\n",
    "4000 2\n1 2 1\n1 2 1\n" * 2, f"{'9' * 5_000} 3\n1 2\n",
    "".join(f"{k} {k + 1}\n" for k in range(30_000)), "1 2 " + "9" * 10**6,
    "1 2 {'weight': " + "[" * 10**5,
)  # fmt: skip


def prepare(folder: Path) -> Any:
    problem = px.problem("maxcut")
    px.solve(problem, np.ones((4, 4)) - np.eye(4), starts=STARTS)  # imports what there is
    graph = nx.Graph()
    graph.add_weighted_edges_from([("a", "b", 1.0), ("b", "c", 2.0), ("c", "a", -1.5)])
    graphml, edges = "\n".join(nx.generate_graphml(graph)), "\n".join(nx.generate_edgelist(graph))
    texts = {
        "txt": "5 6\n1 2 1\n2 3 1\n3 4 2\n4 5 -1\n5 1 0.5\n1 3 3\n",
        "edgelist": edges,
        "graphml": graphml,
        "gml": "\n".join(nx.generate_gml(graph)),
        "gexf": "\n".join(nx.generate_gexf(graph)),
        "net": "\n".join(nx.generate_pajek(nx.MultiGraph(graph))),
        "adjlist": "\n".join(nx.generate_adjlist(graph)),
        "csv": "1 2 1\n2 3 2\n",
    }
    return problem, texts


def case(draw: np.random.Generator, prepared: Any, folder: Path) -> tuple[str, Act]:
    problem, texts = prepared
    kind = pick(draw, ("txt", "txt", "npy", "npy", *texts))
    if kind == "npy":
        content = _matrix(draw)
    elif not draw.integers(5):
        content = pick(draw, ODD).encode()
    elif draw.integers(3):
        content = words_spoiled(texts[kind], draw).encode(errors="replace")
    else:
        content = bytes_spoiled(texts[kind].encode(), draw)
    file = folder / f"graph.{kind}"
    file.write_bytes(content)
    if not draw.integers(4):
        typed = ("solve", "maxcut", "--tau", file.name, "--starts", str(STARTS))
        return f"{' '.join(typed)}: {content[:300]!r}", lambda: command(*typed)
    return f"px.solve of {file.name}: {content[:300]!r}", lambda: _solve(problem, file)


def _matrix(draw: np.random.Generator) -> bytes:
    weights = draw.normal(size=(6, 6))
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    if not draw.integers(6):
        sizes = (np.zeros((1, 1)), np.zeros((3, 4)), np.zeros((9, 9)), weights[None].repeat(3, 0))
        return npy_of(pick(draw, sizes))
    return npy_spoiled(weights, draw)


def _solve(problem: px.Problem, file: Path) -> None:
    solutions = px.solve(problem, file, starts=STARTS).rounded()
    assert solutions.values is not None
    finite(solutions.points, solutions.values)
    weights = graphs(file).double()
    most = weights.clamp(min=0).sum((1, 2)) / 2
    if (-solutions.values > most[:, None] * (1 + 1e-5) + 1e-30).any():
        raise WrongAnswerError("a cut of more weight than there is")
