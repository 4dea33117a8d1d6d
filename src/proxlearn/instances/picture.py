"""tau is a picture."""

from dataclasses import dataclass

from proxlearn.common.checks import floats
from proxlearn.errors import InputError
from proxlearn.instances.base import Instances


@dataclass(frozen=True)
class Pictures(Instances):
    """Pictures (channels, height, width)."""

    encoder = "picture"
    channels: int
    height: int
    width: int

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.channels, self.height, self.width

    @property
    def words(self):
        return f"a picture {self.shape}"

    def batch(self, tau):
        tau = floats("The picture", tau, f"{self.words} (channels, height, width)")
        tau = tau[None] if tau.ndim == 3 else tau
        if tau.ndim != 4 or tuple(tau.shape[1:]) != self.shape or len(tau) == 0:
            raise InputError(
                f"tau has shape {tuple(tau.shape)}; expected a picture {self.shape} (channels, "
                f"height, width), or several, (instances, {', '.join(map(str, self.shape))})."
            )
        return tau
