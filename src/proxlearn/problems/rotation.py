"""All lines about which a shape can be turned onto itself, or nearly so: rotational symmetries."""

import torch

from proxlearn.instances.turned_cloud import TurnedClouds, angles
from proxlearn.problems.symmetry.moves import Turning
from proxlearn.problems.symmetry.of_surfaces import POINTS, REACH, OfSurfaces
from proxlearn.spaces import Lines

# Generated parts have orders from 2 to 16: all but 11 and 13 are multiples of one of 2 to 8.
HIGHEST = 8


class Rotation(OfSurfaces):
    """`f(u, c) = mean_p |R p - S|`: the mean distance to a surface S of its points p, turned by 1/k
    of the whole about the line through c along u, both ways; tau is S with the order k, and an
    operator sees k and a cloud of points on S.

    `meshes`, `test`, `turned` and `exact` are as in `Symmetry`. In training, k is 2 to 8."""

    name = "rotation"
    space: Lines = Lines(REACH)
    lam = 3.0
    architecture = "turning"
    instances = TurnedClouds(POINTS, HIGHEST)
    moves = 256

    def instances_of(self, which, generator):
        made = super().instances_of(which, generator)
        own = {"generator": generator, "device": which.device}
        return made | {"order": torch.randint(2, HIGHEST + 1, (len(which),), **own)}

    def observe(self, tau):
        return {"cloud": tau["cloud"], "order": tau["order"]}

    def is_whole(self, tau):
        one = tau[0] if isinstance(tau, list) and tau else tau
        return isinstance(one, dict) and "which" in one

    def move(self, tau):
        return Turning(angles(tau["order"])[:, None])
