"""Kernels that are compiled by another process and loaded by a thread, while training goes on. A
module without any stands for them: tests/test_gpu.py has the kernels themselves."""

import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest
import slow_kernels
import torch

from proxlearn.errors import SpeedWarning
from proxlearn.gpu import kernels
from proxlearn.gpu.capture import UNDISTURBED
from proxlearn.gpu.kernels import Compiling
from proxlearn.networks.coupling import CouplingNetwork
from proxlearn.problems.conic import Conic
from proxlearn.training.session import Session
from proxlearn.training.settings import Training

PATIENCE = 30.0  # seconds, on a machine that is busy


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Known kernels are kept in an empty folder, and nobody asks for the name of the GPU."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a card")
    slow_kernels.loaded_by.clear()


def known(*arguments: object) -> list:
    """Arguments with which an earlier process has compiled the kernels."""
    kernels._known("slow_kernels", list(arguments)).touch()
    return list(arguments)


def beside(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Have the process that compiles run a script instead."""
    popen = subprocess.Popen
    monkeypatch.setattr(
        kernels.subprocess, "Popen", lambda _, **how: popen([sys.executable, "-c", script], **how)
    )


def asked_until_done(compiling: Compiling) -> None:
    """Until it is done, or failed."""
    began = time.monotonic()
    while not (compiling.just_done() or compiling.failed):
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.01)


def test_kernels_that_are_compiled_are_loaded_by_a_thread_and_nobody_waits():
    """While a step is captured, nothing is loaded."""
    with UNDISTURBED:
        compiling = Compiling("slow_kernels", known(0.0))
        time.sleep(0.1)
        assert not compiling.just_done()
        assert not slow_kernels.loaded_by
    assert compiling.process is None
    asked_until_done(compiling)
    assert not compiling.just_done()  # once
    (thread,) = slow_kernels.loaded_by
    assert thread is not threading.main_thread()


def test_kernels_are_loaded_by_a_thread_after_a_process_has_compiled_them(monkeypatch):
    beside(monkeypatch, "import time; time.sleep(0.2)")
    compiling = Compiling("slow_kernels", [0.2])
    assert compiling.process is not None
    asked_until_done(compiling)
    assert len(slow_kernels.loaded_by) == 1


@pytest.mark.parametrize("where", ["process", "thread"])
def test_kernels_that_fail_are_told_of_once(where: str, monkeypatch: pytest.MonkeyPatch):
    if where == "process":
        beside(monkeypatch, "raise RuntimeError('no such kernels')")
        compiling, what = Compiling("slow_kernels", [0.0]), "compiled"
    else:
        compiling, what = Compiling("slow_kernels", known(0.0, False)), "loaded"
    with pytest.warns(SpeedWarning, match=f"not be {what}: RuntimeError: no such kernels") as told:
        asked_until_done(compiling)
    assert len(told) == 1
    assert compiling.failed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not compiling.just_done()


@pytest.mark.parametrize("works", [True, False])
def test_a_training_goes_over_to_kernels_once_they_are_loaded(
    works: bool, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
):
    """Also if they are there from the beginning, its first steps do without them."""
    monkeypatch.setattr(
        CouplingNetwork, "compile_kernels", lambda *_: Compiling("slow_kernels", known(0.0, works))
    )
    settings = Training(seconds=PATIENCE, instances=6, points=4)
    session, used = Session(Conic(), settings, torch.device("cpu")), []
    one_step = session._one_step

    def step() -> None:
        used.append(session.operator.network.kernels)
        one_step()
        if len(used) == 5:
            UNDISTURBED.release()  # from now on they may be loaded

    monkeypatch.setattr(session, "_one_step", step)
    UNDISTURBED.acquire()
    for _ in session.run():
        if session.operator.network.kernels or (session.compiling and session.compiling.failed):
            break
    told = [each for each in recwarn if issubclass(each.category, SpeedWarning)]
    assert not any(used[:5])
    assert session.operator.network.kernels == works
    assert len(told) == (not works)


def test_python_ends_without_loading_what_nobody_needs_any_more(tmp_path: Path):
    """The thread is still importing when the script is over."""
    (tmp_path / "late.py").write_text(
        "import time; time.sleep(0.5)\ndef compile_for(): print('loaded')"
    )
    script = (
        "import torch; torch.cuda.get_device_name = lambda: 'a card'\n"
        "from proxlearn.gpu import kernels\n"
        "kernels._known('late', []).touch(); kernels.Compiling('late', []); print('over')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**kernels.os.environ, "TRITON_CACHE_DIR": str(tmp_path)},
    )
    assert (ran.returncode, ran.stdout.split(), ran.stderr) == (0, ["over"], "")
