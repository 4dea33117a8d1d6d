"""From a shape to its symmetries: an operator finds them, then they are refined and measured."""

from functools import partial

import torch
from torch import Tensor

from proxlearn.common.seeds import generator_for
from proxlearn.meshes.mesh import Cloud, Mesh
from proxlearn.operators.operator import Operator
from proxlearn.shapes.answer import Family, Mirror, Symmetries, Three
from proxlearn.shapes.search import Axis, Found, found_among
from proxlearn.shapes.target import CloudTarget, Target, target_of

APPLICATIONS = 8  # of the operator; planes are refined afterwards
ENOUGH_STARTS = 64
THIN = 20.0  # times the tolerance, below which the thinnest extent is
SMALL = 1_000  # points of a cloud: with fewer, small features are missed
COARSE = 5.0  # times the tolerance, that a turned part of coarse facets may be off


def detected(
    shape: Mesh | Cloud, operator: Operator, starts: int, tolerance: float, seed: int
) -> Symmetries:
    """As `px.symmetries`, of a shape that is checked."""
    generator = generator_for(seed, "shape", operator.device)
    target = target_of(shape, generator)
    bound = operator.seeing(operator.instances.batch(target.cloud), None)  # without an objective
    run = partial(bound.run, steps=APPLICATIONS, lam=None)
    ends = bound.answer(run, starts, seed).points[0]
    found = found_among(ends.to(target.cloud), target, tolerance, generator)
    return Symmetries(
        planes=mirrors(found.planes.planes, found.planes.residual, target),
        families=[family_of(found.family, target)] if found.family else [],
        size=target.size,
        tolerance=tolerance,
        noise=target.noise,
        best=next(iter(mirrors(*found.rejected, target)), None),
        doubts=[*few(starts), *doubts(found, operator, target, tolerance)],
    )


def few(starts: int) -> list[str]:
    """A doubt where planes may be missing for want of starts."""
    if starts >= ENOUGH_STARTS:
        return []
    return [f"With only {starts} starts, planes may have been missed: give 256."]


def mirrors(planes: Tensor, residual: Tensor, target: Target) -> list[Mirror]:
    """Planes in the shape's own units and pose, with offsets of 0 or more."""
    planes = planes.cpu().double()
    offset = target.size * planes[:, 3] + planes[:, :3] @ target.center.double()
    sign = 1.0 - 2.0 * (offset < 0)
    return [
        Mirror(_three(n), d, target.size * r, r)
        for n, d, r in zip(
            planes[:, :3] * sign[:, None], (offset * sign).tolist(), residual.tolist()
        )
    ]


def family_of(family: Axis, target: Target) -> Family:
    """The same of a family; of its axis, the point that is nearest to the shape's middle."""
    (axis, point), residual, every = family
    point = target.size * point.cpu().double() + target.center
    return Family(_three(axis), _three(point), target.size * residual, residual, every)


def _three(vector: Tensor) -> Three:
    x, y, z = vector.tolist()
    return x, y, z


def doubts(found: Found, operator: Operator, target: Target, tolerance: float) -> list[str]:
    """What speaks against relying on the answer, a sentence each."""
    said = []
    if operator.doubtful:
        said.append(f"The operator is not to be trusted: {operator.doubtful}.")
    if isinstance(target, CloudTarget):
        if len(target.points) < SMALL:
            said.append(
                f"The cloud has only {len(target.points)} points, so that features smaller than "
                f"{_units(2 * target.spacing, target)} are not seen: give 2,000 or more."
            )
        if target.noise > tolerance:
            said.append(
                f"With points so far apart or so noisy, even a perfect mirror has a residual of "
                f"about {_units(target.noise, target)}: what breaks a symmetry by less is not seen."
            )
    if thinnest(target.cloud[:, :3]) < THIN * tolerance:
        said.append(
            "The shape is so thin that planes through it may be off, or no mirrors at all, within "
            "this tolerance: give a smaller one."
        )
    nearly = found.nearly
    if nearly and nearly.residual <= target.noise + COARSE * tolerance:
        said.append(
            f"All planes through one axis are mirrors with a tolerance of "
            f"{nearly.residual - target.noise:.2g}: it may be a turned part of coarse facets."
        )
    return said


def thinnest(points: Tensor) -> float:
    """The least extent of points along their principal axes."""
    middle = points - points.mean(0)
    along = middle @ torch.linalg.eigh((middle.mT @ middle).double())[1].to(points)
    return float((along.amax(0) - along.amin(0)).min())


def _units(length: float, target: Target) -> str:
    return f"{target.size * length:.2g} ({length:.2%} of the size)"
