"""What speaks against relying on a list of symmetries, a sentence each."""

import torch

from proxlearn.common.words import counted
from proxlearn.operators.operator import Operator
from proxlearn.shapes.limits import Limits
from proxlearn.shapes.refine import REFLECTING
from proxlearn.shapes.search import ENOUGH, Found
from proxlearn.shapes.target import CloudTarget, Places, Target

ENOUGH_STARTS = 64
THIN = 10.0  # times what reflected points may be off, below which the thinnest extent is
APART = 2.2  # times the farthest of a cloud's own points, that reflected ones may be: noise varies
PEAK = 10.0  # times the mean, that the farthest is of a small feature, and not of noise
# Shares of the points: few clouds of whole parts have both, and most of those with a fifth cut off.
ENDING, NEARLY_ALL = 0.008, 0.94
SMALL = 1_000  # points of a cloud: with fewer, small features are missed
COARSE = 5.0  # times the tolerance, that a turned part of coarse facets may be off


def doubts(found: Found, operator: Operator, limits: Limits, starts: int) -> list[str]:
    """All of them."""
    said = []
    if starts < ENOUGH_STARTS:
        said.append(f"With only {counted(starts, 'start')}, planes may have been missed: give 256.")
    if operator.doubtful:
        said.append(f"The operator is not to be trusted: {operator.doubtful}.")
    if not limits.target.sure:
        said.append(
            "Small features that break a symmetry may have been passed over: to look at the "
            "farthest points needs exact distances. Install libigl: pip install "
            "'proxlearn[meshes]'."
        )
    if isinstance(limits.target, CloudTarget):
        said += of_points(limits.target, limits.tolerance) + of_edges(found, limits.target)
    said += of_places(found, limits)
    return said + of_facets(found, limits) + of_features(found, limits.target)


def of_points(target: CloudTarget, tolerance: float) -> list[str]:
    """A cloud may be too sparse or too noisy."""
    if target.solid:
        return [
            "The points are all over a solid, or too noisy to say where its surface is: any plane "
            "reflects them onto others, and so none is listed. Give points of the surface."
        ]
    said = []
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
    if thinnest(target.cloud[:, :3]) < THIN * (target.noise + tolerance):
        said.append(
            "The cloud is so thin that planes through it may be off, or no mirrors at all, within "
            "its noise and this tolerance: give more exact points, or a mesh."
        )
    return said


def of_places(found: Found, limits: Limits) -> list[str]:
    """A few points may be reflected to where the shape is not, and none of it need be noise."""
    planes, target = found.planes, limits.target
    if isinstance(target, CloudTarget):
        off = planes.worst > APART * target.farthest
    else:
        off = planes.worst > torch.maximum(
            limits.tolerance * limits.reach(planes.planes), PEAK * planes.residual
        )
    if not target.sure or not off.any():
        return []
    count, most = int(off.sum()), _units(float(planes.worst[off].max()), target)
    which = "1 of the planes reflects" if count == 1 else f"{count} of the planes reflect"
    return [
        f"{which} some points to where the shape is not, up to {most} from it: something small may "
        "break the symmetry, or a piece is missing."
    ]


def of_edges(found: Found, target: CloudTarget) -> list[str]:
    """A piece may be missing: the points end somewhere, and a plane matches nearly all of them."""
    if target.solid or target.ending < ENDING or not len(found.rejected.planes):
        return []
    plane, points = found.rejected.planes[None, :1], target.cloud[None, :ENOUGH, :3]
    moved = REFLECTING.moved(plane, points)[0, 0].to(target.device)
    there = float((target.near(moved, target.held).distance <= target.farthest).float().mean())
    if there < NEARLY_ALL:
        return []
    return [
        f"The points end along an edge, and a plane that is not listed matches {there:.0%} of "
        "them: a piece of the surface may be missing, and symmetries with it. Give points of all "
        "of it."
    ]


def thinnest(points: Places) -> float:
    """The least extent of points along their principal axes."""
    middle = points - points.mean(0)
    along = middle @ torch.linalg.eigh((middle.mT @ middle).double())[1].to(points)
    return float((along.amax(0) - along.amin(0)).min())


def of_facets(found: Found, limits: Limits) -> list[str]:
    """Coarse facets may hide that a part is turned."""
    if found.nearly is None:
        return []
    excess = found.nearly.residual - limits.target.noise
    needed = limits.tolerance * excess / (limits.about(found.nearly.line)[0] - limits.target.noise)
    if needed > COARSE * limits.tolerance:
        return []
    return [
        f"All planes through one axis are mirrors with a tolerance of {needed:.2g}: it may be a "
        "turned part of coarse facets."
    ]


def of_features(found: Found, target: Target) -> list[str]:
    """A small feature may break a symmetry."""
    if not len(found.uneven.planes):
        return []
    least = float(found.uneven.worst.min())
    count = len(found.uneven.planes)
    planes = "1 plane matches" if count == 1 else f"{count} planes match"
    return [
        f"{planes} on average, but not in every place, and {'is' if count == 1 else 'are'} not "
        f"listed: the farthest points are off by {_units(least, target)} or more."
    ]


def _units(length: float, target: Target) -> str:
    return f"{target.size * length:.2g} ({length:.2%} of the size)"
