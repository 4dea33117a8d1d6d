"""The network for the relaxation of max-cut: graphs of any number of vertices, each with a place on
the unit circle.

It is equivariant: turn or mirror the circle, or renumber the vertices, and the result is turned,
mirrored or renumbered with it. A move of a vertex is a number, how far along the circle. Mirroring
changes its sign, so moves are made of odd features (which change sign too), scaled by functions of
even ones (which do not). All odd features begin as multiples of the slope of the objective and of
the way already gone, so that a point where the slope is zero stays where it is, exactly: the
network's weights decide how fast points arrive, not where.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import normalize, silu

from proxlearn.common.batch import Points
from proxlearn.common.checks import count
from proxlearn.instances.graph import Graphs, at_unit_scale, unit_scale
from proxlearn.networks.base import Architecture, Lams, Network, Prepared, place_of_lam
from proxlearn.spaces import Circles

ABOUT = 3  # what is known of a vertex before any point: length and sum of its weights, and lam
EVEN = 4 + ABOUT  # even features besides those of the messages


@dataclass(frozen=True)
class CutCircles(Architecture):
    """The sizes of the network."""

    exact = True  # the objective and its slope in the network are matrix products, too
    encodes = False
    blocks: int = 4
    """how often it looks at the slope, passes messages and moves"""
    width: int = 32
    """odd features of a vertex"""
    start_at_identity: bool = True
    """begin as the identity map"""

    def __post_init__(self):
        super().__post_init__()
        for name in ("blocks", "width"):
            count(name, getattr(self, name))

    def refuses(self, space, instances):
        if isinstance(space, Circles) and isinstance(instances, Graphs):
            return None
        return (
            "a cut_circles network is for graphs, with a circle for every vertex; this problem "
            f"lives on {space} with {instances.words} as tau"
        )

    def build(self, space, instances, lams, encoder):
        return CutCirclesNetwork(instances.any_size, self, lams)


class CutCirclesNetwork(Network):
    """Blocks that each look at the slope, pass one message along the edges, and move. Graphs of
    any size are brought to one scale first, which moves no optimum."""

    architecture: CutCircles

    def __init__(self, any_size: bool, architecture: CutCircles, lams: Lams | None = None):
        super().__init__()
        self.any_size, self.architecture, self.lams = any_size, architecture, lams
        self.blocks = nn.ModuleList(CutBlock(architecture) for _ in range(architecture.blocks))

    def encode(self, observed: Float[Tensor, "i v v"]) -> Float[Tensor, "i v v"]:
        return at_unit_scale(observed) if self.any_size else observed

    def widest(self, dim):
        return 2 * self.architecture.width * dim // 2

    def lam_scale(self, observed):
        return unit_scale(observed) if self.any_size else super().lam_scale(observed)

    def prepare(self, code: Float[Tensor, "i v v"], lam: Float[Tensor, " i"]) -> Prepared:
        """The matrix of weights (i v v), and what is known of each vertex (i v ABOUT)."""
        length, total = code.square().sum(-1).sqrt(), code.sum(-1)
        place = torch.zeros_like(total) + place_of_lam(lam, self.lams)[:, None]
        return {"weights": code, "about": torch.stack((length, total, place), -1)}

    def forward(self, x: Points, prepared: Prepared) -> Points:
        if x.device.type == "cpu" and not torch.is_grad_enabled():
            return self._in_place(x, prepared)
        count, points, _ = x.shape
        weights, about = prepared["weights"].float(), prepared["about"].float()
        about = about[:, :, None].expand(-1, -1, points, -1)
        with torch.autocast(x.device.type, enabled=False):
            start = x.float().view(count, points, -1, 2).transpose(1, 2)  # (i v n 2)
            y, odd = start, None
            for block in self.blocks:
                y, odd = block(y, start, odd, weights, about)
            return y.transpose(1, 2).reshape(x.shape)

    def _in_place(self, x: Points, prepared: Prepared) -> Points:
        """The same on a CPU, without gradients: features first (f i v n), in memory that is used
        again, and biases as the weights of a feature that is 1."""
        count, points, _ = x.shape
        weights, about = prepared["weights"].float(), prepared["about"].float()
        start = x.float().view(count, points, -1, 2).permute(3, 0, 2, 1).contiguous()
        memory = _Memory(start, about, self.architecture.width)
        y, blocks = start, cast(Iterable[CutBlock], self.blocks)
        with torch.autocast("cpu", enabled=False):
            for block in blocks:
                y = block.in_place(y, start, weights, memory)
        return y.permute(1, 3, 2, 0).reshape(x.shape)


class CutBlock(nn.Module):
    """One look at the slope, one message, one move."""

    def __init__(self, a: CutCircles):
        super().__init__()
        w = a.width
        self.of_slope = nn.Linear(2, w, bias=False)
        self.mix = nn.Linear(2 * w, w, bias=False)
        self.gates = nn.Sequential(nn.Linear(w + EVEN, 2 * w), nn.SiLU(), nn.Linear(2 * w, 2 * w))
        self.move = nn.Linear(w, 1, bias=False)
        if a.start_at_identity:
            nn.init.zeros_(self.move.weight)

    def forward(
        self,
        y: Float[Tensor, "i v n 2"],
        start: Float[Tensor, "i v n 2"],
        odd: Float[Tensor, "i v n w"] | None,
        weights: Float[Tensor, "i v v"],
        about: Float[Tensor, "i v n b"],
    ) -> tuple[Float[Tensor, "i v n 2"], Float[Tensor, "i v n w"]]:
        along = torch.stack((-y[..., 1], y[..., 0]), -1)  # the direction of a move
        field = _messages(weights, y)
        slope, depth = (field * along).sum(-1), (field * y).sum(-1)
        away, near = (start * along).sum(-1), (start * y).sum(-1)
        begun = self.of_slope(torch.stack((slope, away), -1))
        kept = begun if odd is None else odd + begun
        sent = _messages(weights, kept[..., None, :] * along[..., None])  # (i v n 2 w)
        turned = (sent * along[..., None]).sum(-2)  # odd: the Hessian's part between vertices
        bent = (sent * y[..., None]).sum(-2)  # even
        even = torch.stack((depth, near, field.square().sum(-1), away.square()), -1)
        first, second = self.gates(torch.cat((bent, even, about), -1)).chunk(2, -1)
        kept = kept + first * self.mix(torch.cat((kept, turned), -1))
        y = y + self.move((1 + second) * kept) * along
        return normalize(y, dim=-1), kept

    def in_place(
        self,
        y: Float[Tensor, "2 i v n"],
        start: Float[Tensor, "2 i v n"],
        weights: Float[Tensor, "i v v"],
        memory: "_Memory",
    ) -> Float[Tensor, "2 i v n"]:
        """The same, features first; the odd ones are left in `memory`."""
        m, w = memory, len(memory.kept)
        (u, v), (fu, fv), (su, sv) = y, torch.matmul(weights, y), start
        _, away = odd = torch.stack((fv * u - fu * v, sv * u - su * v))
        depth, near = fu * u + fv * v, su * u + sv * v
        torch.stack((depth, near, fu * fu + fv * fv, away * away), out=m.even[w : w + 4])
        _flat(m.kept).addmm_(self.of_slope.weight, _flat(odd))
        torch.mul(m.kept, y[:, None], out=m.sent)
        got, other = torch.matmul(weights, m.sent, out=m.got)
        torch.mul(got, u, out=m.turned).addcmul_(other, v)
        torch.mul(got, v, out=m.even[:w]).addcmul_(other, u, value=-1)
        _product(self.gates[0], m.even, m.hidden[:-1])
        silu(m.hidden[:-1], inplace=True)
        first, second = _product(self.gates[2], m.hidden, m.gates).chunk(2)
        mixed = _product(self.mix, m.odd, m.mixed)
        m.kept.addcmul_(first, mixed)
        torch.addcmul(m.kept, second, m.kept, out=mixed)
        step = (self.move.weight @ _flat(mixed)).view_as(u)
        y = torch.stack((u - step * v, v + step * u))
        return y.mul_(y.square().sum(0).rsqrt_())


class _Memory:
    """What a block computes and the next one computes again, in the same place."""

    def __init__(self, start: Float[Tensor, "2 i v n"], about: Float[Tensor, "i v b"], w: int):
        def room(*features: int) -> Tensor:
            return start.new_empty(*features, *start.shape[1:])

        self.even, self.hidden, self.odd = room(w + EVEN + 1), room(2 * w + 1), room(2 * w)
        self.even[-1] = self.hidden[-1] = 1
        self.even[-1 - ABOUT : -1] = about.permute(2, 0, 1)[..., None]
        self.kept, self.turned = self.odd.chunk(2)
        self.kept.zero_()
        self.sent, self.got, self.gates, self.mixed = room(2, w), room(2, w), room(2 * w), room(w)


def _flat(features: Float[Tensor, "f i v n"]) -> Float[Tensor, "f m"]:
    return features.view(len(features), -1)


def _product(layer: nn.Module, features: Tensor, out: Tensor) -> Tensor:
    """A linear layer, features first; where it has a bias, the last feature is 1."""
    assert isinstance(layer, nn.Linear)
    weight = layer.weight
    if layer.bias is not None:
        weight = torch.cat((weight, layer.bias[:, None]), 1)
    torch.mm(weight, _flat(features), out=_flat(out))
    return out


def _messages(weights: Tensor, sent: Float[Tensor, "i v n *k"]) -> Float[Tensor, "i v n *k"]:
    """What every vertex gets from its neighbours, by weight: one product for all points."""
    return (weights @ sent.flatten(2)).view(sent.shape)
