"""The network for planes of symmetry: every plane reflects points of the cloud that is tau, and
goes where they match better (see `_looking.py`)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.batch import Points
from proxlearn.instances.cloud import Clouds
from proxlearn.networks import _looking as looking
from proxlearn.networks._looking import (
    TO_PLANES,
    TO_POINTS,
    Looking,
    LookingNetwork,
    dot,
    dots,
    in_frame,
)
from proxlearn.networks.base import Prepared
from proxlearn.spaces import Planes


@dataclass(frozen=True)
class Matching(Looking):
    """The sizes of the network."""

    def refuses(self, space, instances):
        if isinstance(instances, Clouds) and isinstance(space, Planes):
            return None
        return f"it is for planes of clouds, not for {space} and {instances.words}"

    def build(self, space, instances, lams, encoder):
        return MatchingNetwork(self, lams)


class MatchingNetwork(LookingNetwork):
    """What planes see of their matches, and how much of each step they take."""

    space = Planes()

    def encode(self, observed):
        return self.look_at(observed)

    def looked(self, x, basis, prepared):
        return looked(x, basis, prepared, self.architecture.to_discs)


def looked(
    x: Points,
    basis: Float[Tensor, "i n 4 3"],
    prepared: Prepared,
    to_discs: tuple[float, ...] = (),
) -> Float[Tensor, "i n f"]:
    """What every plane sees, summed over the points that it reflects."""
    if x.is_cuda:
        from proxlearn.networks.matching_kernel import looked as fused

        return fused(x, basis, prepared, looking.constants(9, to_discs))
    frame = torch.stack((x[..., :3], basis[..., :3, 0], basis[..., :3, 1]), -2)  # (i n 3 3)
    point, own = prepared["some"].split(3, -1)
    height, along, sideways = in_frame(frame, point)  # (i n k) each, as all that follows
    height = height - x[..., 3:]
    turn = in_frame(frame[..., :1, :], own)[0]
    normal = x[..., :3].unbind(-1)
    moved = [p[:, None] - 2 * height * n[..., None] for p, n in zip(point.unbind(-1), normal)]
    turned = [o[:, None] - 2 * turn * n[..., None] for o, n in zip(own.unbind(-1), normal)]
    place, other = looking.matched(moved, turned, prepared)
    way = [r - q for r, q in zip(moved, place)]
    apart, far, facing = dot(way, other), dot(way, way), dot(turned, other)
    level, ahead, aside = dots(way, frame)

    def slopes(up: Tensor, forth: Tensor, side: Tensor) -> tuple[Tensor, ...]:
        """How far reflected points go along these ways."""
        return -2 * (along * up + height * forth), -2 * (sideways * up + height * side), 2 * up

    rows, found = torch.stack((*slopes(*dots(other, frame)), apart), -2), []
    for scale in TO_PLANES:
        weight = facing.square() * (apart.square() + scale**2).rsqrt()
        found.append(looking.equations(weight, rows))
    rows = torch.stack((-2 * along, -2 * sideways, torch.full_like(along, 2.0), level), -2)
    for scale in TO_POINTS:
        weight = (far + scale**2).rsqrt()
        equations, tilt = looking.equations(weight, rows), weight * height
        equations[..., (0, 3)] += 4 * (tilt * height).sum(-1, keepdim=True)
        equations[..., 6] -= 2 * (tilt * ahead).sum(-1)
        equations[..., 7] -= 2 * (tilt * aside).sum(-1)
        found.append(equations)
    if to_discs:
        direction, off = looking.to_disc(way, apart, other, prepared["radius"])
        rows = torch.stack((*slopes(*dots(direction, frame)), off), -2)
        for scale in to_discs:
            found.append(looking.equations((off.square() + scale**2).rsqrt(), rows))
    return torch.cat((*found, looking.counts(apart, far, facing)), -1)
