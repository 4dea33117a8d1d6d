"""tau is a cloud of points on a surface, with the surface's normals."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.checks import floats
from proxlearn.errors import InputError
from proxlearn.instances.base import Instances
from proxlearn.meshes.normals import estimated

FEWEST = 64  # points; fewer say too little of a surface


@dataclass(frozen=True)
class Clouds(Instances):
    """Clouds (points, 6): each point as three coordinates, then the unit normal there, whose sign
    says nothing; of points alone, (points, 3), normals are estimated. The box around a cloud is
    centred at 0 and its longest side is about 1."""

    encoder = "cloud"
    points: int  # in training; other clouds may have more or fewer

    @property
    def words(self):
        return "a cloud of points with normals, (points, 6)"

    def batch(self, tau: Any) -> Float[Tensor, "i m 6"]:
        tau = floats("The cloud", tau, self.words)
        tau = tau[None] if tau.ndim == 2 else tau
        if tau.ndim != 3 or tau.shape[2] not in (3, 6) or tau.shape[1] < FEWEST or not len(tau):
            raise InputError(
                f"tau has shape {tuple(tau.shape)}; expected {self.words}, with at least {FEWEST} "
                "points, or several, (instances, points, 6); or without normals, (points, 3)."
            )
        if tau.shape[2] == 6:
            return tau
        normals = torch.stack([estimated(each) for each in tau])
        return torch.cat((tau, normals.to(tau)), -1)
