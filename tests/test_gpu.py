"""What only a GPU can show: captured steps, compiled kernels, and what happens without."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from making import grey_images

import proxlearn as px
from proxlearn.calculus.derivatives import eigh
from proxlearn.errors import SpeedWarning, TrainingError
from proxlearn.gpu.kernels import Compiling
from proxlearn.networks.coupling import CouplingNetwork
from proxlearn.problems.base import held_out
from proxlearn.problems.conic import Conic
from proxlearn.problems.detection import Detection
from proxlearn.problems.maxcut.maxcut import Maxcut
from proxlearn.training.session import Session
from proxlearn.training.settings import Training

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

QUICK = {"steps": 60, "device": "cuda", "progress": False, "applications": 3}


def weights(operator: px.Operator) -> torch.Tensor:
    return torch.cat([weight.detach().flatten().cpu() for weight in operator.parameters()])


class ReadsBack(Conic):
    def objective(self, x, tau):
        values = super().objective(x, tau)
        return values if values.mean().item() >= 0 else -values


class BreaksAt(Conic):
    """Its value is no number from some step on."""

    def __init__(self):
        self.calls = torch.zeros((), device="cuda")

    def objective(self, x, tau):
        self.calls += 1
        return super().objective(x, tau) + torch.where(self.calls > 40, torch.nan, 0.0)


def test_a_captured_step_is_the_step_itself():
    """The same draws, and the same weights within rounding, as launched piece by piece."""
    captured = px.learn(Conic(), precision="fp32", **QUICK)
    with pytest.warns(SpeedWarning, match=r"waits for the GPU at .*test_gpu\.py"):
        piecewise = px.learn(ReadsBack(), precision="fp32", **QUICK)
    torch.testing.assert_close(weights(captured), weights(piecewise), rtol=1e-3, atol=1e-4)


def test_a_training_goes_over_to_its_kernels_when_they_are_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Until then it trains without them. The next process finds them, and does not wait for them to
    be loaded either."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    settings = Training(seconds=60.0, precision="tf32")
    session = Session(Conic(), settings, torch.device("cuda"))
    losses, without = [], 0
    for report in session.run():
        losses.append(report.terms["loss"])
        if session.operator.network.kernels:
            break
        without = report.step
    assert session.operator.network.kernels
    assert without > 100
    assert losses[-1] < losses[0]
    seconds, steps = trained_alone(1, tmp_path)
    assert seconds < 3
    assert steps >= 300


def test_kernels_that_cannot_be_compiled_are_not_used(monkeypatch: pytest.MonkeyPatch):
    compiling = Compiling("proxlearn.networks.coupling_kernel", ["no such sizes"])
    monkeypatch.setattr(CouplingNetwork, "compile_kernels", lambda *_: compiling)
    session = Session(Conic(), Training(seconds=20.0, precision="tf32"), torch.device("cuda"))

    def train_until_told() -> None:
        for _ in session.run():
            if compiling.process is None:
                return

    with pytest.warns(SpeedWarning, match="could not be compiled: TypeError"):
        train_until_told()
    assert not session.operator.network.kernels


@pytest.mark.filterwarnings("error::proxlearn.errors.SpeedWarning")
@pytest.mark.parametrize("sampling", ["pool", "unfold"])
@pytest.mark.parametrize("data", ["generated", "stored"])
def test_images_are_made_inside_a_captured_step(data: str, sampling: str):
    """Painted, or cropped and mirrored, with points that begin near their boxes."""
    problem, losses = Detection(grey_images(32) if data == "stored" else None, side=32), []
    px.learn(problem, sampling=sampling, watch=lambda r, _: losses.append(r.terms["loss"]), **QUICK)
    assert losses


def test_images_are_the_same_on_every_device():
    for problem in (Detection(side=32), Detection(grey_images(32))):
        there, here = (held_out(problem, 8, device=device) for device in ("cuda", "cpu"))
        drawn = problem.sample(8, "train", torch.Generator().manual_seed(0))
        moved = {name: each.cuda() for name, each in drawn.items()}
        pairs = [(there, here), (problem.look_up(moved), problem.look_up(drawn))]
        for a, b in pairs:
            for name in b:
                torch.testing.assert_close(a[name].cpu(), b[name], rtol=0, atol=1e-3)


def test_a_loss_that_breaks_inside_a_graph_names_its_step():
    with pytest.raises(TrainingError, match=r"at step 4[01]"):
        px.learn(BreaksAt(), **QUICK)


@pytest.mark.filterwarnings("error::proxlearn.errors.SpeedWarning")
def test_the_loss_falls_alike_in_every_precision():
    """Step for step at first; later, trainings of one seed part ways whatever the precision."""
    first, last = {}, {}
    for precision in ("fp32", "tf32", "bf16"):
        for steps, losses in ((200, first), (1000, last)):
            reports = []
            settings = QUICK | {"steps": steps, "precision": precision}
            px.learn(Conic(), watch=lambda report, _, seen=reports: seen.append(report), **settings)
            losses[precision] = reports[-1].terms["loss"]
    assert first["tf32"] == pytest.approx(first["fp32"], rel=0.05)
    assert first["bf16"] == pytest.approx(first["fp32"], rel=0.05)
    assert max(last.values()) < 1 < min(first.values())


def trained_alone(budget: int, kernels: Path) -> tuple[float, float]:
    """A training in a process of its own, with the kernels in a folder: the seconds that it took,
    and its steps."""
    script = (
        "import time, proxlearn as px; began = time.monotonic(); operator = px.learn("
        f"px.problem('conic'), seconds={budget}, progress=False, applications=3, device='cuda'); "
        "print(time.monotonic() - began, operator.provenance['steps'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"TRITON_CACHE_DIR": str(kernels)},
    )
    seconds, steps = map(float, ran.stdout.split()[-2:])
    return seconds, steps


def test_ten_seconds_are_ten_seconds_of_training(tmp_path: Path):
    """Nobody waits for kernels: in a process of its own, with no kernels of an earlier one."""
    seconds, steps = trained_alone(2, tmp_path)
    assert seconds < 4
    assert steps > 500


def test_a_solve_that_is_repeated_is_replayed_and_stays_the_same():
    operator = px.pretrained("conic", "cuda")
    taus = held_out(Conic(), 12)
    first = [operator.solve(tau, starts=256, steps=3).points for tau in taus]
    assert len(operator.repeated.graphs) == 1
    again = [operator.solve(tau, starts=256, steps=3).points for tau in taus]
    for a, b in zip(first, again):
        torch.testing.assert_close(a, b)
    with torch.no_grad():
        for weight in operator.network.blocks[0].heads.parameters():
            weight.zero_()  # in place: the graph reads what is there now
    changed = operator.solve(taus[0], starts=256, steps=3).points
    assert (changed - first[0]).abs().max() > 0.1


def test_graphs_of_any_size_are_replayed_too():
    operator, tau = px.pretrained("maxcut", "cuda"), held_out(Maxcut(20), 2)
    first, *_, last = (operator.solve(tau, starts=16, steps=3).points for _ in range(5))
    assert len(operator.repeated.graphs) == 1
    torch.testing.assert_close(first, last)
    on_cpu = px.pretrained("maxcut", "cpu").solve(tau, starts=16, steps=3).points
    torch.testing.assert_close(first.cpu(), on_cpu, atol=1e-2, rtol=0)


@pytest.mark.parametrize("problem", [Maxcut(), Maxcut(8, 12)], ids=["one size", "any size"])
def test_training_on_graphs_is_captured_and_solves_as_on_a_cpu(problem: Maxcut):
    with warnings.catch_warnings():
        warnings.simplefilter("error", SpeedWarning)
        operator = px.learn(problem, precision="fp32", lam=(0.25, 2.5), **QUICK)
    tau = held_out(Maxcut(), 3)
    there = operator.solve(tau, starts=8, steps=2)
    here = operator.to("cpu").solve(tau, starts=8, steps=2)
    torch.testing.assert_close(there.points.cpu(), here.points, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(there.rounded().values.cpu(), here.rounded().values)


def test_being_taught_when_to_stop_is_captured_and_stops_as_on_a_cpu():
    problem = px.Problem.from_function(
        lambda x, tau: (x.square() - tau.square()).square().sum(-1),
        px.Box(-2.0, 2.0, dim=2),
        px.Box(0.5, 1.5, dim=2),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", SpeedWarning)
        operator = px.learn(problem, steps=5_000, precision="fp32", device="cuda", progress=False)
    assert operator.arrival is not None
    tau = held_out(problem, 4, device="cuda")
    there = operator.solve(tau, 256)
    assert there.arrived is not None
    assert there.arrived.float().mean() > 0.9
    operator.problem = None
    here = operator.cpu().solve(tau.cpu(), there.starts.cpu())
    near = (here.points - there.points.cpu()).norm(dim=-1) < 0.05
    assert near.float().mean() > 0.95


def test_many_matrices_have_eigenvalues_too():
    """More at once than cuSOLVER takes."""
    matrices = torch.randn(5, 20_000, 2, 2, dtype=torch.float64, device="cuda")
    matrices = matrices + matrices.mT
    values, vectors = eigh(matrices)
    again = vectors @ values.diag_embed() @ vectors.mT
    assert torch.allclose(again, matrices)
    assert eigh(torch.zeros(2, 3, 0, 0, device="cuda"))[0].shape == (2, 3, 0)


def test_a_long_descent_is_compiled_and_goes_the_same_way(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
):
    problem = Maxcut()
    tau, how = held_out(problem, 4), {"starts": 32, "device": "cuda", "steps": 200, "rate": 1e-2}
    plain = px.solve(problem, tau, "descent", **how)
    monkeypatch.setattr("proxlearn.solvers.descent.LONG", 100)
    compiled = px.solve(problem, tau, "descent", **how)
    assert torch.allclose(plain.points, compiled.points, atol=1e-3)
    assert not [each for each in recwarn if issubclass(each.category, SpeedWarning)]
