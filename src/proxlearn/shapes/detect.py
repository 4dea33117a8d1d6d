"""From a shape to its symmetries: an operator finds them, then they are refined and measured."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers.starts import starting_points
from proxlearn.common.batch import move, tree_map
from proxlearn.common.seeds import generator_for
from proxlearn.gpu.precision import products_in
from proxlearn.instances.turned_cloud import angles
from proxlearn.meshes.mesh import Cloud, Mesh
from proxlearn.operators.operator import Operator
from proxlearn.shapes.answer import Family, Mirror, Symmetries, Three, Turn
from proxlearn.shapes.doubts import doubts
from proxlearn.shapes.families import Axis
from proxlearn.shapes.limits import Limits
from proxlearn.shapes.refine import Measured
from proxlearn.shapes.search import Found, found_among
from proxlearn.shapes.target import Target, target_of
from proxlearn.shapes.turns import Turns, about_family, axes_among

APPLICATIONS = 8  # of the operator; planes are refined afterwards
ORDERS = (2, 3, 5)  # of turns that lines are looked for with
LINES, LINE_APPLICATIONS = 32, 6  # for each order


def detected(
    shape: Mesh | Cloud,
    operator: Operator,
    turning: Operator | None,
    starts: int,
    tolerance: float,
    seed: int,
) -> Symmetries:
    """As `px.symmetries`, of a shape that is checked; `turning` is an operator for axes, None where
    they are not asked for."""
    generator = generator_for(seed, "shape")
    target = target_of(shape, generator, operator.device)
    ends = ends_of_planes(operator, target, starts, seed)
    found, axes = found_among(ends, target, tolerance, generator), ()
    if target.solid:
        found = found.distrusted()
    elif turning:
        axes = turns(axes_of(found, turning, target, tolerance, seed), target)
    return Symmetries(
        planes=mirrors(found.planes, target),
        families=[family_of(found.family, target)] if found.family else [],
        axes=[*axes],
        size=target.size,
        tolerance=tolerance,
        noise=target.noise,
        best=next(iter(mirrors(found.uneven.and_these(found.rejected), target)), None),
        doubts=doubts(found, operator, Limits(target, tolerance), starts),
    )


def axes_of(found: Found, operator: Operator, target: Target, tolerance: float, seed: int) -> Turns:
    """The axes of a shape with these planes: of a turned part, that of its family."""
    if found.family:
        return about_family(found.family, target, tolerance)
    ends = ends_of_lines(operator, target, seed)
    return axes_among(ends, found.planes.planes, target, tolerance)


def ends_of_planes(
    operator: Operator, target: Target, starts: int, seed: int
) -> Float[Tensor, "k 4"]:
    """Where an operator takes so many random planes."""
    bound = operator.seeing(operator.instances.batch(target.cloud), None)  # without an objective
    at = starting_points(bound.space, starts, 1, seed, operator.device)
    return bound.run(at, APPLICATIONS, None).points[0].to(target.cloud)


@torch.no_grad()
def ends_of_lines(operator: Operator, target: Target, seed: int) -> Turns:
    """Where an operator takes random lines, for turns of several orders at once."""
    order = torch.tensor(ORDERS)
    code = operator.encode(move(operator.instances.batch((target.cloud[None], 2)), operator.device))
    space, count = operator.space, len(order)
    shared = tree_map(lambda each: each.expand(count, *each.shape[1:]), code)
    prepared = operator.prepare(
        shared | {"angle": angles(order).to(operator.device, torch.float32)}
    )
    starts = space.sample(count, LINES, generator=generator_for(seed, "lines")).to(operator.device)
    with products_in(operator.precision):
        ends = operator.repeated(starts, prepared, steps=LINE_APPLICATIONS, space=space)
    every = ends.flatten(0, 1).to(target.cloud)
    return Turns.unknown(every, order.repeat_interleave(LINES))


def mirrors(found: Measured, target: Target) -> list[Mirror]:
    """Planes in the shape's own units and pose."""
    planes, size = pointing(found.planes.double()), target.size
    offset = size * planes[:, 3] + planes[:, :3] @ target.center.double()
    every = zip(planes[:, :3], offset.tolist(), found.residual.tolist(), found.worst.tolist())
    return [Mirror(_three(n), d, size * r, r, size * worst) for n, d, r, worst in every]


def turns(axes: Turns, target: Target) -> Iterator[Turn]:
    """The same of axes; of each, the point that is nearest to the shape's middle."""
    direction, point = pointing(axes.lines.double()).split(3, -1)
    point, size = target.size * point + target.center, target.size
    rows = zip(direction, point, axes.order.tolist(), axes.residual.tolist(), axes.worst.tolist())
    for u, p, order, r, worst in rows:
        yield Turn(_three(u), _three(p), order, size * r, r, size * worst)


def family_of(family: Axis, target: Target) -> Family:
    """The same of a family; of its axis, the point that is nearest to the shape's middle."""
    (axis, point), residual, worst, every = family
    axis, point = pointing(torch.cat((axis, point)).double()[None])[0].split(3)
    point, size = target.size * point + target.center, target.size
    return Family(_three(axis), _three(point), size * residual, residual, size * worst, every)


def pointing(rows: Float[Tensor, "k d"]) -> Float[Tensor, "k d"]:
    """Planes (k 4) or lines (k 6) described from the side that does not depend on rounding: the
    first coordinate of the direction that is not small is positive, and no zero is negative."""
    direction = rows[:, :3]
    large = direction.abs() >= direction.abs().amax(1, keepdim=True) / 2
    first = direction.gather(1, large.int().argmax(1, keepdim=True))
    turned = rows if rows.shape[1] == 4 else direction
    return torch.cat((turned * first.sign(), rows[:, turned.shape[1] :]), 1) + 0.0


def _three(vector: Tensor) -> Three:
    x, y, z = vector.tolist()
    return x, y, z
