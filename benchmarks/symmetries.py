"""The symmetries of generated parts, as `px.symmetries` lists them: how many of the true planes and
axes are found, how many of those listed are true, turned parts recognised, and seconds a part.

    python benchmarks/symmetries.py [--operator FILE] [--seed 200] [--each 20] [--descents 1]

20 parts of each kind, as exact meshes and as clouds: of points alone, of few points, of noisy ones
(Gaussian, 1% of the size), and with a fifth of the part missing on one side. A plane is found
within one degree and 1% of the part's size; a family, with its axis within the same; an axis, if
its order is right, too. The seed is not one of those that settings were chosen with. Seconds on a
CPU are those that it computes, of all threads together, so that a busy machine counts like an idle
one.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from _shared import Benchmark, options, show
from torch import Tensor

import proxlearn as px
from proxlearn.common.seeds import generator_for
from proxlearn.meshes.mesh import Cloud, Mesh, box, sampled
from proxlearn.meshes.parts import KINDS, Part, part
from proxlearn.operators.load import load
from proxlearn.problems.symmetry import Symmetry
from proxlearn.shapes.detect import family_of, mirrors
from proxlearn.shapes.given import shape_from
from proxlearn.shapes.search import found_among
from proxlearn.shapes.symmetries import STARTS, TOLERANCE, shipped_operator
from proxlearn.shapes.target import Target, target_of
from proxlearn.solvers.descent import Descent
from proxlearn.solvers.pairs import Pairs, candidates

DEGREE, SHARE = math.radians(1.0), 0.01
NOISE = 0.01
OPERATOR = "operator"
COMPARED = ("meshes", "2,048 points")  # with the classical detector
MOVED, RATE = 128, 1e-2  # of particle descent: points that are reflected, and its first rate


def points(count: int, noise: float = 0.0) -> Callable[[Part, torch.Generator], Any]:
    """Points of a part without normals."""

    def cloud(one: Part, generator: torch.Generator) -> Cloud:
        at = sampled(one.mesh, count, generator).points
        return Cloud(at + noise * box(at)[1] * torch.randn(at.shape, generator=generator), None)

    return cloud


def partial(one: Part, generator: torch.Generator) -> Cloud:
    """Points of a part of which a fifth, on one side, was not scanned."""
    at = sampled(one.mesh, 2560, generator).points
    side = at @ torch.randn(3, generator=generator).to(at)
    return Cloud(at[side.argsort()[:2048]], None)


GIVEN: dict[str, Callable[[Part, torch.Generator], Mesh | Cloud]] = {
    "meshes": lambda one, _: one.mesh,
    "2,048 points": points(2048),
    "512 points": points(512),
    "2,048 points, 1% noise": points(2048, NOISE),
    "2,048 points, a fifth cut off": partial,
}


class Count(NamedTuple):
    """Of one part."""

    true: int  # planes that there are
    found: int  # of them
    listed: int
    right: int  # of those listed
    families: int
    recognised: int
    false_families: int
    axes: int  # that there are
    axes_found: int
    axes_listed: int
    axes_right: int


def compared(one: Part, answer: px.Symmetries) -> Count:
    """What was listed beside what there is."""
    middle, size = box(one.mesh.vertices.double())
    true, listed = one.planes.double(), [[*each.normal, each.offset] for each in answer.planes]
    mine = torch.tensor(listed).double().view(-1, 4)
    same = same_planes(about(true, middle), about(mine, middle), size)
    lines = [[*each.axis, *each.point] for each in answer.families]
    families = torch.tensor(lines).double().view(-1, 6)
    alike = same_lines(one.families.double(), families, size)
    turns = [[*each.direction, *each.point, each.order] for each in answer.axes]
    axes = torch.tensor(turns).double().view(-1, 7)
    turned = same_lines(one.axes.double(), axes, size)
    turned &= one.axes.double()[:, None, 6] == axes[:, 6]
    return Count(
        true=len(true),
        found=int(same.any(1).sum()),
        listed=len(mine),
        right=int(same.any(0).sum()),
        families=len(alike),
        recognised=int(alike.any(1).sum()),
        false_families=int((~alike.any(0)).sum()),
        axes=len(one.axes),
        axes_found=int(turned.any(1).sum()),
        axes_listed=len(axes),
        axes_right=int(turned.any(0).sum()),
    )


def about(planes: Tensor, middle: Tensor) -> Tensor:
    """Planes with their offsets from the part's middle."""
    normal, offset = planes.split((3, 1), -1)
    return torch.cat((normal, offset - (normal @ middle)[:, None]), 1)


def same_planes(true: Tensor, mine: Tensor, size: float) -> Tensor:
    cosine = true[:, :3] @ mine[:, :3].T
    apart = (true[:, 3:] - cosine.sign() * mine[:, 3]).abs()
    return (cosine.abs() >= math.cos(DEGREE)) & (apart <= SHARE * size)


def same_lines(true: Tensor, mine: Tensor, size: float) -> Tensor:
    cosine = true[:, :3] @ mine[:, :3].T
    way = true[:, None, 3:6] - mine[None, :, 3:6]
    off = torch.linalg.cross(way, true[:, None, :3].expand_as(way)).norm(dim=-1)
    return (cosine.abs() >= math.cos(DEGREE)) & (off <= SHARE * size)


def by_operator(operator: px.Operator) -> Callable[[Mesh | Cloud, bool], px.Symmetries]:
    return lambda shape, axes: px.symmetries(shape, operator, axes=axes)


class Beside(NamedTuple):
    """Another method: its planes are refined, measured and listed as the operator's are."""

    ends: Callable[[Mesh | Cloud, Target], Tensor]  # as many planes as the operator has starts

    def __call__(self, shape: Mesh | Cloud, axes: bool = False) -> px.Symmetries:
        generator = generator_for(0, "shape")
        shape = shape_from(shape)
        target = target_of(shape, generator)
        found = found_among(self.ends(shape, target), target, TOLERANCE, generator)
        families = [family_of(found.family, target)] if found.family else []
        about = {"size": target.size, "tolerance": TOLERANCE, "noise": target.noise}
        rest: dict[str, Any] = {"axes": [], "best": None, "doubts": []}
        return px.Symmetries(mirrors(found.planes, target), families, **about, **rest)


@torch.no_grad()
def from_pairs(shape: Mesh | Cloud, target: Target) -> Tensor:
    """From the points that the operator sees."""
    cloud = target.cloud[None]
    return Pairs().refined(candidates(cloud, STARTS), cloud)[0]


def from_descent(steps: int) -> Callable[[Mesh | Cloud, Target], Tensor]:
    """From random planes, with the distances that the listing has."""

    def ends(shape: Mesh | Cloud, target: Target) -> Tensor:
        assert isinstance(shape, Mesh)
        problem, generator = (
            Symmetry([shape], turned=False, exact=True),
            generator_for(0, "descent"),
        )
        problem.moves = MOVED
        tau = problem.instances_of(torch.zeros(1, dtype=torch.long), generator)
        starts = problem.space.sample(1, STARTS, generator=generator)
        return Descent(steps=steps, rate=RATE, falling=True).run(problem, tau, starts)[0]

    return ends


def measured(
    run: Benchmark,
    method: str,
    listed: Callable[[Mesh | Cloud, bool], px.Symmetries],
    name: str,
    parts: list[Part],
) -> None:
    """A row of a method for parts that are given in one way."""
    counts, seconds, alone, axes = [], [], [], method == OPERATOR
    clock = time.process_time if run.device.type == "cpu" else time.perf_counter
    for k, one in enumerate(parts):
        shape = GIVEN[name](one, generator_for(k, name))
        began = clock()
        answer = listed(shape, axes)
        seconds.append(clock() - began)
        if axes and name in COMPARED:
            listed(shape, False)
            alone.append(clock() - began - seconds[-1])
        counts.append(compared(one, answer))
    every = Count(*(sum(column) for column in zip(*counts)))
    low, middle, high = np.quantile(seconds, (0.25, 0.5, 0.75)).tolist()
    row = every._asdict() | {
        "axes_recall": every.axes_found / max(1, every.axes),
        "axes_precision": every.axes_right / max(1, every.axes_listed),
    }
    run.add(
        method=method,
        given=name,
        parts=len(parts),
        recall=every.found / max(1, every.true),
        precision=every.right / max(1, every.listed),
        families_recognised=every.recognised / max(1, every.families),
        seconds=middle,
        seconds_low=low,
        seconds_high=high,
        slowest=max(seconds),
        planes_seconds=float(np.median(alone)) if alone else None,
        **{key: value if axes or "axes" not in key else None for key, value in row.items()},
    )
    run.save()  # a busy machine takes an hour for all of them


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--operator", type=Path, help="operator file (default: the shipped one)")
    parser.add_argument("--seed", type=int, default=200, help="of the parts")
    parser.add_argument("--each", type=int, default=20, help="parts of each kind")
    parser.add_argument("--descents", type=int, default=1, help="of these, for particle descent")
    parser.add_argument("--steps", type=int, default=200, help="of particle descent")
    run = Benchmark("symmetries", parser.parse_args(arguments))
    kinds, each = (("washer",), 1) if run.quick else (tuple(KINDS), run.asked.each)
    generator = generator_for(run.asked.seed, "symmetries")
    parts = [part(kind, generator) for kind in kinds for _ in range(each)]
    if run.asked.operator:
        operator = load(run.asked.operator, str(run.device))
    elif run.quick:  # needs no training: it is slower, and finds less
        operator = px.Operator.untrained(Symmetry(), "matching", lam=3.0)
    else:
        operator = shipped_operator(str(run.device))
    px.symmetries(parts[0].mesh, operator)  # what is done once
    for name in GIVEN:
        measured(run, OPERATOR, by_operator(operator), name, parts)
    for name in COMPARED:
        measured(run, "pairs", Beside(from_pairs), name, parts)
    few = [one for k, one in enumerate(parts) if k % each < run.asked.descents]
    if few:
        descent = Beside(from_descent(1 if run.quick else run.asked.steps))
        measured(run, "descent", descent, "meshes", few)
    keys = ["method", "given", "parts", "recall", "precision", "families_recognised"]
    keys += ["false_families", "axes_recall", "axes_precision", "seconds", "planes_seconds"]
    header = ["method", "given", "parts", "planes found", "listed ones true", "families"]
    header += ["false", "axes found", "listed ones true", "seconds", "of planes"]
    show("Symmetries of parts", header, [[row[key] for key in keys] for row in run.rows])


if __name__ == "__main__":
    main()
