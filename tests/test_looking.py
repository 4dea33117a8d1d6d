"""A network that looks: a throw-away problem over pictures whose points look at a feature map where
they are. All of it is in this file: nothing else in the library knows of it."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import proxlearn as px
from proxlearn.instances.picture import Pictures
from proxlearn.networks.base import Architecture, Network, place_of_lam

SIDE = 16
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU"
))]  # fmt: skip


@dataclass(frozen=True)
class Looking(Architecture):
    """Sizes: features of the map, and hidden numbers of what a point makes of them."""

    encodes = False
    features: int = 8
    width: int = 32

    def refuses(self, space, instances):
        return None if isinstance(instances, Pictures) else "it looks at pictures"

    def build(self, space, instances, lams, encoder):
        return LookingNetwork(instances.channels, self, lams)


class LookingNetwork(Network):
    """Every point sees the 3 x 3 features around it, where it is, and lam."""

    def __init__(self, channels: int, sizes: Looking, lams):
        super().__init__()
        self.architecture, self.lams = sizes, lams
        self.map = nn.Sequential(nn.Conv2d(channels, sizes.features, 3, padding=1), nn.SiLU())
        around = torch.linspace(-0.2, 0.2, 3)
        self.around: Tensor
        self.register_buffer("around", torch.cartesian_prod(around, around))
        inputs = 9 * sizes.features + 3
        self.move = nn.Sequential(nn.Linear(inputs, sizes.width), nn.SiLU())
        self.step = nn.Linear(sizes.width, 2)
        nn.init.zeros_(self.step.weight)
        nn.init.zeros_(self.step.bias)

    def encode(self, observed):
        return {"map": self.map(observed)}

    def prepare(self, code, lam):
        return code | {"lam": place_of_lam(lam, self.lams)}

    def forward(self, x, prepared):
        at = x[:, :, None] + self.around  # (i n 9 2)
        seen = nn.functional.grid_sample(prepared["map"], at, align_corners=False)  # (i f n 9)
        seen = seen.permute(0, 2, 3, 1).flatten(2)
        lam = prepared["lam"][:, None, None].expand(-1, x.shape[1], 1)
        return x + self.step(self.move(torch.cat((seen, x, lam), -1)))


class Spots(px.Problem):
    """Two bright spots in a picture; the objective knows where they are, an operator only sees."""

    name = "spots"
    space = px.Box(0.0, 1.0, dim=2)
    instances = Pictures(1, SIDE, SIDE)
    lam = 4.0
    architecture = Looking()

    def sample(self, count, split, generator):
        device = generator.device
        spots = 0.15 + 0.7 * torch.rand(count, 2, 2, generator=generator, device=device)
        pixels = (torch.arange(SIDE, device=device) + 0.5) / SIDE
        across, down = (
            (-(pixels - spots[..., k, None]).square() / 0.02).exp() for k in (0, 1)
        )  # (i spots pixels)
        picture = (down[..., :, None] * across[..., None, :]).amax(1, keepdim=True)
        return {"picture": picture, "spots": spots}

    def observe(self, tau):
        return tau["picture"]

    def objective(self, x, tau):
        return (x[:, :, None] - tau["spots"][:, None]).square().sum(-1).amin(-1)

    def truth(self, tau):
        return list(tau["spots"])


def trained(device: str, **settings) -> px.Operator:
    how = {"steps": 400, "instances": 18, "points": 24, "depth": 2, "rate": 1e-2, "applications": 8}
    return px.learn(Spots(), device=device, progress=False, **how | settings)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("error::proxlearn.errors.SpeedWarning")  # on a GPU it is captured
def test_points_that_look_are_trained_saved_loaded_and_solved_with(device: str, tmp_path: Path):
    operator, problem = trained(device), Spots()
    tau = problem.sample(8, "test", torch.Generator().manual_seed(5))
    found = operator.solve(tau, starts=64)  # whole: it knows the objective
    begun = problem.objective(found.starts.cpu(), tau)
    assert found.values.median() < 0.2 * begun.median()
    hits, known = px.metrics.recall(found.cpu(), problem.truth(tau), tolerance=0.1)
    assert hits >= 0.75 * known

    path = operator.save(tmp_path / "spots.safetensors")
    with pytest.raises(px.FileError, match=r"'Looking' .* is not part .* architecture="):
        px.load(path)
    for own in (Looking, Looking()):
        loaded = px.load(path, device, architecture=own)
        seen = loaded.solve(tau["picture"], found.starts)
        torch.testing.assert_close(seen.points, found.points)
        assert seen.values is None
    with pytest.raises(px.FileError, match="pass the one it was made with"):
        px.load(path, architecture=Looking(width=64))


def test_what_is_seen_is_enough_for_px_solve():
    operator, problem = trained("cpu", steps=2), Spots()
    tau = problem.sample(2, "test", torch.Generator().manual_seed(0))
    how = {"starts": 8, "device": "cpu", "operator": operator}
    whole, seen = (px.solve(problem, each, "operator", **how) for each in (tau, tau["picture"]))
    assert whole.values is not None
    assert seen.values is None
    assert torch.equal(whole.points, seen.points)
    assert torch.equal(operator.solve(tau["picture"], 8).points, seen.points)
    with pytest.raises(px.InputError, match="needs the objective"):
        px.solve(problem, tau["picture"], "lbfgs", starts=8, device="cpu")
    with pytest.raises(px.InputError, match="'safeguarded' needs the objective"):
        px.solve(problem, tau["picture"], "safeguarded", **how)


def test_a_range_of_lam_reaches_a_network_of_ones_own():
    operator = trained("cpu", steps=30, lam=(1.0, 16.0))
    tau = Spots().sample(1, "test", torch.Generator().manual_seed(0))
    low, high = (operator.solve(tau, 8, steps=1, lam=lam).points for lam in (1.0, 16.0))
    assert (low - high).abs().max() > 1e-4


def test_a_network_that_does_not_fit_says_why():
    with pytest.raises(px.InputError, match="does not fit: it looks at pictures"):
        px.learn(px.problem("conic"), architecture=Looking(), steps=1, device="cpu")
