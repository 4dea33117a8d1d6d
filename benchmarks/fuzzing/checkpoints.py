"""Checkpoints that a training is resumed from: bytes spoiled, other files, entries changed."""

import io
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch

import proxlearn as px
from fuzzing._spoiled import ODD_VALUES, bytes_spoiled, pick
from fuzzing.frame import Act, WrongAnswerError, finite
from proxlearn.networks.coupling import Coupling
from proxlearn.training import checkpoint

WHAT = "checkpoints"
CASES, QUICK, SECONDS = 1_000, 6, 60
SETTINGS: dict[str, Any] = {"steps": 12, "instances": 6, "points": 4, "depth": 2, "lam": 1.0}
SETTINGS |= {"applications": 3, "architecture": Coupling(1, 16, 16)}
SETTINGS |= {"device": "cpu", "progress": False}
FOREIGN = (
    b"",
    b"hello",
    b"PK\x03\x04",
    b"\x80\x04.",
    b"\x93NUMPY",
    bytes(1000),
    b"{}",
    b"[" * 10**5,
)


class Stopped(NamedTuple):
    """A checkpoint in the middle of a training, and the weights that it ends in."""

    content: bytes
    weights: dict[str, torch.Tensor]


def problem() -> px.Problem:
    """A new one for every case."""
    return px.Problem.from_function(
        lambda x, tau: (x.square() - tau.square()).square().sum(-1),
        px.Box(-2.0, 2.0, dim=2),
        px.Box(0.5, 1.5, dim=2),
        name="wells",
    )


def learned(folder: Path, resume: bool, **more: Any) -> px.Operator:
    with mock.patch("proxlearn.training.learn.judge", return_value=None):  # that takes longest
        return px.learn(problem(), out=folder, resume=resume, **SETTINGS | more)


def prepare(folder: Path) -> Stopped:
    out = folder / "training"
    learned(out, False, steps=5)
    content = (out / checkpoint.NAME).read_bytes()
    return Stopped(content, learned(out, True).state_dict())


def case(draw: np.random.Generator, prepared: Stopped, folder: Path) -> tuple[str, Act]:
    content, how = prepared.content, draw.integers(8)
    if how == 0:
        content, about = pick(draw, FOREIGN), "another file"
    elif how < 4:
        content, about = bytes_spoiled(content, draw), "bytes spoiled"
    else:
        state = torch.load(io.BytesIO(content), weights_only=True)
        about = _changed(state, draw)
        written = io.BytesIO()
        torch.save(state, written)
        content = checkpoint.sealed(written.getvalue())
    (folder / checkpoint.NAME).write_bytes(content)
    if draw.integers(4) == 0:
        (folder / checkpoint.PREVIOUS).write_bytes(prepared.content)

    def act() -> None:
        weights = learned(folder, True).state_dict()
        finite(*weights.values())
        if how < 4 and not all(torch.equal(weights[k], prepared.weights[k]) for k in weights):
            raise WrongAnswerError("a damaged checkpoint is resumed with another result")

    return about, act


def _changed(state: Any, draw: np.random.Generator, where: str = "state") -> str:
    """Change or leave out one entry somewhere inside, and say which."""
    key = pick(draw, list(state) if isinstance(state, dict) else range(len(state)))
    inside, where = state[key], f"{where}[{key!r}]"
    if isinstance(inside, dict | list) and inside and draw.integers(4):
        return _changed(inside, draw, where)
    if draw.integers(4) == 0:
        state.pop(key)
        return f"{where} left out"
    if isinstance(inside, torch.Tensor) and inside.ndim and draw.integers(2):
        shorter, alone = inside[..., :-1].clone(), inside[None]
        state[key] = pick(draw, (shorter, alone, inside.flatten(), inside.double(), inside.bool()))
        return f"{where} is {tuple(state[key].shape)} of {state[key].dtype}"
    state[key] = pick(draw, (*ODD_VALUES, torch.tensor(float("nan")), torch.zeros(3)))
    return f"{where} = {state[key]!r:.200}"
