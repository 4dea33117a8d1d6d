"""Spaces: where `x` lives. How to sample it, project onto it, measure in it, tell what is inside.

A point is a vector of `dim` numbers in the space the set is embedded in; a plane, for instance, is
(n1, n2, n3, d). Spaces are frozen values that work on any device and describe themselves as JSON.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from proxlearn.errors import FileError, InputError

EDGE = 1e-3  # how far outside, as a share of a space's width, still counts as inside


class Space(ABC):
    """A set of points. Every subclass is final, frozen, and rebuilt by `space_from(describe())`."""

    dim: int

    @property
    @abstractmethod
    def diameter(self) -> float:
        """The largest distance between two points: the unit for tolerances and empty sets."""

    @property
    def degrees(self) -> int:
        """In how many independent directions a point can move."""
        return self.dim

    @abstractmethod
    def sample(
        self, *shape: int, generator: Generator | None = None, device: torch.device | str = "cpu"
    ) -> Float[Tensor, "*shape d"]:
        """Uniform points, of shape (*shape, dim), on the device asked for."""

    @abstractmethod
    def project(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        """The nearest point of the space."""

    @abstractmethod
    def contains(self, x: Float[Tensor, "*n d"], edge: float = EDGE) -> Bool[Tensor, "*n"]:
        """Whether each point is inside, up to `edge` (a share of the space's width)."""

    def retract(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        """What a step's raw result becomes: a point of the manifold, its bounds left alone.

        A box has nothing to retract to, so a point that left it is seen to have left.
        """
        return self.project(x)

    @property
    def bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The lowest and highest value of every coordinate, infinite where nothing bounds it."""
        return (-math.inf,) * self.dim, (math.inf,) * self.dim

    def tangent(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d k"]:
        """Orthonormal directions, one a column, in which a step from x stays in the space to first
        order. A bounded coordinate has a direction of its own."""
        return torch.eye(self.dim, dtype=x.dtype, device=x.device).expand(*x.shape, self.dim)

    def squared_distance(
        self, x: Float[Tensor, "*n d"], y: Float[Tensor, "*n d"]
    ) -> Float[Tensor, "*n"]:
        """The squared distance of the proximal term, `|y - x|^2` in eq. (2)."""
        return (x - y).square().sum(-1)

    def pairwise(
        self, x: Float[Tensor, "*i n d"], y: Float[Tensor, "*i m d"]
    ) -> Float[Tensor, "*i n m"]:
        """All distances from the points of one set to those of another."""
        return _distances(x, y)

    @property
    def euclidean(self) -> bool:
        """Whether `pairwise` is the Euclidean distance of coordinates, which a tree can search."""
        return True

    def to_unit(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        """Coordinates of about unit size, which a network works in."""
        return x

    def from_unit(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        """The inverse of `to_unit`."""
        return x

    def describe(self) -> dict[str, Any]:
        """The space as JSON."""
        return {"kind": type(self).__name__} | {f.name: getattr(self, f.name) for f in fields(self)}  # pyright: ignore[reportArgumentType]


def _tensor(values: tuple[float, ...], like: Tensor) -> Tensor:
    """Constants on a tensor's device; made once, since a copy to a GPU takes its time."""
    return _constant(values, like.device, like.dtype)


@lru_cache(maxsize=256)
def _constant(values: tuple[float, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    return torch.tensor(values, device=device, dtype=dtype)


@dataclass(frozen=True, init=False)
class Box(Space):
    """`[low, high]^dim`, or a box with its own bounds for every coordinate."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __init__(
        self, low: float | Sequence[float], high: float | Sequence[float], dim: int | None = None
    ):
        low, high = _bounds("low", low, dim), _bounds("high", high, dim)
        if len(low) != len(high):
            raise InputError(
                f"Box has {len(low)} lower and {len(high)} upper bounds: give as many of each, "
                "or one number and dim=."
            )
        for k, (a, b) in enumerate(zip(low, high)):
            if not (math.isfinite(a) and math.isfinite(b) and a < b):
                raise InputError(
                    f"Box needs finite bounds with low < high, but coordinate {k} has "
                    f"low = {a:g} and high = {b:g}."
                )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def dim(self) -> int:
        return len(self.low)

    @property
    def diameter(self) -> float:
        return math.dist(self.low, self.high)

    @property
    def _width(self) -> tuple[float, ...]:
        return tuple(b - a for a, b in zip(self.low, self.high))

    @property
    def _center(self) -> tuple[float, ...]:
        return tuple((a + b) / 2 for a, b in zip(self.low, self.high))

    @property
    def bounds(self):
        return self.low, self.high

    def sample(self, *shape, generator=None, device="cpu"):
        unit = torch.rand(*shape, self.dim, generator=generator, device=device)
        return torch.addcmul(_tensor(self.low, unit), unit, _tensor(self._width, unit))

    def project(self, x):
        return x.clamp(_tensor(self.low, x), _tensor(self.high, x))

    def retract(self, x):
        return x

    def contains(self, x, edge=EDGE):
        reach = tuple((0.5 + edge) * width for width in self._width)
        return ((x - _tensor(self._center, x)).abs() <= _tensor(reach, x)).all(-1)

    def to_unit(self, x):
        scale = tuple(2 / width for width in self._width)
        origin = tuple(-center * each for center, each in zip(self._center, scale))
        return torch.addcmul(_tensor(origin, x), x, _tensor(scale, x))

    def from_unit(self, x):
        half = tuple(width / 2 for width in self._width)
        return torch.addcmul(_tensor(self._center, x), x, _tensor(half, x))


def _bounds(name: str, value: float | Sequence[float], dim: int | None) -> tuple[float, ...]:
    """One bound for each coordinate."""
    if isinstance(value, (int, float)):
        if dim is None:
            raise InputError(f"Box got one number for {name}: say dim=, or give one a coordinate.")
        _positive("Box", "dim", dim)
        return (float(value),) * dim
    values = tuple(float(v) for v in value)
    if dim is not None and len(values) != dim:
        raise InputError(f"Box has dim = {dim} but {len(values)} bounds in {name}.")
    return values


@dataclass(frozen=True)
class Circles(Space):
    """`(S^1)^n`: n unit vectors of the plane, one after the other, in `R^2n`."""

    n: int

    def __post_init__(self):
        _positive("Circles", "n", self.n)

    @property
    def dim(self) -> int:
        return 2 * self.n

    @property
    def diameter(self) -> float:
        return 2 * math.sqrt(self.n)

    @property
    def degrees(self) -> int:
        return self.n

    def sample(self, *shape, generator=None, device="cpu"):
        angle = 2 * math.pi * torch.rand(*shape, self.n, generator=generator, device=device)
        return torch.stack((angle.cos(), angle.sin()), -1).flatten(-2)

    def project(self, x):
        return _unit(x.unflatten(-1, (self.n, 2))).flatten(-2)

    def contains(self, x, edge=EDGE):
        return ((x.unflatten(-1, (self.n, 2)).norm(dim=-1) - 1).abs() <= 2 * edge).all(-1)

    def tangent(self, x):
        u, v = x.unflatten(-1, (self.n, 2)).unbind(-1)
        return (
            torch.stack((-v, u), -1)[..., None]
            .mul(torch.eye(self.n, dtype=x.dtype, device=x.device)[:, None])
            .flatten(-3, -2)
        )


@dataclass(frozen=True)
class Signs(Space):
    """`{-1, 1}^n`: the corners of a cube, between which there is no way."""

    n: int

    def __post_init__(self):
        _positive("Signs", "n", self.n)

    @property
    def dim(self) -> int:
        return self.n

    @property
    def diameter(self) -> float:
        return 2 * math.sqrt(self.n)

    @property
    def degrees(self) -> int:
        return 0

    def sample(self, *shape, generator=None, device="cpu"):
        return self.project(torch.rand(*shape, self.n, generator=generator, device=device) - 0.5)

    def project(self, x):
        return torch.where(x < 0, -1.0, 1.0).to(x)

    def retract(self, x):
        return x

    def contains(self, x, edge=EDGE):
        return ((x.abs() - 1).abs() <= 2 * edge).all(-1)

    def tangent(self, x):
        return x.new_zeros(*x.shape, 0)


@dataclass(frozen=True)
class Sphere(Space):
    """`S^(dim-1)`: unit vectors of `R^dim`."""

    dim: int

    def __post_init__(self):
        _positive("Sphere", "dim", self.dim)

    @property
    def diameter(self) -> float:
        return 2.0

    @property
    def degrees(self) -> int:
        return self.dim - 1

    def sample(self, *shape, generator=None, device="cpu"):
        return _unit(torch.randn(*shape, self.dim, generator=generator, device=device))

    def project(self, x):
        return _unit(x)

    def contains(self, x, edge=EDGE):
        return (x.norm(dim=-1) - 1).abs() <= 2 * edge

    def tangent(self, x):
        return _across(x)


@dataclass(frozen=True)
class Planes(Space):
    """`S^2 x R>=0`: the plane `n . p = d` as (n, d), sampled with d up to `reach`.

    (n, d) and (-n, -d) are one plane; the distance is the shorter way of the two, so that planes
    through the origin are neighbours of their mirror images.
    """

    reach: float = 1.0

    def __post_init__(self):
        _positive("Planes", "reach", self.reach)

    @property
    def dim(self) -> int:
        return 4

    @property
    def diameter(self) -> float:
        return math.hypot(2.0, self.reach)

    @property
    def degrees(self) -> int:
        return 3

    def sample(self, *shape, generator=None, device="cpu"):
        normal = _unit(torch.randn(*shape, 3, generator=generator, device=device))
        offset = self.reach * torch.rand(*shape, 1, generator=generator, device=device)
        return torch.cat((normal, offset), -1)

    def project(self, x):
        x = self.retract(x)
        return torch.cat((x[..., :3], x[..., 3:].clamp(max=self.reach)), -1)

    def retract(self, x):
        x = torch.where(x[..., 3:] < 0, -x, x)  # the same plane, described from its other side
        return torch.cat((_unit(x[..., :3]), x[..., 3:]), -1)

    def contains(self, x, edge=EDGE):
        on_sphere = (x[..., :3].norm(dim=-1) - 1).abs() <= 2 * edge
        slack = edge * self.reach
        return on_sphere & (x[..., 3] >= -slack) & (x[..., 3] <= self.reach + slack)

    @property
    def bounds(self):
        return (-math.inf,) * 4, (math.inf,) * 3 + (self.reach,)  # d < 0 is the other side's d > 0

    def tangent(self, x):
        return _side_by_side([_across(x[..., :3]), torch.ones_like(x[..., 3:, None])])

    def squared_distance(self, x, y):
        return torch.minimum((x - y).square().sum(-1), (x + y).square().sum(-1))

    @property
    def euclidean(self):
        return False

    def pairwise(self, x, y):
        return torch.minimum(super().pairwise(x, y), super().pairwise(x, -y))


@dataclass(frozen=True, init=False)
class Product(Space):
    """Several spaces side by side: the coordinates of the first, then of the second, and so on."""

    parts: tuple[Space, ...]

    def __init__(self, *parts: Space):
        if not parts:
            raise InputError("Product needs at least one space, for instance Product(Sphere(3)).")
        object.__setattr__(self, "parts", parts)

    @property
    def dim(self) -> int:
        return sum(part.dim for part in self.parts)

    @property
    def diameter(self) -> float:
        return math.hypot(*(part.diameter for part in self.parts))

    @property
    def degrees(self) -> int:
        return sum(part.degrees for part in self.parts)

    def _split(self, x: Tensor) -> list[tuple[Space, Tensor]]:
        return list(zip(self.parts, x.split([part.dim for part in self.parts], -1)))

    def sample(self, *shape, generator=None, device="cpu"):
        return torch.cat(
            [part.sample(*shape, generator=generator, device=device) for part in self.parts], -1
        )

    def project(self, x):
        return torch.cat([part.project(piece) for part, piece in self._split(x)], -1)

    def retract(self, x):
        return torch.cat([part.retract(piece) for part, piece in self._split(x)], -1)

    def contains(self, x, edge=EDGE):
        return torch.stack([part.contains(piece, edge) for part, piece in self._split(x)]).all(0)

    @property
    def bounds(self):
        low, high = zip(*(part.bounds for part in self.parts))
        return sum(low, ()), sum(high, ())

    def tangent(self, x):
        return _side_by_side([part.tangent(piece) for part, piece in self._split(x)])

    def squared_distance(self, x, y):
        pairs = zip(self._split(x), self._split(y))
        return torch.stack([part.squared_distance(a, b) for (part, a), (_, b) in pairs]).sum(0)

    @property
    def euclidean(self):
        return all(part.euclidean for part in self.parts)

    def pairwise(self, x, y):
        pairs = zip(self._split(x), self._split(y))
        squares = [part.pairwise(a, b).square() for (part, a), (_, b) in pairs]
        return torch.stack(squares).sum(0).sqrt()

    def to_unit(self, x):
        return torch.cat([part.to_unit(piece) for part, piece in self._split(x)], -1)

    def from_unit(self, x):
        return torch.cat([part.from_unit(piece) for part, piece in self._split(x)], -1)

    def describe(self):
        return {"kind": "Product", "parts": [part.describe() for part in self.parts]}


def space_from(description: dict[str, Any]) -> Space:
    """Rebuild a space from what `Space.describe` wrote."""
    settings = dict(description)
    kind = settings.pop("kind", None)
    if kind == "Product":
        return Product(*(space_from(part) for part in settings["parts"]))
    kinds = {space.__name__: space for space in (Box, Circles, Signs, Sphere, Planes)}
    if kind not in kinds:
        raise FileError(f"A space of kind {kind!r} is not known; this version has {sorted(kinds)}.")
    return kinds[kind](**settings)


def _distances(x: Tensor, y: Tensor) -> Tensor:
    """Euclidean distances. On a GPU coordinate by coordinate, unless there are very many: `cdist`
    spends a whole warp on every pair there."""
    if not x.is_cuda or x.shape[-1] > 64:
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    total = x.new_zeros(())
    for a, b in zip(x.unbind(-1), y.unbind(-1)):
        way = a[..., :, None] - b[..., None, :]
        total = torch.addcmul(total, way, way)
    return total.sqrt()


def _unit(x: Tensor) -> Tensor:
    """`x / |x|`; the zero vector, which has no direction, becomes the first axis."""
    first = torch.zeros_like(x)
    first[..., 0] = 1
    zero = x.norm(dim=-1, keepdim=True) < 1e-12
    return torch.nn.functional.normalize(torch.where(zero, first, x), dim=-1)


def _across(x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d k"]:
    """Orthonormal directions at right angles to a unit vector: the reflection that takes it to the
    first axis takes the other axes to them."""
    mirror = x.clone()
    mirror[..., 0] += torch.where(x[..., 0] < 0, -1.0, 1.0)
    mirror = torch.nn.functional.normalize(mirror, dim=-1)
    axes = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    return (axes - 2 * mirror[..., :, None] * mirror[..., None, :])[..., 1:]


def _side_by_side(bases: list[Tensor]) -> Float[Tensor, "*n d k"]:
    """The directions of several spaces as those of their product: blocks on the diagonal."""
    rows, columns = (sum(each.shape[axis] for each in bases) for axis in (-2, -1))
    whole, row, column = bases[0].new_zeros(*bases[0].shape[:-2], rows, columns), 0, 0
    for each in bases:
        d, k = each.shape[-2:]
        whole[..., row : row + d, column : column + k] = each
        row, column = row + d, column + k
    return whole


def _positive(space: str, name: str, value: float) -> None:
    if not value > 0:
        raise InputError(f"{space} needs {name} > 0, but got {value}.")
