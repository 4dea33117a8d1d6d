"""Ctrl-C, SIGTERM and kill -9 in every part of a training, and two trainings in one folder."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import proxlearn as px
from proxlearn.cli import main
from proxlearn.common.locks import NAME, locked
from proxlearn.training import arrival, checkpoint
from proxlearn.training import learn as train
from proxlearn.training.session import Report

OPERATOR = "operator.safetensors"


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Signals are heard, also where the tests themselves run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def sends(number: signal.Signals) -> Callable[..., None]:
    return lambda *_: os.kill(os.getpid(), number)


@pytest.fixture
def taught(tiny: dict[str, Any]) -> dict[str, Any]:
    """A training that also learns when a point has arrived."""
    return tiny | {"applications": None, "steps": 60}


def in_training(number: signal.Signals, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    return {"watch": sends(number), "save_every": 1e-9}


def in_teaching(number: signal.Signals, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    round_of = arrival.Lessons.round
    send = sends(number)
    patch.setattr(arrival.Lessons, "round", lambda self: (round_of(self), send()))
    return {}


def in_judging(number: signal.Signals, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    patch.setattr(train, "judge", sends(number))
    return {}


PHASES = [in_training, in_teaching, in_judging]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("report_each_step")
def test_stopped_in_any_part_it_is_not_finished_and_goes_on(
    wells, taught, tmp_path: Path, same_weights, capsys, number, phase
):
    with pytest.MonkeyPatch.context() as patch:
        settings = taught | {"progress": True, "out": tmp_path} | phase(number, patch)
        if number == signal.SIGTERM:
            with pytest.raises(SystemExit) as ended:
                px.learn(wells, **settings)
            assert ended.value.code == 143
        else:
            operator = px.learn(wells, **settings)
            assert operator.provenance["interrupted"]
            assert operator.card is None
    assert not (tmp_path / OPERATOR).exists()
    assert not (tmp_path / NAME).exists()
    said = " ".join(capsys.readouterr().err.split())
    assert "go on with the same settings and --resume" in said
    resumed = px.learn(wells, out=tmp_path, resume=True, **taught)
    assert "interrupted" not in resumed.provenance
    straight = px.learn(wells, **taught)
    assert (resumed.arrival is None) == (straight.arrival is None)
    assert same_weights(resumed, straight)
    assert same_weights(resumed, px.load(tmp_path / OPERATOR, "cpu"))


def test_what_a_signal_did_before_it_does_again(wells, tiny, tmp_path: Path):
    """And where a script has something to do at SIGTERM, that is done once all is saved."""
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append((tmp_path / "a").exists()))
    try:
        settings = tiny | {"steps": 50, "out": tmp_path / "a"}
        with pytest.raises(SystemExit):
            px.learn(wells, watch=sends(signal.SIGTERM), save_every=1e-9, **settings)
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [True, True]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_command_says_how_to_go_on(tmp_path: Path, monkeypatch, capsys, number, status):
    typed = ["train", "conic", "--steps", "40", "--device", "cpu", "--out", str(tmp_path)]
    typed += ["--save-every", "100", "--instances", "12", "--points", "8"]
    monkeypatch.setattr(sys, "argv", ["proxlearn", *typed])
    monkeypatch.setattr(train, "judge", sends(number))
    with pytest.raises(SystemExit) as ended:
        main.main(typed)
    assert ended.value.code == status
    assert "Go on with: proxlearn train conic --steps 40" in " ".join(
        capsys.readouterr().err.split()
    )


def test_a_folder_is_of_one_training_at_a_time(wells, tiny, tmp_path: Path):
    with locked(tmp_path), pytest.raises(px.FileError, match=rf"process {os.getpid()}\): wait"):
        px.learn(wells, steps=2, out=tmp_path, **tiny)
    assert list(tmp_path.iterdir()) == []
    px.learn(wells, steps=2, out=tmp_path, **tiny)


def test_the_lock_of_a_killed_process_is_none(tmp_path: Path):
    script = f"""
import os, signal
from proxlearn.common.locks import locked
with locked({str(tmp_path)!r}):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == -signal.SIGKILL
    assert (tmp_path / NAME).exists()
    with locked(tmp_path):
        pass
    assert not (tmp_path / NAME).exists()


def test_leftovers_of_killed_trainings_are_removed(wells, tiny, tmp_path: Path):
    left = [f".{name}.12345.tmp" for name in (checkpoint.NAME, checkpoint.PREVIOUS, OPERATOR)]
    others = [".mine.tmp", "12345.tmp", "mine.12345.tmp"]
    for name in left + others:
        (tmp_path / name).write_text("half")
    px.learn(wells, steps=2, out=tmp_path, **tiny)
    there = {path.name for path in tmp_path.iterdir()}
    assert there == {*others, OPERATOR, checkpoint.NAME, "training.jsonl"}


def test_how_often_checkpoints_are_written_is_a_setting(wells, tiny, tmp_path: Path, monkeypatch):
    saved = []
    monkeypatch.setattr(train.checkpoint, "save", lambda session, _: saved.append(session.step))
    monkeypatch.setattr("proxlearn.training.session.REPORT_SECONDS", -1.0)
    px.learn(wells, steps=8, out=tmp_path, save_every=1e-9, **tiny)
    assert saved == list(range(1, 9))
    saved.clear()
    px.learn(wells, steps=8, out=tmp_path, save_every=1000, **tiny)
    assert saved == [8]
    with pytest.raises(px.InputError, match="save_every must be a positive number"):
        px.learn(wells, steps=8, save_every=0, **tiny)


def test_the_first_checkpoints_come_soon(wells, tiny, tmp_path: Path, monkeypatch):
    saved, now = [], Report(0, 0.0, 0.0, {})
    monkeypatch.setattr(train, "CHECKPOINT_SECONDS", 30.0)
    monkeypatch.setattr(train.checkpoint, "save", lambda *_: saved.append(now.seconds))

    def run(*_):
        nonlocal now
        for k in range(1, 241):  # two minutes, with a report every half second
            now = Report(k, k / 2, k / 240, {"loss": 1.0})
            yield now

    monkeypatch.setattr(train.Session, "run", run)
    px.learn(wells, steps=240, out=tmp_path, **tiny)
    assert saved == [1.5, 4.5, 10.5, 22.5, 46.5, 77.0, 107.5, 120.0]


def test_ctrl_c_before_there_is_a_command_to_hear_it(monkeypatch, capsys):
    def interrupted(arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "app", interrupted)
    with pytest.raises(SystemExit) as left:
        main.main(["problems"])
    assert left.value.code == 130
    assert "Stopped." in capsys.readouterr().err
