"""`px.symmetries`, the front door: what it needs is imported when it is called."""

from functools import cache
from typing import Any

from proxlearn.common.checks import count, flag, positive, seed_of
from proxlearn.errors import InputError
from proxlearn.operators.operator import Operator, check_operator
from proxlearn.operators.shipped import pretrained
from proxlearn.shapes.answer import Symmetries
from proxlearn.spaces import Planes

STARTS = 256
TOLERANCE, LOOSEST = 1e-3, 0.05


def symmetries(
    shape: Any,
    operator: Operator | None = None,
    starts: int = STARTS,
    tolerance: float = TOLERANCE,
    seed: int = 0,
    device: str = "auto",
    axes: bool = True,
) -> Symmetries:
    """All planes that reflect a shape onto itself, and all axes about which turns do, in its own
    units.

    * `shape`: a mesh (vertices, faces), points (n, 3), points with normals (n, 6), or the path of a
      file of one of these;
    * `operator`: one trained for `symmetry`; None: the shipped one;
    * `starts`: how many random planes it is applied to;
    * `tolerance`: the largest residual that counts as a symmetry, in parts of the shape's size (the
      longest side of its bounding box). The residual is the mean distance to the shape of its
      points, reflected or turned. Of a cloud, that is not 0 even in a perfect symmetry; there,
      what counts is by how much it is larger. Where a shape is thin in the direction in which
      points are moved, its extent there takes the place of its size;
    * `seed`: fixes the points and the planes that are drawn at random;
    * `device`: where the shipped operator works; another one works where it is;
    * `axes`: with False, planes and families alone are looked for, which takes half of the time.
    """
    from proxlearn.shapes.detect import detected
    from proxlearn.shapes.given import shape_from

    tolerance, starts, seed = (
        positive("tolerance", tolerance),
        count("starts", starts),
        seed_of(seed),
    )
    axes = flag("axes", axes)
    if tolerance > LOOSEST:
        raise InputError(
            f"tolerance is in parts of the shape's size, {TOLERANCE:g} by default: with "
            f"{tolerance:g} nearly any plane would be a mirror. Give at most {LOOSEST:g}."
        )
    given = shape_from(shape)
    if operator is None:
        operator = shipped_operator(device)
    check_operator(operator)
    if operator.instances.kind != "cloud" or not isinstance(operator.space, Planes):
        trained = operator.provenance.get("problem") or "another problem"
        raise InputError(
            f"operator= must be one trained for 'symmetry', which finds mirror planes, not for "
            f"{trained!r}: leave it out for the shipped one. Axes are always found by the operator "
            "that is shipped for 'rotation'."
        )
    turning = turning_operator(str(operator.device)) if axes else None
    return detected(given, operator, turning, starts, tolerance, seed)


def shipped_operator(device: str = "auto") -> Operator:
    """The operator that finds planes, where none is given."""
    return pretrained("symmetry", device)


@cache
def turning_operator(device: str) -> Operator:
    """The operator that finds axes."""
    return pretrained("rotation", device)
