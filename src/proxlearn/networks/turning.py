"""The network for axes of symmetry: every line turns points of the cloud that is tau by 1/k of the
whole, both ways, and goes where they match better (see `_looking.py`).

In the frame of a line, with u along it, a point is (h, z): its height and a complex number. Turned,
it is at `(h, z') = (h, e^(i phi) z)`. If the line turns by t and shifts by s, complex numbers both,
then a turned point goes along w = (w_u, w_z) by the real part of
`conj(1 - e^(-i phi)) conj(h w_z - w_u z') t + conj(1 - e^(-i phi)) conj(w_z) s`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.batch import Points, pieces
from proxlearn.instances.turned_cloud import TurnedClouds, angles
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
from proxlearn.spaces import Lines
from proxlearn.spaces.base import across

AT_ONCE = 1 << 22  # turned points that are matched together


@dataclass(frozen=True)
class Turning(Looking):
    """The sizes of the network."""

    reflected: int = 256

    def refuses(self, space, instances):
        if isinstance(instances, TurnedClouds) and isinstance(space, Lines):
            return None
        return f"it is for lines of clouds with an order, not for {space} and {instances.words}"

    def build(self, space, instances, lams, encoder):
        return TurningNetwork(self, lams)


class TurningNetwork(LookingNetwork):
    """What lines see of their matches, and how much of each step they take."""

    space = Lines()
    code_size: int = 2

    def encode(self, observed):
        angle = angles(observed["order"]).to(observed["cloud"])
        return self.look_at(observed["cloud"]) | {"angle": angle}

    def prepare(self, code, lam):
        prepared = super().prepare(code, lam)
        share = code["angle"][:, None] / torch.pi
        return prepared | {"code": torch.cat((prepared["code"], share), -1)}

    def looked(self, x, basis, prepared):
        to_discs = self.architecture.to_discs
        if x.is_cuda:
            from proxlearn.networks.turning_kernel import looked as fused

            return fused(x, basis, prepared, looking.constants(14, to_discs))
        most = max(1, AT_ONCE // (2 * prepared["some"].shape[1]))
        if x.shape[0] * x.shape[1] <= most:
            return looked(x, basis, prepared, to_discs)
        every = []
        both = torch.cat((x, basis.flatten(2)), -1)
        for _, _, some, each in pieces(prepared, both, most):
            every.append(looked(each[..., :6], each[..., 6:].unflatten(-1, (6, 4)), some, to_discs))
        return torch.cat([each.flatten(0, 1) for each in every]).view(*x.shape[:2], -1)


class Turned(NamedTuple):
    """Turned points, both ways, in the frames of their lines: heights and complex numbers."""

    height: Float[Tensor, "i n m"]
    real: Float[Tensor, "i n m"]
    imaginary: Float[Tensor, "i n m"]


def looked(
    x: Points,
    basis: Float[Tensor, "i n 6 4"],
    prepared: Prepared,
    to_discs: tuple[float, ...] = (),
) -> Float[Tensor, "i n f"]:
    """What every line sees, summed over the points that it turns."""
    axis, center = x.split(3, -1)
    sideways = across(axis)
    frame = torch.cat((axis[..., None, :], sideways.mT), -2)  # (i n 3 3)
    middle = frame @ center[..., None]  # (i n 3 1)
    point, own = prepared["some"].split(3, -1)
    angle = prepared["angle"][:, None, None]
    at = [each - shift for each, shift in zip(in_frame(frame, point), middle.unbind(-2))]
    turned = _turned(at, angle)
    normals = dots(_turned(in_frame(frame, own), angle), frame.mT)
    moved = [p + c[..., None] for p, c in zip(dots(turned, frame.mT), center.unbind(-1))]
    place, other = looking.matched(moved, normals, prepared)
    way = [r - q for r, q in zip(moved, place)]
    apart, far, facing = dot(way, other), dot(way, way), dot(normals, other)
    even = sideways.mT @ basis[..., :3, :2]
    rows, found = _rows(turned, dots(other, frame), apart, angle, even), []
    for scale in TO_PLANES:
        weight = facing.square() * (apart.square() + scale**2).rsqrt()
        found.append(looking.equations(weight, rows))
    ways, errors = torch.eye(3, dtype=x.dtype, device=x.device), dots(way, frame)
    every = [
        _rows(turned, [each.expand_as(apart) for each in one], error, angle, even)
        for one, error in zip(ways, errors)
    ]
    rows = torch.cat(every, -1)
    for scale in TO_POINTS:
        weight = (far + scale**2).rsqrt()
        found.append(looking.equations(weight.repeat(1, 1, 3), rows))
    if to_discs:
        direction, off = looking.to_disc(way, apart, other, prepared["radius"])
        rows = _rows(turned, dots(direction, frame), off, angle, even)
        for scale in to_discs:
            found.append(looking.equations((off.square() + scale**2).rsqrt(), rows))
    return torch.cat((*found, looking.counts(apart, far, facing)), -1)


def _turned(vectors: looking.Three, angle: Float[Tensor, "i 1 1"]) -> Turned:
    """Vectors in the frame of a line, turned one way, then the other."""
    height, a, b = vectors
    cos, sin = angle.cos(), angle.sin()
    real = torch.cat((cos * a - sin * b, cos * a + sin * b), -1)
    imaginary = torch.cat((cos * b + sin * a, cos * b - sin * a), -1)
    return Turned(height.repeat(1, 1, 2), real, imaginary)


def _rows(
    turned: Turned,
    ways: looking.Three,
    error: Float[Tensor, "i n m"],
    angle: Float[Tensor, "i 1 1"],
    even: Float[Tensor, "i n 2 2"],
) -> Float[Tensor, "i n 5 m"]:
    """The slopes of turned points along ways in the frame, and the errors along these; `even` is
    what turns of the line are made of in its basis."""
    up, a, b = ways
    ones = error.new_ones(error.shape[-1] // 2)
    real = 1 - angle.cos()
    imaginary = torch.cat((ones, -ones)) * angle.sin()  # with the real part, 1 - e^(-i phi)

    def times(c: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
        return real * c - imaginary * d, real * d + imaginary * c

    turns = times(turned.height * a - up * turned.real, turned.height * b - up * turned.imaginary)
    turns = even.mT @ torch.stack(turns, -2)
    return torch.cat((turns, torch.stack((*times(a, b), error), -2)), -2)
