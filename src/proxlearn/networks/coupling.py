"""The operator's network (paper, app. B): residual blocks with additive and multiplicative
coupling.

It maps points in unit coordinates and a code of tau to points in unit coordinates. What depends on
tau alone is computed once per tau by `prepare`; `forward` does the work of every point.
"""

import math
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from proxlearn.errors import InputError, UnknownNameError

REACH = 2.0  # how far out, in unit coordinates, points are told apart by their features
Prepared = Float[Tensor, "i 1 s"]  # tau's share of the first layers, block after block


@dataclass(frozen=True)
class Architecture:
    """The sizes of a network. `PRESETS["paper"]` is the published one."""

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
    kind: str = "coupling"
    """coupling (below), or graph: equivariant, for points on circles (graph_network.py)"""

    def __post_init__(self):
        if self.kind not in ("coupling", "graph"):
            raise InputError(f"kind must be 'coupling' or 'graph', not {self.kind!r}.")
        for name in ("blocks", "width", "shared"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.activation not in ("silu", "relu"):
            raise InputError(f"activation must be 'silu' or 'relu', not {self.activation!r}.")


PRESETS = {
    "default": Architecture(),
    "paper": Architecture(activation="relu", gated=False, start_at_identity=False),
    "graph": Architecture(kind="graph", blocks=4, width=32),
}


def architecture_from(value: "str | dict[str, Any] | Architecture") -> Architecture:
    """An architecture from a preset's name, a dictionary of its fields, or itself."""
    if isinstance(value, Architecture):
        return value
    if isinstance(value, dict):
        for name in value:
            if name not in Architecture.__dataclass_fields__:
                raise UnknownNameError("size of a network", name, Architecture.__dataclass_fields__)
        return Architecture(**value)
    if value not in PRESETS:
        raise UnknownNameError("architecture", str(value), PRESETS)
    return PRESETS[value]


class Coupling(nn.Module):
    """`x <- x * exp(s) + t` in every block, with (s, t) computed from x and tau's code."""

    def __init__(self, dim: int, code: int, architecture: Architecture):
        super().__init__()
        a = architecture
        self.architecture = a
        if a.sinusoids:
            self.frequencies: Tensor
            self.register_buffer("frequencies", _frequencies(dim, a))
        features = dim + 2 * a.sinusoids
        self.of_x, self.of_tau = two_layers(features, a), two_layers(code, a)
        self.blocks = nn.ModuleList(Block(dim, a) for _ in range(a.blocks))

    def prepare(self, code: Float[Tensor, "i c"]) -> Prepared:
        """Everything that depends on tau alone."""
        layers = [block.from_tau for block in self.blocks]
        weight, bias = (
            torch.cat([getattr(f, name) for f in layers]) for name in ("weight", "bias")
        )
        return nn.functional.linear(self.of_tau(code), weight, bias)[:, None]  # one product for all

    def forward(self, x: Float[Tensor, "i n d"], prepared: Prepared) -> Float[Tensor, "i n d"]:
        precision = self._fused_in(x)
        if precision:
            from proxlearn.networks import coupling_kernel

            return coupling_kernel.apply(self, x, prepared, precision)
        for block, share in zip(self.blocks, prepared.chunk(len(self.blocks), -1)):
            scale, shift = block(self.of_x[1:](self._first_layer(x)), share).float().chunk(2, -1)
            x = x * scale.clamp(-2, 2).exp() + shift
        return x

    def _fused_in(self, x: Tensor) -> str | None:
        """The precision of the fused kernels, where they can be used and are faster: on a GPU,
        for sizes that fit on chip, unless products are to be exact."""
        a, sizes = self.architecture, (16, 32, 64, 128)
        exact = torch.get_float32_matmul_precision() == "highest"
        fits = a.width in sizes and a.shared in (*sizes, 256, 512) and x.shape[-1] <= 32
        filled = x.shape[-2] >= -x.shape[-2] % 64  # they take 64 points at once, there or not
        if not (x.is_cuda and fits and filled) or a.sinusoids or not find_spec("triton"):
            return None
        if torch.is_autocast_enabled("cuda"):
            return "bf16"
        return None if exact else "tf32"

    def _first_layer(self, x: Float[Tensor, "i n d"]) -> Float[Tensor, "i n s"]:
        """Always in full precision: it is what tells near points apart."""
        with torch.autocast(x.device.type, enabled=False):
            return self.of_x[0](self._embed(x))

    def _embed(self, x: Tensor) -> Tensor:
        x = x.clamp(-REACH, REACH)  # products of features grow without bound far outside the space
        if not self.architecture.sinusoids:
            return x
        phase = x @ self.frequencies
        return torch.cat((x, phase.sin(), phase.cos()), -1)


def two_layers(inputs: int, a: Architecture) -> nn.Sequential:
    """The map of x, or of tau's code, to features that blocks take."""
    activation = _activation(a)
    return nn.Sequential(
        nn.Linear(inputs, a.shared), activation(), nn.Linear(a.shared, a.width), activation()
    )


def _activation(a: Architecture) -> type[nn.Module]:
    return nn.SiLU if a.activation == "silu" else nn.ReLU


class Block(nn.Module):
    """Three layers on (features of x, features of tau), then the heads for scale and shift."""

    def __init__(self, dim: int, a: Architecture):
        super().__init__()
        w, activation = a.width, _activation(a)
        self.gated, self.activation = a.gated, activation()
        self.from_x = nn.Linear(w, w, bias=False)
        self.from_tau = nn.Linear(w, 2 * w if a.gated else w)
        if a.gated:  # tau begins by only shifting
            nn.init.zeros_(self.from_tau.weight[:w])
            nn.init.zeros_(self.from_tau.bias[:w])
        layer = _GatedLayer if a.gated else _PlainLayer
        self.hidden = nn.Sequential(layer(w, activation), layer(w, activation))
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


class _PlainLayer(nn.Module):
    def __init__(self, width: int, activation: type[nn.Module]):
        super().__init__()
        self.linear, self.activation = nn.Linear(width, width), activation()

    def forward(self, h: Tensor) -> Tensor:
        return self.activation(self.linear(h))


class _GatedLayer(nn.Module):
    def __init__(self, width: int, activation: type[nn.Module]):
        super().__init__()
        self.linear, self.activation = nn.Linear(width, 2 * width), activation()

    def forward(self, h: Tensor) -> Tensor:
        gate, value = self.linear(h).chunk(2, -1)
        return self.activation(gate) * value


def _frequencies(dim: int, a: Architecture) -> Tensor:
    """Directions at random, magnitudes log-uniform up to the bandwidth, as angular frequencies.

    A unit coordinate runs over [-1, 1], so k periods over the width are an angular frequency k pi.
    """
    direction = nn.functional.normalize(torch.randn(dim, a.sinusoids), dim=0)
    magnitude = torch.rand(a.sinusoids).mul(math.log(max(a.bandwidth, 1.0) / 0.5)).exp().mul(0.5)
    return direction * magnitude * math.pi


def describe(architecture: Architecture) -> dict[str, Any]:
    """The architecture as JSON."""
    return asdict(architecture)
