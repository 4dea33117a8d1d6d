"""Draw the pictures of the README and these pages, into docs/images:

python docs/make_images.py [OPERATOR]      by default the shipped operator for conics
"""

import runpy
import sys
from pathlib import Path

import torch
from torch import Tensor

import proxlearn as px
from proxlearn.common.seeds import generator_for
from proxlearn.figures import draw as plots
from proxlearn.figures.animation import animate
from proxlearn.meshes.parts import part
from proxlearn.operators.shipped import pretrained
from proxlearn.shapes.picture import picture
from proxlearn.show.demo import hero
from proxlearn.solvers.solve import curve

IMAGES = Path(__file__).parent / "images"
TEN_LINES = Path(__file__).parent.parent / "examples" / "ten_lines.py"
PART = 5  # the seed of the part whose planes are drawn
HYPERBOLA = [0.3, 0, -0.5, 0, 0, -1]
LENGTHS = [0.6, 0.9, 0.5, 0.7]  # of the springs at rest


def main() -> None:
    operator = px.load(sys.argv[1]) if len(sys.argv) > 1 else pretrained("conic")
    print(hero(operator, IMAGES / "conics.png"))
    print(flow(operator, IMAGES / "flow.gif"))
    springs = px.problem("springs")
    solutions = px.solve(springs, LENGTHS, method="lbfgs", starts=2048)
    print(plots.draw(springs, LENGTHS, solutions, IMAGES / "springs.png"))
    print(himmelblau(IMAGES / "tutorial.png"))
    print(*branches())
    flange = part("flange", generator_for(PART, "picture")).mesh
    print(picture(flange, px.symmetries(flange), IMAGES / "symmetry.png", "a flange"))


def flow(operator: px.Operator, path: Path) -> Path:
    """Points on their way onto a hyperbola."""
    at, conic = range(6), px.problem("conic")
    every = curve(conic, HYPERBOLA, "operator", at, starts=400, operator=operator)
    return animate(conic, HYPERBOLA, dict(zip(at, every)), path, what="application")


def branches() -> list[Path]:
    """The wells of docs/branches.md, and one random landscape that turns into another."""

    def wells(x: Tensor, tau: Tensor) -> Tensor:
        return x[..., 0] ** 4 / 4 - x[..., 0] ** 2 / 2 + tau[..., 0] * x[..., 0]

    line, tilts = px.Box(-2.0, 2.0, dim=1), px.Box(-1.0, 1.0, dim=1)
    family = px.Problem.from_function(wells, line, tilts, "tilted wells")
    peaks = px.problem("peaks")
    ends = peaks.sample(2, "test", torch.Generator().manual_seed(0))
    traced = {
        "wells": px.trace(family, [-1.0], [1.0]),
        "branches": px.trace(peaks, *ends, method="lbfgs"),
    }
    for name, found in traced.items():
        found.plot(IMAGES / f"{name}.png")
    return [IMAGES / f"{name}.png" for name in traced]


def himmelblau(path: Path) -> Path:
    """What the operator of the ten lines, whose training takes a minute, finds for (11, 7)."""
    family, operator = map(runpy.run_path(str(TEN_LINES)).get, ("family", "operator"))
    assert isinstance(operator, px.Operator)
    assert isinstance(family, px.Problem)
    family.name = "himmelblau"  # as in the tutorial
    solutions = operator.solve([11, 7], starts=512)
    return plots.draw(family, [11, 7], solutions, path)


if __name__ == "__main__":
    main()
