"""The operator's network for graphs: any number of vertices, each with a place on the unit circle.

It is equivariant: turn or mirror the circle, or renumber the vertices, and the result is turned,
mirrored or renumbered with it. A move of a vertex is a number, how far along the circle. Mirroring
changes its sign, so moves are made of odd features (which change sign too), scaled by functions of
even ones (which do not). All odd features begin as multiples of the slope of the objective and of
the way already gone, so that a point where the slope is zero stays where it is, exactly: the
network's weights decide how fast points arrive, not where.
"""

from math import isqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn

from proxlearn.networks.coupling import Architecture, Prepared
from proxlearn.networks.encoders.graph import pairs

ABOUT = 3  # what is known of a vertex before any point: length and sum of its weights, and lam
EVEN = 4 + ABOUT  # even features besides those of the messages


class GraphNetwork(nn.Module):
    """Blocks that each look at the slope, pass one message along the edges, and move."""

    def __init__(self, dim: int, code: int, architecture: Architecture):
        super().__init__()
        self.architecture = architecture
        self.sees_lam = code > pairs(dim // 2)
        self.blocks = nn.ModuleList(GraphBlock(architecture) for _ in range(architecture.blocks))

    def prepare(self, code: Float[Tensor, "i c"]) -> Prepared:
        """The matrix of weights and what is known of each vertex, flat: (i, 1, v (v + ABOUT))."""
        edges = code.shape[1] - self.sees_lam
        vertices = (1 + isqrt(1 + 8 * edges)) // 2
        row, column = torch.triu_indices(vertices, vertices, offset=1, device=code.device)
        half = code.new_zeros(len(code), vertices, vertices)
        half[:, row, column] = code[:, :edges]
        weights = half + half.mT
        lam = code[:, -1:] if self.sees_lam else torch.zeros_like(code[:, :1])
        about = [weights.square().sum(-1).sqrt(), weights.sum(-1), lam.expand(-1, vertices)]
        return torch.cat((weights, torch.stack(about, -1)), -1).flatten(1)[:, None]

    def forward(self, x: Float[Tensor, "i n d"], prepared: Prepared) -> Float[Tensor, "i n d"]:
        count, points, dim = x.shape
        known = prepared.view(count, dim // 2, -1)
        weights, about = known.split((dim // 2, ABOUT), -1)
        about = about[:, :, None].expand(-1, -1, points, -1)
        with torch.autocast(x.device.type, enabled=False):
            start = x.float().view(count, points, -1, 2).transpose(1, 2)  # (i v n 2)
            y, odd = start, None
            for block in self.blocks:
                y, odd = block(y, start, odd, weights.float(), about.float())
            return y.transpose(1, 2).reshape(x.shape)


class GraphBlock(nn.Module):
    """One look at the slope, one message, one move."""

    def __init__(self, a: Architecture):
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
        gates = self.gates(torch.cat((bent, even, about), -1))
        first, second = gates.chunk(2, -1)
        kept = kept + first * self.mix(torch.cat((kept, turned), -1))
        y = y + self.move((1 + second) * kept) * along
        return nn.functional.normalize(y, dim=-1), kept


def _messages(
    weights: Float[Tensor, "i v v"], sent: Float[Tensor, "i v n *k"]
) -> Float[Tensor, "i v n *k"]:
    """What every vertex gets from its neighbours, by weight: one product for all points."""
    return (weights @ sent.flatten(2)).view(sent.shape)
