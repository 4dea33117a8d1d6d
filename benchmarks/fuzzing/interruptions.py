"""Trainings that are stopped in every part of their work, by kill -9, SIGTERM or Ctrl-C, and then
resumed: they end in the weights and the card of one that was not, bit for bit."""

import functools
import os
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from mmap import mmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import proxlearn as px
from fuzzing._spoiled import pick
from fuzzing.frame import Act, Outcome, WrongAnswerError, command
from proxlearn.training import arrival, checkpoint, session

WHAT = "trainings that are stopped and resumed"
CASES, QUICK, SECONDS = 460, 2, 240  # so that each signal comes a hundred times
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
DONE = (0, 3)  # the status of a training that came to its end; 3 says that the operator is poor
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

learn = import_module("proxlearn.training.learn")  # as an attribute, it is the function
ELSEWHERE = "elsewhere"  # before the training, between its parts, or after it
PARTS = {  # of a training: what does each of them
    "training": (learn, "_train"),
    "writing a checkpoint": (checkpoint, "save"),
    "counting applications": (session.Session, "finished"),
    "learning when to stop": (session.Session, "learn_arrival"),
    "judging": (learn, "_judge"),
    "writing the operator": (px.Operator, "save"),
}
NAMES = (ELSEWHERE, *PARTS)
AFTER = "after its end"


class Stretch(NamedTuple):
    """The time from one part of a training to the next one."""

    part: int
    before: int  # how many stretches of this part there were before
    seconds: float


class Whole(NamedTuple):
    """What is typed, a training that was not stopped, and its parts as they came."""

    typed: tuple[str, ...]
    operator: px.Operator
    stretches: list[Stretch]


def prepare(folder: Path) -> Whole:
    (folder / "wells.py").write_text(PROBLEM)
    typed = ("train", str(folder / "wells.py"), *SETTINGS.split())
    session.REPORT_SECONDS = 0.01  # or nothing would be saved in so short a training,
    arrival.FEW = 1.0  # and what it learns of when to stop would be thrown away
    _watched(*_begun(typed, folder / "first"))
    stretches = _watched(*_begun(typed, folder / "whole"))  # which finds everything imported
    operator = px.load(folder / "whole" / OPERATOR, "cpu")
    if operator.arrival is None or {each.part for each in stretches} != set(range(len(NAMES))):
        raise RuntimeError(f"a training that is not stopped leaves something out: {stretches}")
    return Whole(typed, operator, stretches)


def case(draw: np.random.Generator, prepared: Whole, folder: Path) -> tuple[str, Act]:
    number, part, out = pick(draw, SIGNALS), int(draw.integers(len(NAMES))), folder / "out"
    stretch = pick(draw, [each for each in prepared.stretches if each.part == part])
    moment = draw.uniform() * stretch.seconds

    def act() -> str:
        running, parts = _begun(prepared.typed, out)
        where = _stopped(running, parts, number, stretch, moment)
        _check_stopped(_ended(running), number, where, out)
        resume = ["--resume"] if (out / checkpoint.NAME).exists() else []
        again, _ = _begun([*prepared.typed, *resume], out)
        if (code := _ended(again)) not in DONE:
            raise RuntimeError(f"resumed, it ends with {code}: {_said(out)}")
        _check_resumed(prepared.operator, out)
        return f"{number.name}, {where}"

    return f"{number.name} {moment:.4f} s into {NAMES[part]}, time {stretch.before + 1}", act


def more(ended: Sequence[Outcome]) -> dict[str, Any]:
    """For the row: how often each signal came in each part."""
    found = Counter(each.said for each in ended if each.kind == "fine")
    return {"moments": dict(sorted(found.items()))}


def _begun(typed: Sequence[str], out: Path) -> tuple[int, mmap]:
    """A training in a process of its own, as a terminal would run it. It tells the part that it is
    in, and how many stretches of each there were."""
    parts = mmap(-1, 1 + len(NAMES))
    parts[1] = 1
    pid = os.fork()
    if pid:
        return pid, parts
    code = 99
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for number, (owner, name) in enumerate(PARTS.values(), 1):
            setattr(owner, name, _telling(getattr(owner, name), parts, number))
        sys.argv = ["proxlearn", *typed]
        command(*typed, "--out", str(out))
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    except BaseException:
        out.with_name("said.txt").write_text(traceback.format_exc())
    finally:
        os._exit(code)


def _telling(function: Callable[..., Any], parts: mmap, number: int) -> Callable[..., Any]:
    """The same function, which tells when it begins and ends."""

    def tell(part: int) -> None:
        parts[0], parts[1 + part] = part, min(255, parts[1 + part] + 1)

    @functools.wraps(function)
    def told(*given: Any, **named: Any) -> Any:
        before = parts[0]
        tell(number)
        try:
            return function(*given, **named)
        finally:
            tell(before)

    return told


def _watched(running: int, parts: mmap) -> list[Stretch]:
    """The parts of a training as they come, until it ends."""
    stretches, began, now, count = [], time.monotonic(), 0, 1
    while not _over(running):
        time.sleep(2e-4)
        if (parts[0], parts[1 + parts[0]]) != (now, count):
            stretches.append(Stretch(now, count - 1, time.monotonic() - began))
            began, now, count = time.monotonic(), parts[0], parts[1 + parts[0]]
    if (code := _ended(running)) not in DONE:
        raise RuntimeError(f"a training that is not stopped ends with {code}")
    return stretches


def _stopped(
    running: int, parts: mmap, number: signal.Signals, stretch: Stretch, moment: float
) -> str:
    """Send a signal so many seconds into a part; in which part it came, in words."""
    while parts[1 + stretch.part] <= stretch.before and not _over(running):
        time.sleep(2e-4)
    time.sleep(moment)
    where = AFTER if _over(running) else NAMES[parts[0]]
    os.kill(running, number)  # if it has ended, nobody has reaped it yet
    return where


def _over(pid: int) -> bool:
    """Whether a process has ended; its status stays to be asked for."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _ended(pid: int) -> int:
    """The status that it ends with; a signal's number, negative."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _said(out: Path) -> str:
    path = out.with_name("said.txt")
    return path.read_text()[-1_000:] if path.is_file() else ""


def _check_stopped(code: int, number: signal.Signals, where: str, out: Path) -> None:
    """A status of success only with an operator; and what can be saved is saved."""
    if code in DONE:
        if not (out / OPERATOR).is_file():
            raise WrongAnswerError(f"it ended with {code} before it was done")
        return
    if code not in (-number, 128 + number):
        raise RuntimeError(f"stopped while {where}, it ends with {code}: {_said(out)}")
    if where in PARTS and number != signal.SIGKILL and not (out / checkpoint.NAME).is_file():
        raise WrongAnswerError(f"stopped while {where}, it saved nothing")


def _check_resumed(whole: px.Operator, out: Path) -> None:
    operator = px.load(out / OPERATOR, "cpu")
    ours, theirs = operator.state_dict(), whole.state_dict()
    same = ours.keys() == theirs.keys() and all(torch.equal(ours[k], theirs[k]) for k in theirs)
    if not same or operator.applications != whole.applications or _card(operator) != _card(whole):
        raise WrongAnswerError("the resumed training is another one")
    if left := [path.name for path in out.iterdir() if path.suffix == ".tmp"]:
        raise WrongAnswerError(f"{left} were left over")


def _card(operator: px.Operator) -> dict[str, Any]:
    """What is known of its quality, but for the time that it took."""
    return {name: each for name, each in (operator.card or {}).items() if "seconds" not in name}
