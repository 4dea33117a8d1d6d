"""Trainings that are stopped at any moment, by kill -9, SIGTERM or Ctrl-C, and then resumed: they
end in the weights of one that was not, bit for bit."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

import proxlearn as px
from fuzzing._spoiled import pick
from fuzzing.frame import Act, WrongAnswerError, command
from proxlearn.training import checkpoint, session

WHAT = "trainings that are stopped and resumed"
CASES, QUICK, SECONDS = 440, 2, 240  # so that each signal comes a hundred times
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
OPERATOR = "operator.safetensors"
PROBLEM = """
import proxlearn as px

class Wells(px.Problem):
    name, space, parameters = "wells", px.Box(-2, 2, dim=2), px.Box(0.5, 1.5, dim=2)
    architecture = {"blocks": 1, "width": 8, "shared": 8}

    def objective(self, x, tau):
        return (x.square() - tau[:, None].square()).square().sum(-1)
"""
SETTINGS = "--steps 50 --lam 1 --depth 2 --instances 6 --points 8 --device cpu --save-every 0.02"
MORE = 1.1  # times as long as a whole training takes: until when it is stopped


class Whole(NamedTuple):
    """The problem's file, and a training that was not stopped."""

    typed: tuple[str, ...]
    seconds: float
    weights: dict[str, torch.Tensor]
    applications: int


def prepare(folder: Path) -> Whole:
    (folder / "wells.py").write_text(PROBLEM)
    typed = ("train", str(folder / "wells.py"), *SETTINGS.split())
    session.REPORT_SECONDS = 0.01  # or nothing would be saved in so short a training
    began = time.monotonic()
    for out in ("first", "whole"):  # the second one finds everything imported
        began = time.monotonic()
        if (code := _ended(_begun(typed, folder / out))) not in (0, 3):
            raise RuntimeError(f"a training that is not stopped ends with {code}")
    seconds = time.monotonic() - began
    operator = px.load(folder / "whole" / OPERATOR, "cpu")
    return Whole(typed, seconds, operator.state_dict(), operator.applications)


def case(draw: np.random.Generator, prepared: Whole, folder: Path) -> tuple[str, Act]:
    number, out = pick(draw, SIGNALS), folder / "out"
    moment = draw.uniform(0, MORE) * prepared.seconds

    def act() -> None:
        running = _begun(prepared.typed, out)
        time.sleep(moment)
        os.kill(running, number)
        code = _ended(running)
        if code in (0, 3) and not (out / OPERATOR).is_file():
            raise WrongAnswerError(f"it ended with {code} before it was done")
        resume = ["--resume"] if (out / checkpoint.NAME).exists() else []
        if (code := _ended(_begun([*prepared.typed, *resume], out))) not in (0, 3):
            raise RuntimeError(f"resumed, it ends with {code}: {_said(out)}")
        _check(prepared, out)

    return f"{number.name} after {moment:.3f} s of {prepared.seconds:.3f}", act


def _begun(typed: Sequence[str], out: Path) -> int:
    """A training in a process of its own, as a terminal would run it."""
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.argv = ["proxlearn", *typed]
        command(*typed, "--out", str(out))
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:
        out.with_name("said.txt").write_text(traceback.format_exc())
    finally:
        os._exit(code)


def _ended(pid: int) -> int:
    """The status that it ends with; a signal's number, negative."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _said(out: Path) -> str:
    path = out.with_name("said.txt")
    return path.read_text()[-1_000:] if path.is_file() else ""


def _check(prepared: Whole, out: Path) -> None:
    operator = px.load(out / OPERATOR, "cpu")
    weights, whole = operator.state_dict(), prepared.weights
    same = weights.keys() == whole.keys() and all(torch.equal(weights[k], whole[k]) for k in whole)
    if not same or operator.applications != prepared.applications:
        raise WrongAnswerError("the resumed training is another one")
    if left := [path.name for path in out.iterdir() if path.suffix == ".tmp"]:
        raise WrongAnswerError(f"{left} were left over")
