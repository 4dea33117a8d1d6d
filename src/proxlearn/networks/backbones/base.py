"""What every backbone promises: the maps of its features at four strides, fine to coarse."""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from proxlearn.common.weight_files import Weights
from proxlearn.errors import FileError

Features = Float[Tensor, "i c h w"]
Maps = list[Float[Tensor, "i _ _ _"]]
STRIDES = (4, 8, 16, 32)  # of the maps, in pixels of the image
IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of its colours, as torchvision has them
COUNTER = "num_batches_tracked"  # of a batch norm, which nothing here asks for


class Backbone(nn.Module, ABC):
    """A network whose weights come from a file. What it reads there stays as it is up to the map of
    stride 4, and in every batch norm; the rest is changed with care."""

    channels: ClassVar[tuple[int, ...]]  # of the map of each stride
    unused: ClassVar[tuple[str, ...]] = ()  # how the names in its files begin that it leaves out
    needs_file: ClassVar[bool] = True  # whether training it from nothing leads nowhere

    rate_factor = 0.4
    mean: Tensor
    deviation: Tensor

    def __init__(self, colours: tuple[Sequence[float], Sequence[float]] = IMAGENET):
        """colours: mean and deviation of red, green and blue in what it was trained on."""
        super().__init__()
        for name, each in zip(("mean", "deviation"), colours):
            self.register_buffer(name, torch.tensor(each)[:, None, None], persistent=False)

    def forward(self, images: Float[Tensor, "i 3 s t"]) -> Maps:
        """The maps of each stride of images whose colours are from 0 to 1."""
        return self.maps((images - self.mean) / self.deviation)

    @abstractmethod
    def maps(self, images: Float[Tensor, "i 3 s t"]) -> Maps:
        """The same of images as it was trained with."""

    @abstractmethod
    def first(self) -> list[nn.Module]:
        """The layers up to the map of stride 4."""

    def read(self, path: str | Path) -> None:
        """Take the weights from a file of `torch.save`, a state dict; all of them, or an error."""
        weights = {
            name: each
            for name, each in _read(Path(path)).items()
            if not name.startswith(self.unused) and not name.endswith(COUNTER)
        }
        own = self.state_dict()
        wrong = {
            "is without": own.keys() - weights.keys(),
            "has besides": weights.keys() - own.keys(),
            "has of another shape": {
                name for name in own.keys() & weights if own[name].shape != weights[name].shape
            },
        }
        said = [f"{what} {_some(names)}" for what, names in wrong.items() if names]
        if said:
            raise FileError(
                f"{path} holds no weights of the backbone {type(self).__name__}: it "
                f"{'; it '.join(said)}. Give a file of this network, or name the backbone that it "
                "is of."
            )
        self.load_state_dict(weights)
        for layer in self.first():
            layer.requires_grad_(False)


def _some(names: set[str]) -> str:
    first, *others = sorted(names)
    return f"{first!r} and {len(others)} more" if others else repr(first)


def _read(path: Path) -> Weights:
    if not path.is_file():
        raise FileError(f"There are no weights of a backbone at {path}: check the path.")
    try:
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, ValueError, OSError, LookupError, pickle.UnpicklingError):
        weights = None
    if not isinstance(weights, dict) or not all(isinstance(e, Tensor) for e in weights.values()):
        raise FileError(
            f"{path} holds no weights: it is cut short, or more than a state dict, which "
            "torch.save(network.state_dict(), path) writes."
        )
    return weights


class FrozenNorm(nn.Module):
    """Batch norm that stays as it was trained, and does not depend on other images."""

    def __init__(self, channels: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        for name, value in (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1)):
            self.register_buffer(name, torch.full((channels,), float(value)))

    def forward(self, x: Features) -> Features:
        known = (self.running_mean, self.running_var, self.weight, self.bias)
        return nn.functional.batch_norm(x, *known, training=False, eps=self.eps)  # pyright: ignore[reportArgumentType]
