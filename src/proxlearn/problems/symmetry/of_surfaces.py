"""What the problems of symmetry share: meshes, clouds of their points in random poses, and how far
these are from the surface when they are moved."""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from proxlearn.common.batch import Device
from proxlearn.common.progress import late_bar
from proxlearn.common.seeds import generator_for
from proxlearn.errors import InputError
from proxlearn.meshes.distance import Surface
from proxlearn.meshes.mesh import Mesh, scaled
from proxlearn.meshes.parts import KINDS, part
from proxlearn.meshes.scatter import Scatter
from proxlearn.problems.base import Problem
from proxlearn.problems.symmetry.moves import Move
from proxlearn.problems.symmetry.refine import refined

POINTS = 2_048  # of a cloud
GENERATED, HELD_BACK = 512, 64  # parts to train on and to test on, where no meshes are given
SIDE = 64  # corners of the grid along each side, see `meshes/grid.py`
Own = TypeVar("Own", bound="OfSurfaces")
REACH = 0.5  # how far planes and lines are from 0: half of a part's longest side


class OfSurfaces(Problem):
    """`f(x) = mean_p |M p - S|`: the mean distance to a surface S of its points p, moved by x; tau
    is S, and an operator sees a cloud of points on it.

    `meshes` to train on and `test` meshes are brought to a bounding box around 0 with a longest
    side of 1; without any, they are generated parts. With `turned`, every instance is turned at
    random. With `exact`, distances are exact, and slow to compute on a CPU."""

    costly = True
    moves: int  # points of the cloud whose distances are the objective

    def __init__(
        self,
        meshes: Sequence[Mesh] | None = None,
        test: Sequence[Mesh] = (),
        turned: bool = True,
        exact: bool = False,
    ):
        if meshes is not None and not len(meshes):
            raise InputError(
                "There are no meshes to train on: give at least one, or leave `meshes` out for "
                "generated parts."
            )
        if meshes is not None:
            self.meshes, self.trained = [scaled(each)[0] for each in (*meshes, *test)], len(meshes)
        else:
            self.meshes, self.trained = [], GENERATED
        self.turned, self.exact, self.generates = turned, exact, meshes is None
        self.surfaces: dict[torch.device, tuple[Surface, Scatter]] = {}

    @property
    def drawn_from(self):
        parts = f"{GENERATED} generated parts" if self.generates else f"{self.trained} meshes"
        turned = ", turned at random" if self.turned else ""
        return f"{parts}{turned}; clouds of {POINTS:,} points on them, drawn anew in every step"

    def posed(self: Own, turned: bool) -> Own:
        """The same problem, of the same surfaces, with parts turned at random or in their own
        pose."""
        other = copy(self)
        other.turned = turned
        return other

    def on(self, device: Device) -> tuple[Surface, Scatter]:
        """The surfaces of all meshes, made on a device when they are asked for."""
        device = torch.device(device)
        if device not in self.surfaces:
            self.meshes = self.meshes or generated()
            exact = self.exact or device.type == "cpu"
            surface = Surface(self.meshes, str(device), None if exact else SIDE)
            self.surfaces[device] = surface, Scatter(surface)
        return self.surfaces[device]

    def sample(self, count, split, generator):
        device = generator.device
        self.on(device)
        low, high = (0, self.trained) if split == "train" else (self.trained, len(self.meshes))
        if low == high:  # of meshes without any to test on
            low, high = 0, len(self.meshes)
        which = torch.randint(low, high, (count,), generator=generator, device=device)
        return self.instances_of(which, generator)

    def instances_of(self, which: Tensor, generator: Generator) -> dict[str, Tensor]:
        """Instances of the meshes with these numbers, test meshes after those to train on."""
        if self.turned:
            turn = rotations(len(which), generator)
        else:
            turn = torch.eye(3, device=which.device).expand(len(which), 3, 3)
        empty = torch.empty(len(which), POINTS, 6, device=which.device)
        return self.refresh({"which": which, "turn": turn, "cloud": empty}, generator)

    def refresh(self, tau, generator):
        """Another cloud of the same surface."""
        _, scatter = self.on(generator.device)
        cloud = scatter.points(tau["which"], POINTS, generator)
        return tau | {"cloud": turned(tau["turn"], cloud)}

    @abstractmethod
    def move(self, tau: dict[str, Tensor]) -> Move:
        """How points are moved."""

    def objective(self, x, tau):
        surface, _ = self.on(x.device)
        own, points = turned(tau["turn"].mT, x), self.surface_points(tau).to(x)
        moved = self.move(tau).moved(own, points)
        far = surface.distance(moved.flatten(1, 2), tau["which"])
        return far.view(moved.shape[:-1]).mean(-1)

    def polished(self, x, tau):
        surface, _ = self.on(x.device)
        own, points = turned(tau["turn"].mT, x), self.surface_points(tau).to(x)
        found = refined(self.move(tau), surface, tau["which"], own, points)
        return self.space.retract(turned(tau["turn"], found))

    def surface_points(self, tau: dict[str, Tensor]) -> Float[Tensor, "i k 3"]:
        """Points of the surfaces, as their meshes lie."""
        return turned(tau["turn"].mT, tau["cloud"][:, : self.moves, :3])


def turned(turn: Float[Tensor, "i 3 3"], x: Float[Tensor, "i n d"]) -> Float[Tensor, "i n d"]:
    """Points, vectors, planes or lines, turned about the origin: every three of their numbers are,
    and the offset of a plane stays. Not as products of matrices, which a GPU may round."""
    vectors, rest = x.shape[-1] // 3, x.shape[-1] % 3
    every = x[..., : 3 * vectors].unflatten(-1, (vectors, 3))
    every = (every[..., None, :] * turn[:, None, None].to(x)).sum(-1).flatten(-2)
    return torch.cat((every, x[..., x.shape[-1] - rest :]), -1)


@cache
def generated() -> list[Mesh]:
    """The parts of a problem without meshes of its own, always the same."""
    generator, kinds, count = generator_for(0, "parts"), list(KINDS), GENERATED + HELD_BACK
    made = []
    with late_bar("making parts") as show:
        for k in range(count):
            made.append(scaled(part(kinds[k % len(kinds)], generator).mesh)[0])
            show((k + 1) / count)
    return made


def rotations(count: int, generator: Generator) -> Float[Tensor, "i 3 3"]:
    """Uniform ones, from unit quaternions."""
    device = generator.device
    q = torch.randn(count, 4, generator=generator, device=device)
    w, x, y, z = torch.nn.functional.normalize(q, dim=-1).unbind(-1)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return torch.stack([torch.stack(row, -1) for row in rows], -2)
