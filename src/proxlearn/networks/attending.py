"""The network for a tau that is a set of vectors: every point looks at every member from where it
is, and attends to those that matter there.

A member is turned, once per tau, into a place, and linear maps of the way from there: what a point
sees of the member, and ways to go. In every block a point makes features of what it sees, weighs
the members by attention, and goes a weighted mean of their ways.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from proxlearn.common.batch import Batch, Points
from proxlearn.common.checks import count
from proxlearn.instances.set import Sets
from proxlearn.networks.base import Architecture, Lams, Network, Prepared, place_of_lam
from proxlearn.networks.coupling import REACH
from proxlearn.networks.encoders.base import Encoder

SHARP = 10.0  # times the features' own: attention is soon all on one member
ABSENT = -1e4  # what attention to a member that is not there begins with


@dataclass(frozen=True)
class Attending(Architecture):
    """The sizes of the network."""

    exact = True  # a member is seen by what is left of x minus its place
    blocks: int = 3
    """how often a point looks at the members and moves"""
    width: int = 32
    """features of a point and a member"""
    shared: int = 128
    """hidden size of the map of a member"""
    ways: int = 2
    """directions that a member offers to go"""
    start_at_identity: bool = True
    """begin as the identity map"""

    def __post_init__(self):
        super().__post_init__()
        for name in ("blocks", "width", "shared", "ways"):
            count(name, getattr(self, name))

    def refuses(self, space, instances):
        if isinstance(instances, Sets):
            return None
        return f"an attending network is for sets of vectors, and tau is {instances.words}"

    def build(self, space, instances, lams, encoder):
        assert encoder is not None
        assert isinstance(instances, Sets)
        return AttendingNetwork(space.dim, instances, encoder, self, lams)


class AttendingNetwork(Network):
    """Blocks that each look at the members where the points are, and move them."""

    architecture: Attending

    def __init__(
        self, dim: int, instances: Sets, encoder: Encoder, a: Attending, lams: Lams | None = None
    ):
        super().__init__()
        self.architecture, self.instances, self.encoder, self.lams = a, instances, encoder, lams
        self.code_size = encoder.size + 1
        self.of_member = nn.Sequential(
            nn.Linear(instances.features, a.shared), nn.SiLU(), nn.Linear(a.shared, a.shared)
        )
        self.of_code = nn.Linear(self.code_size, a.shared)
        self.looks = nn.ModuleList(
            Look(a.shared + instances.features, dim, a) for _ in range(a.blocks)
        )
        self.blocks = nn.ModuleList(Block(dim, a) for _ in range(a.blocks))

    def encode(self, observed: Batch) -> Batch:
        seen, there = self.instances.seen(observed)
        code, members = self.encoder(observed), self.of_member(seen)
        return {"code": code, "seen": seen, "members": members, "there": there}

    def prepare(self, code: Batch, lam: Float[Tensor, " i"]) -> Prepared:
        """The code with lam's place in its range, what each block makes of the members, and which
        of them are there."""
        with torch.autocast(lam.device.type, enabled=False):
            whole = torch.cat((code["code"].float(), place_of_lam(lam, self.lams)[:, None]), -1)
            members = code["members"].float() + self.of_code(whole)[:, None]
            members = torch.cat((nn.functional.silu(members), code["seen"]), -1)
            looks = [look(members) for look in self.looks]
        return {"code": whole, "looks": looks, "there": code["there"].float()[:, None]}

    def forward(self, x: Points, prepared: Prepared) -> Points:
        with torch.autocast(x.device.type, enabled=False):
            for block, look in zip(self.blocks, prepared["looks"]):
                x = block(x, look, prepared["there"])
        return x


class Look(nn.Module):
    """Of every member a map of x: what is seen of the member, and ways to go, which are 0 at its
    place. The linear parts (i d m*k) and the constant ones (i 1 m*k) of all members."""

    def __init__(self, inputs: int, dim: int, a: Attending):
        super().__init__()
        seen, self.ways = 2 * a.width, a.ways * dim
        self.sizes = (dim, seen, dim * (seen + self.ways))
        self.of_member = nn.Linear(inputs, sum(self.sizes))

    def forward(self, members: Float[Tensor, "i m s"]) -> Prepared:
        place, shift, linear = self.of_member(members).split(self.sizes, -1)
        linear = linear.unflatten(-1, (place.shape[-1], -1))  # (i m d k)
        constant = nn.functional.pad(shift, (0, self.ways)) - (place[..., None] * linear).sum(-2)
        return linear.transpose(1, 2).flatten(2), constant.flatten(1)[:, None]


class Block(nn.Module):
    """What a point makes of its look at all members, and its move."""

    def __init__(self, dim: int, a: Attending):
        super().__init__()
        w = a.width
        self.ways, self.sizes = a.ways, (2 * w, a.ways * dim)
        self.layer = nn.Linear(w, 2 * w)
        self.heads = nn.Linear(w, 1 + a.ways)  # attention, and how far along the ways
        last = nn.Linear(2 * w, dim)
        self.free = nn.Sequential(nn.Linear(2 * w, 2 * w), nn.SiLU(), last)
        if a.start_at_identity:
            for weight in (*self.heads.parameters(), *last.parameters()):
                nn.init.zeros_(weight)

    def forward(self, x: Points, look: Prepared, there: Float[Tensor, "i 1 m"]) -> Points:
        linear, constant = look
        every = torch.baddbmm(constant, x.clamp(-REACH, REACH), linear)
        every = every.unflatten(-1, (there.shape[-1], -1))  # (i n m k)
        seen, ways = every.split(self.sizes, -1)
        features = _gated(self.layer(_gated(seen)))
        attention, shares = self.heads(features).split((1, self.ways), -1)
        attention = (SHARP * attention + ABSENT * (1 - there)[..., None]).softmax(2)
        move = ((attention * shares)[..., None] * ways.unflatten(-1, (self.ways, -1))).sum((2, 3))
        mean, most = (attention * features).sum(2), (features.relu() * there[..., None]).amax(2)
        return x + move + self.free(torch.cat((mean, most), -1))


def _gated(h: Tensor) -> Tensor:
    gate, value = h.chunk(2, -1)
    return nn.functional.silu(gate) * value
