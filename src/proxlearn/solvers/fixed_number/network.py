"""The baseline FN of the paper (D.8): a network that looks at tau and names a fixed number of
points, whatever number of solutions there are. It has no starts and is applied once."""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from proxlearn.answers.solutions import Solutions
from proxlearn.common.batch import Batch, Points, move
from proxlearn.common.module_weights import built, filled, readable
from proxlearn.common.weight_files import read_weights, write_weights
from proxlearn.errors import InputError
from proxlearn.gpu.devices import pick_device
from proxlearn.gpu.precision import halved, products_in
from proxlearn.instances import Instances, kinds
from proxlearn.networks.encoders import Encoder, encoder_from
from proxlearn.problems.base import Problem
from proxlearn.spaces import Space, space_from

VERSION = 1  # of its file
COUNT, WIDTH = 20, 256  # of the paper


class FixedNumber(nn.Module):
    """An encoder and three layers, which give `count` points of the space; before training, these
    are spread over it."""

    def __init__(
        self,
        space: Space,
        instances: Instances,
        encoder: Encoder,
        count: int = COUNT,
        precision: str = "fp32",
        provenance: dict[str, Any] | None = None,
    ):
        super().__init__()
        self.space, self.instances, self.encoder = space, instances, encoder
        self.count, self.precision, self.provenance = count, precision, provenance or {}
        last = nn.Linear(WIDTH, count * space.dim)
        with torch.no_grad():
            last.bias.copy_(space.to_unit(space.sample(count)).flatten())
        self.layers = nn.Sequential(
            nn.Linear(encoder.size, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), last
        )

    def __repr__(self) -> str:
        about = self.provenance.get("problem"), self.provenance.get("steps")
        return "FixedNumber({} points, trained for {!r} in {} steps)".format(self.count, *about)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def forward(self, observed: Batch) -> Points:
        """The points of each instance, which may lie beyond bounds that bind."""
        with halved(self.precision, self.device):
            unit = self.layers(self.encoder(observed))
        unit = unit.float().unflatten(-1, (self.count, self.space.dim))
        return self.space.opened.retract(self.space.from_unit(unit))

    def solve(self, tau: Any) -> Solutions:
        """The points of one tau or many, as an operator would be given them."""
        return self.solutions(self.instances.batch(tau))

    @torch.no_grad()
    def solutions(self, observed: Batch) -> Solutions:
        """The same for a batch of what is observed of instances."""
        with products_in(self.precision):
            points = self(move(observed, self.device))
        points = self.space.retract(points)
        return Solutions.of(self.space, points, points)

    def check_fits(self, problem: Problem) -> None:
        """An error that says why, if this network cannot be of the problem."""
        same = self.instances.words == problem.instances.words
        if self.space.opened != problem.space.opened or not same:
            raise InputError(
                f"{self} lives on {self.space} with {self.instances.words} as tau; "
                f"{problem.name!r} lives on {problem.space} with {problem.instances.words}: give "
                "one trained for it."
            )

    def save(self, path: str | Path) -> Path:
        """Write one safetensors file: weights, and a header with the rest."""
        parts = {name: getattr(self, name) for name in ("space", "instances", "encoder")}
        header: dict[str, Any] = {name: each.describe() for name, each in parts.items()}
        header |= {name: getattr(self, name) for name in ("count", "precision", "provenance")}
        return write_weights(path, "fixed-number", VERSION, header, self.state_dict())


def load_fixed_number(
    path: str | Path, device: str = "auto", *, instances: Any = None, encoder: Any = None
) -> FixedNumber:
    """Read a network that `FixedNumber.save` wrote; `instances`, `encoder`: of one's own, where it
    was trained with such."""
    header, weights = read_weights(path, "fixed-number", VERSION)
    with readable(path):
        space = space_from(header.pop("space"))
        own = kinds.rebuild(header.pop("instances"), instances)
        about = header.pop("encoder")

        def made() -> FixedNumber:
            return FixedNumber(space, own, encoder_from(about, own, encoder), **header)

        network = built(made, weights)
    return filled(network, weights, path).eval().to(pick_device(device))


def chamfer(
    space: Space, found: Points, known: Float[Tensor, "i k d"], real: Bool[Tensor, "i k"]
) -> Float[Tensor, ""]:
    """The chamfer distance between points and the known solutions that are real, squared distances
    as in Fan et al. (2017): from every point to the nearest solution, and from every solution to
    the nearest point, each on average. An instance without any counts for nothing."""
    pairs = torch.broadcast_tensors(found[:, :, None], known[:, None])
    apart = space.squared_distance(*pairs)  # (i n k)
    to_known = apart.masked_fill(~real[:, None], torch.inf).amin(2).mean(1)
    to_found = (apart.amin(1) * real).sum(1) / real.sum(1).clamp(min=1)
    some = real.any(1)
    whole = torch.where(some, to_known, 0.0) + to_found
    return whole.sum() / some.sum().clamp(min=1)
