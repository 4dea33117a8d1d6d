"""From a shape to its symmetries: an operator finds them, then they are refined and measured."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from proxlearn.common.batch import tree_map
from proxlearn.common.seeds import generator_for
from proxlearn.gpu.precision import products_in
from proxlearn.instances.turned_cloud import angles
from proxlearn.meshes.mesh import Cloud, Mesh
from proxlearn.operators.operator import Operator
from proxlearn.shapes.answer import Family, Mirror, Symmetries, Three, Turn
from proxlearn.shapes.search import Axis, Found, found_among
from proxlearn.shapes.target import CloudTarget, Target, target_of
from proxlearn.shapes.turns import Turns, about_family, axes_among

APPLICATIONS = 8  # of the operator; planes are refined afterwards
ORDERS = (2, 3, 5)  # of turns that lines are looked for with
LINES, LINE_APPLICATIONS = 32, 6  # for each order
ENOUGH_STARTS = 64
THIN = 20.0  # times the tolerance, below which the thinnest extent is
SMALL = 1_000  # points of a cloud: with fewer, small features are missed
COARSE = 5.0  # times the tolerance, that a turned part of coarse facets may be off


def detected(
    shape: Mesh | Cloud,
    operator: Operator,
    turning: Operator,
    starts: int,
    tolerance: float,
    seed: int,
) -> Symmetries:
    """As `px.symmetries`, of a shape that is checked; `turning` is an operator for axes."""
    generator = generator_for(seed, "shape", operator.device)
    target = target_of(shape, generator)
    bound = operator.seeing(operator.instances.batch(target.cloud), None)  # without an objective
    run = partial(bound.run, steps=APPLICATIONS, lam=None)
    ends = bound.answer(run, starts, seed).points[0]
    found = found_among(ends.to(target.cloud), target, tolerance, generator)
    axes = axes_of(found, turning, target, tolerance, seed)
    return Symmetries(
        planes=mirrors(found.planes.planes, found.planes.residual, target),
        families=[family_of(found.family, target)] if found.family else [],
        axes=[*turns(axes, target)],
        size=target.size,
        tolerance=tolerance,
        noise=target.noise,
        best=next(iter(mirrors(*found.rejected, target)), None),
        doubts=[*few(starts), *doubts(found, operator, target, tolerance)],
    )


def axes_of(found: Found, operator: Operator, target: Target, tolerance: float, seed: int) -> Turns:
    """The axes of a shape with these planes: of a turned part, that of its family."""
    if found.family:
        return about_family(found.family, target, tolerance)
    ends = ends_of_lines(operator, target, seed)
    return axes_among(ends, found.planes.planes, target, tolerance)


@torch.no_grad()
def ends_of_lines(operator: Operator, target: Target, seed: int) -> Turns:
    """Where an operator takes random lines, for turns of several orders at once."""
    order = torch.tensor(ORDERS, device=operator.device)
    code = operator.encode(operator.instances.batch((target.cloud[None], 2)))
    space, count = operator.space, len(order)
    shared = tree_map(lambda each: each.expand(count, *each.shape[1:]), code)
    prepared = operator.prepare(shared | {"angle": angles(order).to(target.cloud)})
    starts = space.sample(count, LINES, generator=generator_for(seed, "lines")).to(operator.device)
    with products_in(operator.precision):
        ends = operator.repeated(starts, prepared, steps=LINE_APPLICATIONS, space=space)
    every = ends.flatten(0, 1).to(target.cloud)
    return Turns(every, order.repeat_interleave(LINES), torch.zeros_like(every[:, 0]))


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


def turns(axes: Turns, target: Target) -> Iterator[Turn]:
    """The same of axes; of each, the point that is nearest to the shape's middle."""
    direction, point = axes.lines.cpu().double().split(3, -1)
    point = target.size * point + target.center
    for u, p, order, r in zip(direction, point, axes.order.tolist(), axes.residual.tolist()):
        yield Turn(_three(u), _three(p), order, target.size * r, r)


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
