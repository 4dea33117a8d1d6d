"""What every encoder promises."""

from abc import abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from proxlearn.common.batch import Batch
from proxlearn.common.registry import Described
from proxlearn.instances import Instances


class Encoder(Described, nn.Module):
    """A module with settings that, with the instances it is for, make it again, weights apart."""

    size: int  # of the code

    def __init__(self, instances: Instances):
        super().__init__()
        self.instances = instances

    def settings(self):
        return {}

    @abstractmethod
    def forward(self, observed: Batch) -> Float[Tensor, "i c"]:
        """The code of every instance."""
