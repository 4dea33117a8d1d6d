"""Points scattered evenly over many surfaces at once."""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from proxlearn.meshes.distance import Surface, Which


class Scatter:
    """The surfaces of meshes, as one line in which each mesh has a stretch of length 1 and each of
    its triangles a share of that as large as of the area: a random place in it is a triangle."""

    def __init__(self, surface: Surface):
        self.triangles = surface.triangles
        _, ab, ac, _ = self.triangles.double().unbind(1)
        area = torch.linalg.cross(ab, ac).norm(dim=-1)
        count = surface.first.diff()
        mesh = torch.arange(len(count), device=area.device).repeat_interleave(count)
        whole = area.new_zeros(len(count)).index_add_(0, mesh, area)
        share = area / whole[mesh]
        before = share.cumsum(0)
        begin = torch.cat((before.new_zeros(1), before))[surface.first[:-1]]
        self.ends = (before - begin[mesh]).clamp(max=1.0) + mesh
        self.ends[surface.first[1:] - 1] = torch.arange(1.0, len(count) + 1).to(self.ends)

    def points(self, which: Which, count: int, generator: Generator) -> Float[Tensor, "i n 6"]:
        """So many points of each of the meshes `which`, with the unit normals there."""
        own = {"generator": generator, "device": generator.device}
        place = which[:, None] + torch.rand(len(which), count, dtype=torch.float64, **own)
        triangle = torch.searchsorted(self.ends, place, right=True).clamp(max=len(self.ends) - 1)
        a, ab, ac, normal = self.triangles[triangle].unbind(-2)
        s, t = torch.rand(2, len(which), count, 1, **own)
        folded = s + t > 1  # into the other half of the parallelogram
        s, t = torch.where(folded, 1 - s, s), torch.where(folded, 1 - t, t)
        return torch.cat((a + s * ab + t * ac, normal), -1)
