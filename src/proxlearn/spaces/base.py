"""What every space promises. A point is a vector of `dim` numbers in the space that the set is
embedded in; a plane, for instance, is (n1, n2, n3, d). Spaces work on any device."""

import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from proxlearn.common.checks import count
from proxlearn.common.registry import Described
from proxlearn.errors import InputError

MOST_SIZE = 1_000_000  # coordinates of a point, which nothing here would get through
EDGE = 1e-3  # how far outside, as a share of a space's width, still counts as inside
Coordinates = Float[Tensor, "*n d"]  # of any number of points


class Space(Described, ABC):
    """A set of points. Every subclass is final, frozen, and rebuilt from `describe()`."""

    dim: int
    euclidean = True  # whether `pairwise` is the distance of coordinates, which a tree can search

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
    def project(self, x: Coordinates) -> Coordinates:
        """The nearest point of the space."""

    @abstractmethod
    def contains(self, x: Coordinates, edge: float = EDGE) -> Bool[Tensor, "*n"]:
        """Whether each point is inside, up to `edge` (a share of the space's width)."""

    def retract(self, x: Coordinates) -> Coordinates:
        """What a step's raw result becomes: a point of the manifold, within bounds that bind. An
        open box has nothing to retract to, so a point that left it is seen to have left."""
        return self.project(x)

    @property
    def opened(self) -> "Space":
        """The same space where no bound binds, so that points may leave; itself where none does."""
        return self

    @property
    def closed(self) -> bool:
        """Whether there are bounds that bind: `retract` then keeps to them."""
        return False

    @property
    def bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The lowest and highest value of every coordinate, infinite where nothing binds it."""
        return (-math.inf,) * self.dim, (math.inf,) * self.dim

    def tangent(self, x: Coordinates) -> Float[Tensor, "*n d k"]:
        """Orthonormal directions, one a column, in which a step from x stays in the space to first
        order. A bounded coordinate has a direction of its own."""
        return torch.eye(self.dim, dtype=x.dtype, device=x.device).expand(*x.shape, self.dim)

    def squared_distance(self, x: Coordinates, y: Coordinates) -> Float[Tensor, "*n"]:
        """The squared distance of the proximal term, `|y - x|^2` in eq. (2)."""
        return (x - y).square().sum(-1)

    def pairwise(
        self, x: Float[Tensor, "*i n d"], y: Float[Tensor, "*i m d"]
    ) -> Float[Tensor, "*i n m"]:
        """All distances from the points of one set to those of another."""
        return distances(x, y)

    def to_unit(self, x: Coordinates) -> Coordinates:
        """Coordinates of about unit size, which a network works in."""
        return x

    def from_unit(self, x: Coordinates) -> Coordinates:
        """The inverse of `to_unit`."""
        return x

    def with_size(self, parts: int) -> "Space":
        """The same kind of space for instances of so many parts, such as vertices of a graph."""
        raise InputError(f"{self} is of one size: there is none like it for {parts} parts.")


def size_of(name: str, value: Any) -> Any:
    """How large a space is: a whole number, 1 or more, and not beyond all measure."""
    if isinstance(value, torch.SymInt):  # a size that may vary, in a graph that is exported
        return value
    size = count(name, value)
    if size > MOST_SIZE:
        raise InputError(f"{name} is {size:,}; {MOST_SIZE:,} is the most that there can be.")
    return size


def constant(values: tuple[float, ...], like: Tensor) -> Tensor:
    """Constants on a tensor's device; made once, since a copy to a GPU takes its time."""
    return _made_constant(values, like.device, like.dtype)


@lru_cache(maxsize=256)
def _made_constant(values: tuple[float, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    return torch.tensor(values, device=device, dtype=dtype)


def distances(x: Tensor, y: Tensor) -> Tensor:
    """Euclidean distances. On a GPU coordinate by coordinate, unless there are very many: `cdist`
    spends a whole warp on every pair there."""
    if not x.is_cuda or x.shape[-1] > 64:
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    total = x.new_zeros(())
    for a, b in zip(x.unbind(-1), y.unbind(-1)):
        way = a[..., :, None] - b[..., None, :]
        total = torch.addcmul(total, way, way)
    return total.sqrt()


def unit_length(x: Tensor) -> Tensor:
    """`x / |x|`; the zero vector, which has no direction, becomes the first axis."""
    first = torch.zeros_like(x)
    first[..., 0] = 1
    zero = x.norm(dim=-1, keepdim=True) < 1e-12
    return torch.nn.functional.normalize(torch.where(zero, first, x), dim=-1)


def across(x: Coordinates) -> Float[Tensor, "*n d k"]:
    """Orthonormal directions at right angles to a unit vector: the reflection that takes it to the
    first axis takes the other axes to them."""
    mirror = x.clone()
    mirror[..., 0] += torch.where(x[..., 0] < 0, -1.0, 1.0)
    mirror = torch.nn.functional.normalize(mirror, dim=-1)
    axes = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    return (axes - 2 * mirror[..., :, None] * mirror[..., None, :])[..., 1:]


def side_by_side(bases: list[Tensor]) -> Float[Tensor, "*n d k"]:
    """The directions of several spaces as those of their product: blocks on the diagonal."""
    rows, columns = (sum(each.shape[axis] for each in bases) for axis in (-2, -1))
    whole, row, column = bases[0].new_zeros(*bases[0].shape[:-2], rows, columns), 0, 0
    for each in bases:
        d, k = each.shape[-2:]
        whole[..., row : row + d, column : column + k] = each
        row, column = row + d, column + k
    return whole
