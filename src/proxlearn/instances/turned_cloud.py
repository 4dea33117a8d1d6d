"""tau is a cloud of points on a surface, and the order of the turns that are looked for."""

import warnings
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from proxlearn.common.checks import array, said
from proxlearn.errors import InputError, RangeWarning
from proxlearn.instances.base import Instances
from proxlearn.instances.cloud import Clouds

MOST = 360  # the largest order: turns by a degree


@dataclass(frozen=True)
class TurnedClouds(Instances):
    """Clouds as `Clouds` has them, each with an order k of 2 or more: turns by 1/k of the whole. A
    batch is a dict of `cloud` (i, points, 6) and `order` (i,)."""

    encoder = "turned_cloud"
    points: int
    """how many there are in training; others may have more or fewer"""
    highest: int
    """the largest order in training"""

    @property
    def words(self):
        return "a cloud of points with normals, (points, 6), and an order, 2 or more"

    def batch(self, tau: Any) -> dict[str, Tensor]:
        """A pair (cloud, order), a batch with one order for all or for each, or a list of pairs."""
        if isinstance(tau, list) and tau and not isinstance(tau[0], int | float):
            return self.together([self.batch(each) for each in tau])
        if isinstance(tau, dict) and {"cloud", "order"} <= tau.keys():
            tau = (tau["cloud"], tau["order"])
        if not isinstance(tau, list | tuple) or len(tau) != 2:
            raise InputError(f"tau must be (cloud, order), {self.words}, not {said(tau)}.")
        cloud = Clouds(self.points).batch(tau[0])
        order = array("The order of turns", tau[1], "a whole number, or one for each cloud")
        order = order.to(cloud.device, torch.float64).flatten()
        known = (order == order.round()) & (order >= 2) & (order <= MOST)
        if len(order) not in (1, len(cloud)) or not known.all():
            raise InputError(
                f"The order of turns must be a whole number from 2 to {MOST}, or one for each of "
                f"the {len(cloud)} clouds, not {said(tau[1])}."
            )
        return {"cloud": cloud, "order": order.long().expand(len(cloud)).contiguous()}

    def read(self, text):
        """From the command line: the path of a .npy with a cloud, a colon and the order."""
        path, _, order = text.rpartition(":")
        if not path or not order.isdecimal():
            raise InputError(
                f"--tau must be a .npy with a cloud and an order, cloud.npy:3, not {text}."
            )
        return self.batch((Clouds(self.points).read(path), int(order)))

    def knows(self, observed):
        return observed["order"] <= self.highest

    def warn_of_unknown(self, observed):
        if (higher := int((~self.knows(observed)).sum())) > 0:
            warnings.warn(
                f"{higher} of {len(observed['order'])} orders are larger than {self.highest}, the "
                "largest that operators are trained on: their solutions are a guess.",
                RangeWarning,
                stacklevel=3,
            )


def angles(order: Int[Tensor, " i"]) -> Float[Tensor, " i"]:
    """Of the turns, in double precision."""
    return 2 * torch.pi / order.double()
