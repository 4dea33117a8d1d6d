"""`px.symmetries`: all mirror planes of a shape, found by an operator, then refined and measured."""

from typing import Any

from torch import Tensor

from proxlearn.common.checks import check_positive
from proxlearn.common.seeds import generator_for
from proxlearn.gpu.devices import pick_device
from proxlearn.operators.operator import Operator
from proxlearn.operators.shipped import pretrained
from proxlearn.shapes.answer import Family, Mirror, Symmetries, Three
from proxlearn.shapes.given import shape_from
from proxlearn.shapes.search import Axis, Found, found_among
from proxlearn.shapes.target import CloudTarget, Target, target_of

TOLERANCE = 1e-3
SMALL = 1_000  # points of a cloud: with fewer, small features are missed
COARSE = 5.0  # times the tolerance, that a turned part of coarse facets may be off


def shipped_operator(device: str = "auto") -> Operator:
    """The operator that finds planes, where none is given."""
    return pretrained("symmetry", device)


def symmetries(
    shape: Any,
    operator: Operator | None = None,
    starts: int = 256,
    tolerance: float = TOLERANCE,
    seed: int = 0,
    device: str = "auto",
) -> Symmetries:
    """All planes that reflect a shape onto itself.

    * `shape`: a mesh (vertices, faces), points (n, 3), points with normals (n, 6), or the path of a
      file of one of these;
    * `operator`: one trained for `symmetry`; None: the shipped one;
    * `starts`: how many random planes it is applied to;
    * `tolerance`: the largest residual that counts as a symmetry, in parts of the shape's size (the
      longest side of its bounding box). The residual is the mean distance to the shape of its
      points, reflected. Of a cloud, that is not 0 even in a perfect symmetry; there, what counts is
      by how much it is larger;
    * `seed`: fixes the points and the planes that are drawn.
    """
    check_positive("tolerance", tolerance)
    if operator is None:
        operator = shipped_operator(device)
    generator = generator_for(seed, "shape", pick_device(device))
    target = target_of(shape_from(shape), generator)
    ends = operator.solve(target.cloud, starts=starts, seed=seed).points[0]
    found = found_among(ends.to(target.cloud), target, tolerance, generator)
    return Symmetries(
        planes=mirrors(found.planes.planes, found.planes.residual, target),
        families=[family_of(found.family, target)] if found.family else [],
        size=target.size,
        tolerance=tolerance,
        best=next(iter(mirrors(*found.rejected, target)), None),
        doubts=doubts(found, operator, target, tolerance),
    )


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
                f"The cloud has only {len(target.points)} points: features smaller than "
                f"{_units(2 * target.spacing, target)} are not seen; better are 2,000 points or more."
            )
        if target.noise > tolerance:
            said.append(
                f"With points so far apart or so noisy, even a perfect mirror has a residual of "
                f"about {_units(target.noise, target)}: what breaks a symmetry by less is not seen."
            )
    nearly = found.nearly
    if nearly and nearly.residual <= target.noise + COARSE * tolerance:
        said.append(
            f"All planes through one axis are mirrors with a tolerance of "
            f"{nearly.residual - target.noise:.2g}: it may be a turned part of coarse facets."
        )
    return said


def _units(length: float, target: Target) -> str:
    return f"{target.size * length:.2g} ({length:.2%} of the size)"
