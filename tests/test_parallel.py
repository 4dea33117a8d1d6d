"""Several processes on one job: launched by torchrun as a person would, two of them, over gloo."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from making import untrained

import proxlearn as px
from proxlearn.gpu.parallel import Process, processes, this_process
from proxlearn.networks.coupling import Coupling
from proxlearn.operators.applying import points_at_once

LIMIT = 120  # seconds, before a job counts as hanging
STARTS = 20_000  # for each tau, so that a few taus are several chunks
WELLS = '''
"""Four wells at (+-tau_1, +-tau_2), which one process may find too deep."""
import os
import proxlearn as px

class Wells(px.Problem):
    name = "wells"
    space = px.Box(-2.0, 2.0, dim=2)
    parameters = px.Box(0.5, 1.5, dim=2)

    def objective(self, x, tau):
        if os.environ.get("FAILS") == os.environ.get("RANK", "alone"):
            raise px.ObjectiveError("The wells are too deep.")
        return (x.square() - tau[:, None].square()).square().sum(-1)
'''


def launch(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """`torchrun --nproc-per-node 2 ...`"""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    typed = [*torchrun, "--nproc-per-node", "2", *map(str, arguments)]
    return subprocess.run(typed, capture_output=True, text=True, timeout=LIMIT)


@pytest.fixture
def many_wells(tmp_path: Path) -> list[str]:
    """`solve` for sixty taus, which are three chunks with many starts each."""
    (tmp_path / "wells.py").write_text(WELLS)
    wells = px.problem(str(tmp_path / "wells.py"))
    torch.manual_seed(0)
    small = Coupling(1, 4, 4, gated=False, start_at_identity=False)
    operator = untrained(wells.space, wells.instances, small)
    file = operator.save(tmp_path / "wells.safetensors")
    some = points_at_once() // STARTS
    assert 2 * some < 60 <= 3 * some
    np.save(tmp_path / "taus.npy", np.random.default_rng(0).uniform(0.5, 1.5, (60, 2)))
    typed = f"solve {tmp_path}/wells.py --operator {file} --taus {tmp_path}/taus.npy"
    return [*typed.split(), "--steps", "1", "--device", "cpu"]


@pytest.mark.parametrize("starts", [STARTS, 5], ids=["three chunks", "one chunk"])
def test_two_processes_write_what_one_does(many_wells: list[str], tmp_path: Path, starts: int):
    """Also where there is nothing to do for the second."""
    solve = [*many_wells, "--starts", str(starts), "--npz"]
    alone = [sys.executable, "-m", "proxlearn", *solve, f"{tmp_path}/one.npz"]
    assert subprocess.run(alone, timeout=LIMIT).returncode == 0
    ran = launch("-m", "proxlearn", *solve, tmp_path / "two.npz")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("60 taus from") == 1  # one of the two speaks
    one, two = np.load(tmp_path / "one.npz"), np.load(tmp_path / "two.npz")
    assert sorted(one) == sorted(two) == ["about", "inside", "points", "starts", "tau", "values"]
    for name in one:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)
    assert np.allclose(two["tau"], np.load(tmp_path / "taus.npy"))
    assert not list(tmp_path.glob(".*"))  # nothing temporary is left


def test_a_process_that_fails_ends_the_job(
    many_wells: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for rank in ("0", "1"):
        monkeypatch.setenv("FAILS", rank)
        starts = ["--starts", str(STARTS)]
        ran = launch("-m", "proxlearn", *many_wells, *starts, "--npz", tmp_path / "two.npz")
        assert ran.returncode != 0
        assert f"Process {rank} of 2: The wells are too deep." in ran.stderr
        assert not (tmp_path / "two.npz").exists()
        assert not list(tmp_path.glob(".*"))


SCRIPT = """
import os, signal, sys, time
from pathlib import Path
import torch
from proxlearn.gpu.parallel import processes

with processes(torch.device("cpu")) as process:
    process.wait()
    if not process.first:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        {waiting}
    finally:
        Path(sys.argv[1]).write_text("cleaned up")
"""


def test_a_process_told_to_end_cleans_up(tmp_path: Path):
    """torchrun tells the others when one is lost."""
    (tmp_path / "job.py").write_text(SCRIPT.format(waiting="time.sleep(100)"))
    ran = launch(tmp_path / "job.py", tmp_path / "note")
    assert ran.returncode != 0
    assert "Process 0 of 2 was told to end" in ran.stderr
    assert (tmp_path / "note").read_text() == "cleaned up"


def test_a_lost_process_is_missed_by_one_that_waits_for_it(tmp_path: Path):
    """Launched by hand: torchrun's own word might come first."""
    (tmp_path / "job.py").write_text(SCRIPT.format(waiting="process.wait()"))
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    meeting = {"MASTER_ADDR": "localhost", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    typed = [sys.executable, tmp_path / "job.py", tmp_path / "note"]
    first, second = (
        subprocess.Popen(
            typed,
            env={**os.environ, **meeting, "RANK": rank, "LOCAL_RANK": rank},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in "01"
    )
    assert "Another of the 2 processes failed or was lost" in first.communicate(timeout=LIMIT)[1]
    second.communicate(timeout=LIMIT)
    assert first.returncode == 1
    assert second.returncode == -signal.SIGKILL
    assert (tmp_path / "note").read_text() == "cleaned up"


def test_the_first_of_several_prints():
    ran = launch("-m", "proxlearn", "problems")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("what it is") == 1


def test_without_torchrun_there_is_one_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.distributed, "init_process_group", None)  # not to be called
    with processes(torch.device("cpu")) as process:
        process.wait()
        assert process == this_process() == Process(rank=0, size=1)
        assert process.first


def test_torchrun_says_who_is_who(monkeypatch: pytest.MonkeyPatch):
    said = {"RANK": "2", "LOCAL_RANK": "0", "WORLD_SIZE": "3", "MASTER_ADDR": "", "MASTER_PORT": ""}
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert this_process() == Process(rank=2, size=3)
    assert not this_process().first
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with (
        pytest.raises(px.InputError, match="has no GPU, as there are 0"),
        processes(torch.device("cuda")),
    ):
        pass


@pytest.mark.parametrize(("count", "size"), [(0, 2), (1, 2), (7, 3), (9, 3), (2, 5)])
def test_the_shares_follow_one_another(count: int, size: int):
    things = list(range(count))
    shares = [things[Process(rank, size).share(count)] for rank in range(size)]
    assert [thing for share in shares for thing in share] == things
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert shares[0] or not things
