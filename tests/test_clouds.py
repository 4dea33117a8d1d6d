"""A throw-away problem over point clouds, all in this file: tau is a cloud, drawn anew from its
surface at every step, and every point of x looks at the cloud around it."""

import itertools
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

import proxlearn as px
from proxlearn.instances.base import Instances
from proxlearn.networks.base import Architecture, Network

POINTS = 48
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU"
))]  # fmt: skip


@dataclass(frozen=True)
class Clouds(Instances):
    """Clouds (points, 2), as many points in each."""

    points: int

    def batch(self, tau):
        tau = torch.as_tensor(tau, dtype=torch.float32)
        tau = tau[None] if tau.ndim == 2 else tau
        if tau.ndim != 3 or tau.shape[1:] != (self.points, 2):
            raise px.InputError(f"tau has shape {tuple(tau.shape)}; expected ({self.points}, 2).")
        return tau


@dataclass(frozen=True)
class Nearby(Architecture):
    encodes = False
    width: int = 32

    def build(self, space, instances, lams, encoder):
        return NearbyNetwork(self)


class NearbyNetwork(Network):
    """A point sees the mean of the cloud around it, near and far, and goes a share of each way."""

    scales = (0.1, 0.3, 0.9)

    def __init__(self, sizes: Nearby):
        super().__init__()
        self.architecture = sizes
        inputs = 3 * len(self.scales)
        self.shares = nn.Sequential(
            nn.Linear(inputs, sizes.width), nn.SiLU(), nn.Linear(sizes.width, len(self.scales))
        )
        nn.init.zeros_(self.shares[-1].weight)
        nn.init.zeros_(self.shares[-1].bias)

    def prepare(self, code, lam):
        return [code, (lam,)]  # any tree will do

    def forward(self, x, prepared):
        cloud, (_,) = prepared
        way = cloud[:, None] - x[:, :, None]  # (i n m 2)
        square = way.square().sum(-1, keepdim=True)
        seen = []
        for scale in self.scales:
            weight = (-square / (2 * scale**2)).softmax(2)
            seen.append((weight * way).sum(2))
        lengths = [each.norm(dim=-1, keepdim=True) for each in seen]
        shares = self.shares(torch.cat((*seen, *lengths), -1))
        return x + (shares[..., None, :] * torch.stack(seen, -1)).sum(-1)


class Blobs(px.Problem):
    """Three blobs, whose centres are the optima: the objective knows them, a cloud shows them."""

    name = "blobs"
    space = px.Box(-1.0, 1.0, dim=2)
    instances = Clouds(POINTS)
    architecture = Nearby()
    lam = 2.0

    def sample(self, count, split, generator):
        device = generator.device
        centres = 1.6 * torch.rand(count, 3, 2, generator=generator, device=device) - 0.8
        return self.refresh({"centres": centres}, generator)

    def refresh(self, tau, generator):
        shape, device = (len(tau["centres"]), POINTS, 2), generator.device
        noise = 0.05 * torch.randn(shape, generator=generator, device=device)
        return tau | {"cloud": tau["centres"].repeat(1, POINTS // 3, 1) + noise}

    def observe(self, tau):
        return tau["cloud"]

    def objective(self, x, tau):
        return (x[:, :, None] - tau["centres"][:, None]).square().sum(-1).amin(-1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("error::proxlearn.errors.SpeedWarning")  # on a GPU it is captured
def test_clouds_are_trained_saved_loaded_and_solved_with(device: str, tmp_path: Path):
    problem = Blobs()
    how = {"steps": 300, "instances": 18, "points": 16, "depth": 2, "rate": 1e-2, "applications": 8}
    operator = px.learn(problem, device=device, progress=False, **how)
    tau = problem.sample(4, "test", torch.Generator().manual_seed(1))
    found = operator.solve(tau, starts=64)
    begun = problem.objective(found.starts.cpu(), tau)
    assert found.values.median() < 0.2 * begun.median()

    path = operator.save(tmp_path / "blobs.safetensors")
    with pytest.raises(px.FileError, match=r"'Clouds' of this file is not part .* instances="):
        px.load(path, architecture=Nearby)
    loaded = px.load(path, device, architecture=Nearby, instances=Clouds)
    assert loaded.instances == Clouds(POINTS)
    seen = loaded.solve(tau["cloud"], found.starts)
    torch.testing.assert_close(seen.points, found.points)
    (streamed,) = loaded.stream(tau["cloud"], found.starts[0])
    torch.testing.assert_close(streamed.points[0], found.points[0])
    with pytest.raises(px.InputError, match=r"expected \(48, 2\)"):
        loaded.solve(torch.zeros(5, 2))


def test_what_is_random_is_drawn_anew_at_every_step_and_the_same_after_a_resume(
    tmp_path: Path, tiny: dict, interrupt_at, same_weights, report_each_step
):
    clouds = []

    class Watched(Blobs):
        def objective(self, x, tau):
            clouds.append(tau["cloud"].clone())
            return super().objective(x, tau)

    settings = {k: v for k, v in tiny.items() if k not in ("architecture", "lam")}
    straight = px.learn(Watched(), steps=12, **settings)
    steps = [each for each in clouds if len(each) == 12]
    assert len(steps) >= 12
    assert not any(torch.equal(a, b) for a, b in itertools.pairwise(steps))
    px.learn(Blobs(), steps=12, out=tmp_path, watch=interrupt_at(7), **settings)
    resumed = px.learn(Blobs(), steps=12, out=tmp_path, resume=True, **settings)
    assert same_weights(straight, resumed)
