"""Points without normals: which of them are different, and how the surface lies at each."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from proxlearn.meshes.mesh import box, first_alike
from proxlearn.spaces.base import across

if TYPE_CHECKING:
    from scipy.spatial import KDTree

AROUND = 16  # neighbours of a point that say how its surface lies
ALIKE = 1e-6  # of the size: points nearer to each other are one
POWER = 64  # of a matrix, twice, until only the direction is left that it lengthens the most
ROUND = 1e-14  # of the whole spread, in every direction besides: points on a line have no normal

Places = Float[Tensor, "n 3"]


def different(points: Places) -> Int64[Tensor, " k"]:
    """The first of the points at each place."""
    center, size = box(points)
    cells = ((points - center).double() / max(size, 1e-300) / ALIKE).round().long()
    return (first_alike(cells) == torch.arange(len(points))).nonzero()[:, 0]


def estimated(points: Places) -> Places:
    """The unit normals of a surface at its points, with signs that say nothing: those of the planes
    through the nearest points. Repeated ones count once."""
    from scipy.spatial import KDTree  # takes longer to import than an operator to load

    points = points.cpu()
    some = points[different(points)]
    near = neighbors(KDTree(some.numpy()), points, min(AROUND + 1, len(some)))
    return normals_of(some[near])[0]


def normals_of(around: Float[Tensor, "n c 3"]) -> tuple[Places, Float[Tensor, " n"]]:
    """Of points with their neighbours: the direction in which these spread least, and how much of
    their spread that is: 0 on a flat surface, about 0.2 in a solid."""
    spread = (around - around.mean(1, keepdim=True)).double()
    spread = spread.mT @ spread
    spread = spread / spread.diagonal(0, -2, -1).sum(-1).clamp(min=1e-300)[:, None, None]
    rows = spread + ROUND * torch.eye(3, dtype=spread.dtype, device=spread.device)
    # The adjugate, whose largest eigenvalue is that of the least one here; `eigh` waits for a GPU.
    power = torch.linalg.cross(rows.roll(-1, 1), rows.roll(-2, 1))
    for _ in range(2):
        power = power / power.abs().amax((1, 2), keepdim=True)
        power = torch.linalg.matrix_power(power, POWER)
    longest = power.square().sum(1).argmax(1)[:, None, None].expand(-1, 3, 1)
    normal = torch.nn.functional.normalize(power.gather(2, longest), dim=1)
    return normal[..., 0].float(), (normal.mT @ spread @ normal)[:, 0, 0].float()


def widest_gaps(around: Float[Tensor, "n c 3"], normals: Places) -> Float[Tensor, " n"]:
    """The widest angle without a neighbour, seen along the normal, of points that come first among
    their neighbours: about half a turn where a surface ends."""
    x, y = ((around[:, 1:] - around[:, :1]) @ across(normals)).unbind(-1)
    angle = torch.atan2(y, x).sort(1).values
    last = 2 * torch.pi + angle[:, :1] - angle[:, -1:]
    return torch.cat((angle.diff(dim=1), last), 1).amax(1)


def neighbors(tree: "KDTree", points: Places, count: int) -> Int64[Tensor, "n c"]:
    """The nearest points of a tree, the nearest first."""
    found = tree.query(points.numpy(), count, workers=torch.get_num_threads())[1]
    return torch.from_numpy(found).long().view(len(points), count)
