"""The operators that the playground shows: those that are shipped, and a user's own."""

import random
from dataclasses import replace

import torch

from proxlearn.errors import InputError
from proxlearn.instances import Vectors
from proxlearn.instances.cloud import Clouds
from proxlearn.instances.image import Images
from proxlearn.operators.operator import Operator
from proxlearn.operators.shipped import pretrained
from proxlearn.playground.parts import turned
from proxlearn.playground.pictures import pictured
from proxlearn.playground.playable import VERTICES, Playable
from proxlearn.problems import problem
from proxlearn.problems.base import Problem
from proxlearn.problems.springs.springs import SPAN
from proxlearn.show.demo import CONICS
from proxlearn.spaces import Box, Planes

BOX = 4  # coordinates of a box in a picture
MOST_COORDINATES, MOST_NUMBERS = 12, 24  # that a person can look at, and move by sliders
CONIC = ("A  x²", "B  xy", "C  y²", "D  x", "E  y", "F")
SPRINGS = tuple(f"spring {k}" for k in range(1, 5))
LABELS = {"sparse": ("alpha", "p"), "sparse-half": ("alpha",)}


def built_in() -> list[Playable]:
    """The shipped operators that the page shows."""
    return [
        Playable(
            pretrained("conic", "cpu"),
            "conic",
            "Conic sections",
            "All points of the curve A x² + B xy + C y² + D x + E y + F = 0: the minima of its "
            "left side squared. Every start goes to the curve.",
            "Move the six coefficients.",
            CONIC,
            presets=lambda: {name: [float(each) for each in tau] for name, tau in CONICS.items()},
            first="narrow hyperbola",
            known=problem("conic"),
        ),
        Playable(
            pretrained("peaks", "cpu"),
            "peaks",
            "Peaks",
            "A landscape of up to eight peaks, each of its own height and shape. Its optima are "
            "the summits that no higher peak covers.",
            "Drag the peaks, or move the one that is held by the sliders.",
            presets=lambda: {f"landscape {k}": _landscape(k) for k in range(1, 7)},
            known=problem("peaks"),
        ),
        Playable(
            pretrained("springs", "cpu"),
            "springs",
            "Chain of springs",
            "Four springs on a rail, end to end between two nails; each may point forward or back. "
            "Every line is a configuration: where the joints sit, from nail to nail.",
            "Change how long the springs are at rest.",
            SPRINGS,
            starts=512,
            presets=lambda: {
                "all alike": [0.6, 0.6, 0.6, 0.6],
                "one long": [1.0, 0.4, 0.4, 0.4],
                "short to long": [0.35, 0.5, 0.7, 0.9],
            },
            known=problem("springs"),
            more={
                "ends": [[0.0], [SPAN]],
                "labels": ["nail", "joint 1", "joint 2", "joint 3", "nail"],
            },
        ),
        Playable(
            pretrained("maxcut", "cpu"),
            "maxcut",
            "Maximum cuts",
            "Divide the vertices of a graph so that the edges between the two sides weigh most. "
            "The operator turns an arrow for every vertex, a dot on its dial for each start; "
            "opposite arrows are opposite sides.",
            "Drag an edge up to make it heavier, down to make it lighter.",
            starts=256,
            presets=lambda: (
                {"wheel": _wheel(), "all edges alike": _complete()}
                | {f"weights at random {k}": _graph(k) for k in range(1, 5)}
            ),
            known=problem("maxcut"),
        ),
        Playable(
            pretrained("cosine", "cpu"),
            "cosine",
            "A grid of wells",
            "One objective with 121 equal minima, 40 of them on the edge of the square. Nothing to "
            "move here but the starts: see how many of the wells they find.",
            starts=1024,
            known=problem("cosine"),
        ),
        turned(pretrained("symmetry", "cpu")),
        Playable(
            pretrained("sparse", "cpu"),
            "sparse",
            "Sparse recovery",
            "Signals x of eight entries that explain four measurements, y = A x: the minima of "
            "|A x - y|² + alpha Σ |x|ᵖ. Every line is a signal. Many of its entries are 0, the "
            "more so the larger alpha is. Points that are still on their way are called a curve.",
            "Move alpha and p.",
            LABELS["sparse"],
            presets=lambda: {
                "in between": [0.5, 0.35],
                "hardly any penalty": [0.05, 0.5],
                "as few entries as can be": [1.0, 0.2],
            },
        ),
    ]


def own(operator: Operator, name: str) -> Playable:
    """A user's operator, as far as the page can show it: one for a problem that the page knows in
    the place of the shipped one."""
    space, instances = operator.space, operator.instances
    if isinstance(instances, Clouds) and isinstance(space, Planes):
        return replace(turned(operator), name="own", title=name)
    if isinstance(instances, Images) and space.dim == BOX:
        return pictured(operator, name)
    for each in built_in():
        alike = each.name == operator.provenance.get("problem")
        if alike and each.known and _fits(operator, each.known):
            operator.problem = each.known
            return replace(each, operator=operator, name="own", title=name)
    if not (isinstance(space, Box) and space.dim <= MOST_COORDINATES):
        raise InputError(
            f"The playground shows operators on boxes of up to {MOST_COORDINATES} dimensions; this "
            f"one lives on {space}."
        )
    if not (isinstance(instances, Vectors) and len(instances.low) <= MOST_NUMBERS):
        raise InputError(
            f"The playground moves a tau of up to {MOST_NUMBERS} numbers by sliders; this operator "
            f"takes {instances.words}."
        )
    of = operator.provenance.get("problem", "")
    about = f"the problem {of}" if of else "an unnamed problem"
    labels = LABELS.get(of, ())
    return Playable(
        operator,
        "own",
        name,
        f"An operator for {about}. Its file holds no objective, so there are no values and no map.",
        "Move the numbers of tau." if instances.low else "",
        labels if len(labels) == len(instances.low) else (),
    )


def _fits(operator: Operator, problem: Problem) -> bool:
    try:
        operator.check_fits(problem)
    except InputError:
        return False
    return True


def _landscape(seed: int) -> list[float]:
    """Peaks drawn as in training, of which those that are there come first."""
    drawn = problem("peaks").sample(1, "test", torch.Generator().manual_seed(seed))[0]
    return [round(each, 4) for each in drawn.tolist()]


def _graph(seed: int) -> list[float]:
    """A random graph with random weights, as a matrix in one row."""
    draw = random.Random(seed)
    pairs = [(i, j) for i in range(VERTICES) for j in range(i) if draw.random() < 0.5]
    return _matrix({pair: round(draw.uniform(0.2, 1.0), 2) for pair in pairs})


def _wheel() -> list[float]:
    """A ring of all vertices but the last, each of which has an edge to that one, too."""
    rim = VERTICES - 1
    ring = {(max(k, (k + 1) % rim), min(k, (k + 1) % rim)): 1.0 for k in range(rim)}
    return _matrix(ring | {(rim, k): 1.0 for k in range(rim)})


def _complete() -> list[float]:
    return _matrix({(i, j): 1.0 for i in range(VERTICES) for j in range(i)})


def _matrix(weights: dict[tuple[int, int], float]) -> list[float]:
    """The weights of edges (i, j), i > j, as a symmetric matrix in one row."""
    vertices = range(VERTICES)
    return [weights.get((max(i, j), min(i, j)), 0.0) for i in vertices for j in vertices]
