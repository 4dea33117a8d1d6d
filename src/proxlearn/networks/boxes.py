"""The network for boxes around the objects of an image: every box looks, at every application, at
the features of the image under it, and goes where they say that its object is. It also says how
good the box is where it is.

The features are computed once for an image: the maps of a backbone, made alike, are brought to the
size of the finest and summed. A box sees 7 x 7 places of that map, spread over 1.5 times
itself; with where and how large it is, the mean of the coarsest map, and lam, they go through
residual layers. What these say is in lengths of the box, so that boxes of all sizes are moved
alike: its centre c goes to `c + wh r + t`, and its sides wh to `wh exp(s) + t`.
"""

import math
from dataclasses import dataclass, fields
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import grid_sample, interpolate

from proxlearn.common.batch import Batch, Points, Values, tree_map
from proxlearn.common.checks import count
from proxlearn.errors import InputError
from proxlearn.gpu.precision import halved_on_gpu
from proxlearn.instances.image import Images
from proxlearn.networks.backbones import Features, Maps, backbones
from proxlearn.networks.backbones.base import STRIDES
from proxlearn.networks.base import Architecture, Lams, Network, Prepared, place_of_lam
from proxlearn.spaces import Box

MARGIN = 1.5  # times a box: what it looks at
SMALLEST = 0.01  # side of a box, in widths of the image, for what it sees and where it can go
SINUSOIDS = 8  # of each coordinate; every one has half the period of that before
OF_PLACE = 4 + 2 + 2 * 4 * SINUSOIDS  # numbers that say where a box is
AT_ONCE = 1 << 15  # boxes that look at once while solving: about 1 GiB
IMAGES_AT_ONCE = 32  # likewise, whose features are computed


@dataclass(frozen=True)
class Boxes(Architecture):
    """The sizes of the network."""

    encodes = False
    backbone: str = "small"
    """a file of networks/backbones: small, efficientnet_lite0, mobilenet_v2, resnet50"""
    weights: str | Path | None = None
    """the file of weights that the backbone begins with; only for training: an operator's own file
    holds all of its weights, and not this"""
    stride: int = 4
    """pixels of the image for each of the map that boxes look at: 4 (for small objects) or 8"""
    mixed: int = 128
    """channels in which the maps of the backbone are summed"""
    channels: int = 64
    """channels of the map that boxes look at"""
    places: int = 7
    """places along each side that a box looks at"""
    width: int = 256
    """hidden numbers of a box"""
    blocks: int = 3
    """residual blocks of two layers"""
    rates: bool = True
    """also learn how good a box is, which takes a problem with a `quality`"""

    def __post_init__(self):
        super().__post_init__()
        for name in ("mixed", "channels", "places", "width", "blocks"):
            count(name, getattr(self, name))
        if self.stride not in (4, 8):
            raise InputError(f"stride must be 4 or 8, not {self.stride!r}.")

    def settings(self):
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "weights"}

    def refuses(self, space, instances):
        if not isinstance(instances, Images) or space.opened != Box(0, 1, dim=4, open=True):
            return f"it is for Box(0, 1, dim=4) and images, not for {space} and {instances.words}"
        if backbones[self.backbone].needs_file and self.weights is None:
            return (
                f"the backbone {self.backbone} has to begin with trained weights. Give their file, "
                'weights="...", or take the backbone "small"'
            )
        return None

    def build(self, space, instances, lams, encoder):
        return BoxesNetwork(self, lams)


class BoxesNetwork(Network):
    """What a box sees, where it goes, and how good it is."""

    architecture: Boxes
    weight_decay = 0.05

    def __init__(self, a: Boxes, lams: Lams | None = None):
        super().__init__()
        self.architecture, self.lams, self.rates = a, lams, a.rates
        self.backbone = backbones[a.backbone]()
        if a.weights is not None:
            self.backbone.read(a.weights)
        self.taken = slice(STRIDES.index(a.stride), None)  # maps of the backbone
        channels = self.backbone.channels[self.taken]
        self.mixes = nn.ModuleList(mix(each, a.mixed) for each in channels)
        self.smooth = nn.Conv2d(a.mixed, a.channels, 3, padding=1)
        self.whole = nn.Sequential(nn.Linear(channels[-1], a.mixed), nn.LayerNorm(a.mixed))
        seen = a.channels * a.places**2
        self.of_seen = nn.Sequential(nn.Linear(seen, a.width), nn.SiLU())
        self.of_place = nn.Linear(a.width + OF_PLACE, a.width, bias=False)
        self.of_image = nn.Linear(a.mixed + 1, a.width)
        self.blocks = nn.ModuleList(block(a.width) for _ in range(a.blocks))
        self.move, self.rate = nn.Linear(a.width, 8), nn.Linear(a.width, 1)
        for each in (*self.move.parameters(), *self.rate.parameters()):
            nn.init.zeros_(each)  # boxes begin by staying where they are
        self.around: Tensor
        side = MARGIN * torch.linspace(-1, 1, a.places)
        offsets = torch.stack(torch.meshgrid(side, side, indexing="xy"), -1)
        self.register_buffer("around", offsets.flatten(0, 1), persistent=False)  # (p 2)
        frequencies = math.pi / 2 * 2.0 ** torch.arange(SINUSOIDS)
        self.frequencies: Tensor
        self.register_buffer("frequencies", frequencies, persistent=False)

    def encode(self, observed: Batch) -> Batch:
        """The map that boxes look at, (i c h w), and the mean of the coarsest, (i m); without
        gradients, of some images at a time."""
        if torch.is_grad_enabled():
            return self._encode(observed)
        some = observed.split(IMAGES_AT_ONCE)
        return tree_map(lambda *each: torch.cat(each), *map(self._encode, some))

    def _encode(self, observed: Float[Tensor, "i 3 s s"]) -> Batch:
        """On a GPU by products of 16-bit numbers, unless they are to be exact."""
        with halved_on_gpu(observed.device):
            maps = self.backbone(observed)[self.taken]
            mixed = self.mixed(maps)
            whole = self.whole(maps[-1].mean((2, 3)))
            return {"map": self.smooth(mixed).float().contiguous(), "whole": whole.float()}

    def mixed(self, maps: Maps) -> Features:
        """The sum of all maps, as large as the finest."""
        finest, *others = (own(each) for own, each in zip(self.mixes, maps))
        for each in others:
            finest = finest + interpolate(each, finest.shape[-2:], mode="bilinear")
        return nn.functional.silu(finest)

    def prepare(self, code: Batch, lam: Float[Tensor, " i"]) -> Prepared:
        known = torch.cat((code["whole"], place_of_lam(lam, self.lams)[:, None]), -1)
        return {"map": code["map"], "share": self.of_image(known)[:, None]}

    def forward(self, x: Points, prepared: Prepared) -> Points:
        return self.moved(x, self.features(x, prepared))

    def rated(self, x: Points, prepared: Prepared) -> tuple[Points, Values]:
        h = self.features(x, prepared)
        return self.moved(x, h), self.rate(h).float()[..., 0]

    def features(self, x: Points, prepared: Prepared) -> Float[Tensor, "i n f"]:
        """What is made of all that a box sees and is."""
        seen = self.looked(x, prepared["map"])
        h = self.of_place(torch.cat((seen, self.place(x)), -1)) + prepared["share"]
        for each in self.blocks:
            h = h + each(h)
        return nn.functional.silu(h)

    def moved(self, x: Points, h: Float[Tensor, "i n f"]) -> Points:
        """`c + wh r + t` and `wh exp(s) + t`, in unit coordinates, where all lengths are double."""
        centre, sides = x[..., :2], 1 + x[..., 2:]
        way, growth, shift = self.move(h).float().split((2, 2, 4), -1)
        grown = sides.clamp(min=2 * SMALLEST)
        centre = centre + grown * way
        sides = sides + grown * growth.clamp(-2, 2).expm1()
        return torch.cat((centre, sides - 1), -1) + shift

    def looked(self, x: Points, map: Features) -> Float[Tensor, "i n f"]:
        """Features of what the map has where each box looks; without gradients, of some boxes at
        a time."""
        if torch.is_grad_enabled():
            return self._looked(x, map)
        some = x.split(max(1, AT_ONCE // len(x)), 1)
        return torch.cat([self._looked(each, map) for each in some], 1)

    def _looked(self, x: Points, map: Features) -> Float[Tensor, "i n f"]:
        half = ((1 + x[..., 2:]) / 2).clamp(min=SMALLEST)  # of a side, in unit coordinates
        at = x[..., None, :2] + half[..., None, :] * self.around  # (i n p 2)
        seen = grid_sample(map, at, align_corners=False)  # (i c n p)
        return self.of_seen(seen.transpose(1, 2).flatten(2))

    def place(self, x: Points) -> Float[Tensor, "i n k"]:
        """Where a box is and how large, in numbers that tell near ones apart."""
        phase = (x[..., None] * self.frequencies).flatten(-2)
        size = ((1 + x[..., 2:]) / 2).clamp(min=SMALLEST).log()
        return torch.cat((x, size, phase.sin(), phase.cos()), -1)

    def widest(self, dim: int) -> int:
        return self.architecture.channels * self.architecture.places**2


def mix(inputs: int, outputs: int) -> nn.Sequential:
    """What a map becomes before the sum of all; those of a backbone can differ much in size."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1), nn.GroupNorm(1, outputs))


def block(width: int) -> nn.Sequential:
    """The change of a residual block."""
    return nn.Sequential(nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
