"""Slender, thin and nearly symmetric shapes, built by hand: how many symmetries `px.symmetries`
lists of each."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.common.seeds import generator_for
from proxlearn.meshes.mesh import Mesh
from proxlearn.meshes.parts import random_rotation
from proxlearn.meshes.solids import Layer, circle, fine_circle, rectangle, stacked, turned

THICKNESS = (0.1, 0.03, 0.01, 0.003)  # in parts of half the length


class Shape(NamedTuple):
    """A surface (f 3 3), and how many planes, families and axes it has."""

    surface: np.ndarray
    planes: int
    families: int
    axes: int


def prism(outline: np.ndarray, half: float, *more: Layer) -> np.ndarray:
    return stacked([Layer(outline, -half, half), *more])


def thin(w: float) -> dict[str, Shape]:
    """Rods along z, and sheets across it."""
    ell = w * np.array([(0, 0), (2, 0), (2, 1), (1, 1), (1, 3), (0, 3)], float)
    low, high = Layer(rectangle(1.0, 0.7), -w, 0.0), Layer(rectangle(0.6, 0.4), 0.0, w)
    return {
        "square rod": Shape(prism(rectangle(w, w), 1.0), 5, 0, 5),
        "rectangular rod": Shape(prism(rectangle(w, 1.5 * w), 1.0), 3, 0, 3),
        "rod of six sides": Shape(prism(circle(w, 6), 1.0), 7, 0, 7),
        "rod of three sides": Shape(prism(circle(w, 3), 1.0), 4, 0, 4),
        "round rod": Shape(turned(np.array([(0.0, -1), (w, -1), (w, 1), (0, 1)])), 1, 1, 1),
        "rod that is an L": Shape(prism(ell, 1.0), 1, 0, 0),
        "sheet": Shape(prism(rectangle(1.0, 0.7), w), 3, 0, 3),
        "square sheet": Shape(prism(rectangle(1.0, 1.0), w), 5, 0, 5),
        "sheet with a step": Shape(stacked([low, high]), 2, 0, 1),
    }


def with_boss(radius: float, height: float) -> dict[str, Shape]:
    """Boxes and a disc with a boss that is too small for a mean distance to see."""
    aside, ahead = (Layer(circle(radius, 32, (0.5, y)), 0.3, 0.3 + height) for y in (0.2, 0.0))
    box, disc = rectangle(1.0, 0.7), fine_circle(1.0, 8)
    return {
        "boss": Shape(prism(box, 0.3, aside), 0, 0, 0),
        "boss on a mirror": Shape(prism(box, 0.3, ahead), 1, 0, 0),
        "boss on a disc": Shape(prism(disc, 0.3, aside), 1, 0, 0),
    }


def every() -> dict[str, Shape]:
    made = {f"{name}, {w}": shape for w in THICKNESS for name, shape in thin(w).items()}
    for radius, height in ((r, h) for r in (0.05, 0.1) for h in (0.02, 0.05, 0.1)):
        for name, shape in with_boss(radius, height).items():
            made[f"{name}, {radius} by {height}"] = shape
    return made


def posed(surface: np.ndarray, seed: int) -> Mesh:
    corners = torch.from_numpy(surface).double().reshape(-1, 3)
    turn: Tensor = random_rotation(generator_for(seed, "pose"))
    return Mesh(corners @ turn.T + 1.0, torch.arange(len(corners)).view(-1, 3))


@pytest.mark.slow
def test_nearly_all_of_them_have_the_right_number_of_symmetries():
    """All but those of 0.003 and a low boss on a disc, of which two may be wrong."""
    operator, wrong = px.pretrained("symmetry", "cpu"), []
    for k, (name, shape) in enumerate(every().items()):
        found = px.symmetries(posed(shape.surface, k), operator)
        if (len(found.planes), len(found.families), len(found.axes)) != shape[1:]:
            wrong.append(name)
    assert len(every()) == 54
    assert len(wrong) <= 2
    assert all("0.003" in name or "disc" in name for name in wrong)
