"""Training on several processes: launched by torchrun as a person would, two of them, over gloo."""

import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import proxlearn as px
from proxlearn.cli import main as cli
from proxlearn.common.files import read_rows
from proxlearn.gpu.parallel import Part, Process
from proxlearn.training import checkpoint, session
from proxlearn.training import learn as train
from proxlearn.training.sampling import SAMPLINGS

LIMIT = 120  # seconds, before a job counts as hanging
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]

STEEP = '''
"""Four wells with walls so steep that points on them are weighed; tau is a dictionary."""
import os, signal, time
import torch
import proxlearn as px
from proxlearn.instances import Vectors

class Steep(px.Problem):
    name = "steep"
    space = px.Box(-2.0, 2.0, dim=2)
    range = px.Box(0.5, 1.5, dim=2)
    instances = Vectors.over(range)
    noise, calls = 0.0, 0

    def sample(self, count, split, generator):
        return {"wells": self.range.sample(count, generator=generator)}

    def observe(self, tau):
        return tau["wells"]

    def refresh(self, tau, generator):
        noise = self.noise * torch.randn(tau["wells"].shape, generator=generator)
        return {"wells": tau["wells"] + noise}

    def objective(self, x, tau):
        self.calls += 1
        if "SLOW" in os.environ:
            time.sleep(0.02)
        if self.calls > 15 and os.environ.get("LOST") == os.environ.get("RANK", "alone"):
            os.kill(os.getpid(), signal.SIGKILL)
        return (x.square() - tau["wells"][:, None].square()).square().sum(-1).square()
'''

JOB = """
import sys
from pathlib import Path
import proxlearn as px
from proxlearn.training import learn as train
from proxlearn.training import session
from proxlearn.networks.coupling import Coupling
from proxlearn.gpu.parallel import this_process

folder = Path(__file__).parent
small = dict(lam=1.0, depth=2, applications=5, instances=15, points=8, rate=5e-3, seed=1,
             device="cpu", progress=False, architecture=Coupling(1, 16, 16))
kinds = {
    "pool": {},
    "unfold": {"sampling": "unfold"},
    "regression": {"rule": "gradient", "lam": None, "instances": 12},
}

def learn(out, stop=None, noise=0.0, **settings):
    def watch(report, operator):
        if report.step == stop:
            raise KeyboardInterrupt
    problem = px.problem(str(folder / "steep.py"))
    problem.noise = noise
    budget = {} if "seconds" in settings else {"steps": 25}
    return px.learn(problem, out=out, watch=watch, **small | budget | settings)

def job(own, other):
    for name, settings in kinds.items():
        learn(own / name, **settings)
        learn(own / f"{name} stopped", stop=11, **settings)
    for name, settings in kinds.items():
        if other.exists():
            learn(other / f"{name} stopped", resume=True, **settings)
    if this_process().size > 1:
        noisy = {"noise": 0.1, "instances": 12}
        learn(own / "noise", **noisy)
        learn(own / "noise stopped", stop=11, **noisy)
        learn(own / "noise stopped", resume=True, **noisy)
        rank = this_process().rank
        learn(None, seconds=0.3).save(own / f"seconds {rank}.safetensors")

if __name__ == "__main__":
    session.REPORT_SECONDS = train.CHECKPOINT_SECONDS = -1.0
    job(folder / "two", folder / "one")
"""

COMMAND = """
import sys
from proxlearn.cli import main as cli
from proxlearn.training import learn as train
from proxlearn.training import session

session.REPORT_SECONDS = train.CHECKPOINT_SECONDS = -1.0
cli.main(sys.argv[1:])
"""


def write_scripts(folder: Path) -> None:
    for name, text in {"steep": STEEP, "job": JOB, "command": COMMAND}.items():
        (folder / f"{name}.py").write_text(text)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same trainings by `one` process and by `two`, and of each those that were
    stopped and that the other one then resumed."""
    folder = tmp_path_factory.mktemp("jobs")
    write_scripts(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "REPORT_SECONDS", -1.0)
        patch.setattr(train, "CHECKPOINT_SECONDS", -1.0)
        job = runpy.run_path(str(folder / "job.py"))
        job["job"](folder / "one", folder / "nothing to resume")
        ran = subprocess.run(
            [*TORCHRUN, folder / "job.py"], capture_output=True, text=True, timeout=LIMIT
        )
        assert ran.returncode == 0, ran.stderr
        for name, settings in job["kinds"].items():
            job["learn"](folder / "two" / f"{name} stopped", resume=True, **settings)
    return folder


def weights(path: Path) -> dict[str, torch.Tensor]:
    return px.load(path / "operator.safetensors", "cpu").state_dict()


KINDS = ["pool", "unfold", "regression"]


@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_learn_what_one_does(jobs: Path, kind: str):
    """Of 5 taus in a group, or 15 in all, one process has more than the other."""
    one, two = (read_rows(jobs / run / kind / "training.jsonl") for run in ("one", "two"))
    assert [row["step"] for row in two] == list(range(1, 26))  # one of them writes
    for a, b in zip(one, two, strict=True):
        same = (a.keys() | b.keys()) - {"seconds", "at_optimum"}  # looked at when there is time
        assert all(a[name] == pytest.approx(b[name], rel=1e-5) for name in same)
    torch.testing.assert_close(
        weights(jobs / "one" / kind), weights(jobs / "two" / kind), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("stopped", ["one", "two"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_training_goes_on_with_another_number_of_processes(jobs: Path, kind: str, stopped: str):
    path = jobs / stopped / f"{kind} stopped"
    rows = read_rows(path / "training.jsonl")
    assert [row["step"] for row in rows] == [*range(1, 11), *range(12, 26)]
    torch.testing.assert_close(weights(path), weights(jobs / "one" / kind), rtol=1e-4, atol=1e-5)


def test_resumed_by_as_many_processes_it_is_the_uninterrupted_one(jobs: Path):
    """Bit for bit, and with an objective whose noise is another one in every process."""
    straight, resumed = (weights(jobs / "two" / name) for name in ("noise", "noise stopped"))
    torch.testing.assert_close(straight, resumed, rtol=0, atol=0)
    state = torch.load(jobs / "two" / "noise" / checkpoint.NAME, weights_only=True)
    assert len(state["noise"]) == 2
    assert not torch.equal(*state["noise"])


def test_a_budget_of_seconds_ends_at_the_same_step_everywhere(jobs: Path):
    """Each process has the operator, and it is the same one."""
    both = [px.load(jobs / "two" / f"seconds {rank}.safetensors", "cpu") for rank in (0, 1)]
    assert both[0].provenance["steps"] == both[1].provenance["steps"] > 1
    torch.testing.assert_close(both[0].state_dict(), both[1].state_dict(), rtol=0, atol=0)


@pytest.fixture
def train_steep(tmp_path: Path) -> list[str]:
    """`train` with a checkpoint at every step."""
    write_scripts(tmp_path)
    sizes = "--steps 100 --lam 1 --depth 2 --instances 6 --points 8 --applications 5 --device cpu"
    return ["train", f"{tmp_path}/steep.py", "--out", f"{tmp_path}/out", *sizes.split()]


def resumes(typed: list[str], out: Path) -> None:
    """See that a training goes on to its end from a checkpoint."""
    step = torch.load(out / checkpoint.NAME, weights_only=True)["step"]
    assert 0 < step < 100
    assert not (out / "operator.safetensors").exists()
    cli.main([*typed, "--resume"])


@pytest.mark.parametrize("lost", ["0", "1"])
def test_a_lost_process_ends_the_training_and_leaves_a_checkpoint(
    train_steep: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
):
    monkeypatch.setenv("LOST", lost)
    typed = [*TORCHRUN, tmp_path / "command.py", *train_steep]
    ran = subprocess.run(typed, capture_output=True, text=True, timeout=LIMIT)
    assert ran.returncode != 0
    said = " ".join(ran.stderr.split())
    assert f"Process {1 - int(lost)} of 2" in said  # the other one speaks
    assert "failed or was lost" in said
    assert "A training goes on from its last checkpoint with --resume" in said
    with pytest.raises(SystemExit, match="0"):
        resumes(train_steep, tmp_path / "out")
    assert (tmp_path / "out" / "operator.safetensors").exists()


def test_ctrl_c_stops_all_and_saves(
    train_steep: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """At the terminal, Ctrl-C is heard by torchrun, which tells the processes."""
    monkeypatch.setenv("SLOW", "")
    typed = [*TORCHRUN, str(tmp_path / "command.py"), *train_steep]
    job = subprocess.Popen(typed, stderr=subprocess.PIPE, text=True)
    out, began = tmp_path / "out", time.monotonic()
    while not (out / checkpoint.NAME).exists():
        assert job.poll() is None, "it ended before there was a checkpoint"
        assert time.monotonic() - began < LIMIT
        time.sleep(0.02)
    job.send_signal(signal.SIGINT)
    said = " ".join(job.communicate(timeout=LIMIT)[1].split())
    assert job.returncode != 0
    assert said.count("Stopped at step") == 1  # one of them speaks
    assert said.count(f"Go on with: proxlearn train {tmp_path}/steep.py") == 1
    monkeypatch.delenv("SLOW")
    with pytest.raises(SystemExit, match="0"):
        resumes(train_steep, out)


@pytest.mark.parametrize("sampling", ["pool", "unfold"])
def test_more_processes_than_instances_are_refused(wells: px.Problem, sampling: str):
    def sampler(processes: int):
        process = Process(rank=0, size=processes)
        return SAMPLINGS[sampling](wells, 6, 4, 2, (1.0, 1.0), 0, torch.device("cpu"), process)

    most, need = {"pool": (2, 9), "unfold": (6, 7)}[sampling]
    assert sampler(most).part.weight == 1 / most
    with pytest.raises(
        px.InputError, match=f"launch at most {most}, or give instances = {need} or more"
    ):
        sampler(most + 1)


@pytest.mark.parametrize(("group", "size"), [(1, 1), (5, 2), (7, 3), (4, 4)])
def test_parts_are_shares_of_every_group(group: int, size: int):
    whole = torch.arange(3 * group)  # three groups
    parts = [Part(Process(rank, size), group) for rank in range(size)]
    taken = [part.of(whole).view(3, -1) for part in parts]
    assert torch.equal(torch.cat(taken, 1).flatten(), whole)
    assert [part.weight * group for part in parts] == pytest.approx([t.shape[1] for t in taken])


def test_processes_that_have_joined_already_are_told_so(
    wells: px.Problem, tiny: dict, monkeypatch: pytest.MonkeyPatch
):
    said = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "", "MASTER_PORT": ""}
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    with pytest.raises(px.InputError, match="have joined already"):
        px.learn(wells, steps=2, **tiny)
