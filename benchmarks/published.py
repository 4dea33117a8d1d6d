"""The plain eager loop that follows the published procedure to the letter (paper, 5.1, app. B and
C): what the other benchmarks measure training against.

In the authors' own code every block has two networks, one for scale and one for shift; the text has
one with two heads. This loop follows the text, so it does less work than what was published.
"""

from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from proxlearn.common.seeds import generator_for
from proxlearn.problems.base import Problem

INSTANCES, POINTS, APPLICATIONS = 32, 256, 5  # of a training step
RATE, LAM = 1e-4, 0.2  # LAM: the authors' weight is 0.1 on |y - x|^2, which is lam / 2
STEPS = 200_000  # of a whole training


class PublishedNetwork(nn.Module):
    """App. B as it reads: every block maps x and tau's code, for every point, through the shared
    networks, and the two side by side through three layers to a scale and a shift."""

    def __init__(self, dim: int, code: int, blocks: int = 3, width: int = 128, shared: int = 256):
        super().__init__()
        self.of_x, self.of_tau = (layers(size, shared, width) for size in (dim, code))
        self.blocks = nn.ModuleList(PublishedBlock(dim, width) for _ in range(blocks))

    def forward(self, x: Float[Tensor, "i n d"], tau: Float[Tensor, "i c"]) -> Tensor:
        code = tau[:, None].expand(-1, x.shape[1], -1)  # (i, n, c): one for every point
        for block in self.blocks:
            scale, shift = block(torch.cat((self.of_x(x), self.of_tau(code)), -1))
            x = x * scale.exp() + shift
        return x


class PublishedBlock(nn.Module):
    """Features (i, n, 2 width) to a scale and a shift, (i, n, dim) each."""

    def __init__(self, dim: int, width: int):
        super().__init__()
        self.hidden = layers(2 * width, width, width, width)
        self.scale = nn.Sequential(nn.Linear(width, dim), nn.Hardtanh(-2, 2))
        self.shift = nn.Linear(width, dim)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.hidden(features)
        return self.scale(hidden), self.shift(hidden)


def layers(*sizes: int) -> nn.Sequential:
    """Linear layers of these sizes, each with a ReLU."""
    pairs = ((nn.Linear(a, b), nn.ReLU()) for a, b in pairwise(sizes))
    return nn.Sequential(*(each for pair in pairs for each in pair))


class PublishedLoop:
    """A training under way; `step()` is one iteration and returns its loss."""

    def __init__(
        self,
        problem: Problem,
        device: torch.device,
        instances: int = INSTANCES,
        points: int = POINTS,
        applications: int = APPLICATIONS,
    ):
        assert problem.parameters is not None  # the code of tau is tau itself
        self.problem, self.instances, self.points = problem, instances, points
        self.applications, self.generator = applications, generator_for(0, "published", device)
        self.network = PublishedNetwork(problem.space.dim, problem.parameters.dim).to(device)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=RATE)

    def step(self) -> float:
        torch.set_float32_matmul_precision("highest")  # others may have left TF32 on
        tau = self.problem.sample(self.instances, "train", self.generator)
        x = self.problem.space.sample(
            self.instances, self.points, generator=self.generator, device=tau.device
        )
        loss = torch.zeros((), device=tau.device)
        for _ in range(self.applications):  # unfolding: x follows Phi^k(uniform), all k are trained
            y = self.problem.space.retract(self.network(x, tau))
            pull = LAM / 2 * (y - x).square().sum(-1)
            loss = loss + (self.problem.objective(y, tau) + pull).mean() / self.applications
            x = y.detach()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()  # read back at every step
