"""The operator's network (paper, app. B): residual blocks with additive and multiplicative
coupling, on points in unit coordinates and a code of tau."""

import math
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear, relu, silu

from proxlearn.common.batch import Batch, Points
from proxlearn.common.checks import count, positive, whole
from proxlearn.errors import InputError
from proxlearn.gpu.kernels import Compiling
from proxlearn.networks.base import Architecture, Lams, Network, Prepared, place_of_lam
from proxlearn.networks.encoders.base import Encoder

KERNELS = "proxlearn.networks.coupling_kernel"  # which is slow to import
REACH = 2.0  # how far out, in unit coordinates, points are told apart by their features


@dataclass(frozen=True)
class Coupling(Architecture):
    """The sizes of the network; the preset "paper" is the published one."""

    blocks: int = 3
    """how many residual blocks"""
    width: int = 128
    """hidden size of a block's three layers"""
    shared: int = 256
    """hidden size of the two-layer maps of x and of tau's code"""
    activation: str = "silu"
    """silu (smooth: measures better) or relu (the paper's)"""
    gated: bool = True
    """products of features: tau scales a block's first layer as well as shifting it, and the two
    layers after it are `activation(a) * b` of two linear maps; False: the paper's plain layers"""
    sinusoids: int = 0
    """how many random sinusoids of x are added to the input, for objectives with narrow wells"""
    bandwidth: float = 15.0
    """the largest frequency among them, in periods over the space's width"""
    start_at_identity: bool = True
    """begin as the identity map, so that training starts from `every point stays where it is`"""

    def __post_init__(self):
        super().__post_init__()
        for name in ("blocks", "width", "shared"):
            count(name, getattr(self, name))
        positive("bandwidth", self.bandwidth)
        whole("sinusoids", self.sinusoids, 0)
        if self.activation not in ("silu", "relu"):
            raise InputError(f"activation must be 'silu' or 'relu', not {self.activation!r}.")

    def refuses(self, space, instances):
        if instances.any_size:
            return f"a coupling network is of one size, and tau is {instances.words}"
        return None

    def build(self, space, instances, lams, encoder):
        assert encoder is not None
        return CouplingNetwork(space.dim, encoder, self, lams)


class CouplingNetwork(Network):
    """`x <- x * exp(s) + t` in every block, with (s, t) computed from x and tau's code."""

    architecture: Coupling
    encoder: Encoder

    def __init__(self, dim: int, encoder: Encoder, a: Coupling, lams: Lams | None = None):
        super().__init__()
        self.architecture, self.encoder, self.lams = a, encoder, lams
        self.code_size = encoder.size + (1 if lams else 0)
        if a.sinusoids:
            self.frequencies: Tensor
            self.register_buffer("frequencies", torch.empty(dim, a.sinusoids))
            self.frequencies.copy_(_frequencies(dim, a))
        self.of_x, self.of_tau = two_layers(dim + 2 * a.sinusoids, a), two_layers(self.code_size, a)
        self.blocks = nn.ModuleList(Block(dim, a) for _ in range(a.blocks))

    def encode(self, observed: Batch) -> Float[Tensor, "i c"]:
        return self.encoder(observed).float()

    def prepare(self, code: Float[Tensor, "i c"], lam: Float[Tensor, " i"]) -> Prepared:
        """The code with lam's place in its range appended, and what each block's first layer makes
        of it, block after block: (i 1 s)."""
        if self.lams:
            code = torch.cat((code, place_of_lam(lam, self.lams)[:, None]), -1)
        layers = [block.from_tau for block in self.blocks]
        weight, bias = (torch.cat([getattr(f, k) for f in layers]) for k in ("weight", "bias"))
        share = nn.functional.linear(self.of_tau(code), weight, bias)  # one product for all
        return {"code": code, "share": share[:, None]}

    def forward(self, x: Points, prepared: Prepared) -> Points:
        share = prepared["share"]
        if self.kernels and self._fits_kernels(x):
            from proxlearn.networks import coupling_kernel

            return coupling_kernel.apply(self, x, share, self.precision)
        if x.device.type == "cpu" and not torch.is_grad_enabled():
            return self._in_place(x, share)
        for block, own in zip(self.blocks, share.chunk(len(self.blocks), -1)):
            scale, shift = block(self._features(x), own).float().chunk(2, -1)
            x = x * scale.clamp(-2, 2).exp() + shift
        return x

    @property
    def rough_at_first(self):
        return self.architecture.width >= 64  # narrower ones are no faster in 16 bits

    def widest(self, dim):
        return max(self.architecture.shared, 2 * self.architecture.width)

    def compile_kernels(self, shape):
        if not self._fits_kernels(torch.empty(shape, device=next(self.parameters()).device)):
            return None
        sizes, blocks = self.sizes(shape[-1]), self.architecture.blocks
        return Compiling(KERNELS, [sizes, blocks, self.precision, shape])

    def sizes(self, dim: int) -> tuple[int, int, int, bool, bool]:
        """What kernels are compiled for, where points have so many coordinates."""
        a = self.architecture
        return dim, a.width, a.shared, a.gated, a.activation == "silu"

    def _fits_kernels(self, x: Tensor) -> bool:
        """Whether the fused kernels can be used and are faster: on a GPU, for sizes that fit on
        chip, unless products are to be exact."""
        a, sizes = self.architecture, (16, 32, 64, 128)
        fits = a.width in sizes and a.shared in (*sizes, 256, 512) and x.shape[-1] <= 32
        filled = x.shape[-2] >= -x.shape[-2] % 64  # they take 64 points at once, there or not
        plain = not a.sinusoids and self.precision != "fp32"
        return x.is_cuda and fits and filled and plain and find_spec("triton") is not None

    def _in_place(self, x: Points, share: Float[Tensor, "i 1 s"]) -> Points:
        """The same on a CPU, without gradients: memory is used again. Where products are of 16-bit
        numbers, those of a block's first and last layer are not."""
        a, kind = self.architecture, torch.float32
        if torch.is_autocast_enabled("cpu"):
            kind = torch.get_autocast_dtype("cpu")
        activation, (first, _, second, _) = silu if a.activation == "silu" else relu, self.of_x
        blocks: Any = self.blocks

        def layer(map_: Any, h: Tensor) -> Tensor:
            return linear(h, *(each.to(kind) for each in map_.parameters()))

        with torch.autocast("cpu", enabled=False):
            for block, own in zip(blocks, share.to(kind).chunk(a.blocks, -1)):
                h = activation(first(self._inputs(x)), inplace=True).to(kind)
                h = layer(block.from_x, activation(layer(second, h), inplace=True))
                if a.gated:
                    gain, own = own.chunk(2, -1)
                    h = h.mul_(1 + gain)
                h = activation(h.add_(own), inplace=True)
                for each in block.hidden:
                    gate, *value = layer(each.linear, h).chunk(2 if a.gated else 1, -1)
                    h = activation(gate).mul_(*value) if value else activation(gate, inplace=True)
                scale, shift = block.heads(h.float()).chunk(2, -1)
                x = x * scale.clamp_(-2, 2).exp_() + shift
        return x

    def _features(self, x: Points) -> Float[Tensor, "i n w"]:
        """Of x; the first layer always in full precision, since it tells near points apart."""
        first, *others = self.of_x
        with torch.autocast(x.device.type, enabled=False):
            x = first(self._inputs(x))
        for layer in others:
            x = layer(x)
        return x

    def _inputs(self, x: Points) -> Float[Tensor, "i n k"]:
        """What the first layer sees of x."""
        x = x.clamp(-REACH, REACH)  # products of features grow without bound far outside the space
        if not self.architecture.sinusoids:
            return x
        phase = x @ self.frequencies
        return torch.cat((x, phase.sin(), phase.cos()), -1)


def two_layers(inputs: int, a: Coupling) -> nn.Sequential:
    """The map of x, or of tau's code, to features that blocks take."""
    first, second = nn.Linear(inputs, a.shared), nn.Linear(a.shared, a.width)
    return nn.Sequential(first, _activation(a), second, _activation(a))


def _activation(a: Coupling) -> nn.Module:
    return nn.SiLU() if a.activation == "silu" else nn.ReLU()


class Block(nn.Module):
    """Three layers on (features of x, features of tau), then the heads for scale and shift."""

    def __init__(self, dim: int, a: Coupling):
        super().__init__()
        w = a.width
        self.gated, self.activation = a.gated, _activation(a)
        self.from_x = nn.Linear(w, w, bias=False)
        self.from_tau = nn.Linear(w, 2 * w if a.gated else w)
        if a.gated:  # tau begins by only shifting
            nn.init.zeros_(self.from_tau.weight[:w])
            nn.init.zeros_(self.from_tau.bias[:w])
        self.hidden = nn.Sequential(_Layer(a), _Layer(a))
        self.heads = nn.Linear(w, 2 * dim)  # one product for both
        if a.start_at_identity:
            nn.init.zeros_(self.heads.weight)
            nn.init.zeros_(self.heads.bias)

    def forward(self, features: Tensor, share: Tensor) -> Tensor:
        h = self.from_x(features)
        if self.gated:
            gain, share = share.chunk(2, -1)
            h = h * (1 + gain)
        return self.heads(self.hidden(self.activation(h + share)))


class _Layer(nn.Module):
    """`activation(a) * b` of two linear maps where gated, else `activation(a)`."""

    def __init__(self, a: Coupling):
        super().__init__()
        self.linear = nn.Linear(a.width, 2 * a.width if a.gated else a.width)
        self.gated, self.activation = a.gated, _activation(a)

    def forward(self, h: Tensor) -> Tensor:
        if not self.gated:
            return self.activation(self.linear(h))
        gate, value = self.linear(h).chunk(2, -1)
        return self.activation(gate) * value


def _frequencies(dim: int, a: Coupling) -> Tensor:
    """Directions at random, magnitudes log-uniform up to the bandwidth, as angular frequencies:
    a unit coordinate runs over [-1, 1], so k periods over the width are k pi."""
    direction = nn.functional.normalize(torch.randn(dim, a.sinusoids), dim=0)
    magnitude = torch.rand(a.sinusoids).mul(math.log(max(a.bandwidth, 1.0) / 0.5)).exp().mul(0.5)
    return direction * magnitude * math.pi
