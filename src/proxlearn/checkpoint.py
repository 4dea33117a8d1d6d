"""Checkpoints: everything it takes to go on as if nothing had happened, in one file."""

import io
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from proxlearn.errors import FileError, InputError
from proxlearn.files import write_atomically
from proxlearn.network import describe

if TYPE_CHECKING:
    from proxlearn.train import Session

NAME = "checkpoint.pt"


def save(session: "Session", folder: Path) -> Path:
    """Write weights, optimizer, sampled points, position and all random states."""
    buffer = io.BytesIO()
    torch.save(_state(session), buffer)
    return write_atomically(folder / NAME, buffer.getvalue())


def restore(session: "Session", folder: Path | None) -> None:
    """Put a session back to where a checkpoint was written."""
    path = None if folder is None else folder / NAME
    if path is None or not path.is_file():
        raise FileError(
            f"There is no checkpoint to resume from {f'at {path}' if path else '(give out=)'}: "
            "train without resume first."
        )
    state = _read(path, session.device)
    _same_settings(state["settings"], _settings(session))
    session.operator.load_state_dict(state["operator"])
    session.optimizer.load_state_dict(state["optimizer"])
    for group in session.optimizer.param_groups:
        group["lr"] = session.rate  # the schedule writes into this very tensor
    session.sampler.restore(state["sampler"])
    session.step, session.elapsed = state["step"], state["elapsed"]
    session.count.fill_(state["step"])
    session.fine.fill_(state["step"])
    session.names, session.smooth = state["names"], state["smooth"]
    session.usual_norm.copy_(state["usual_norm"])
    session.generator.set_state(state["generator"].cpu())
    torch.set_rng_state(state["random"].cpu())
    if session.device.type == "cuda":
        torch.cuda.set_rng_state(state["random_cuda"].cpu(), session.device)


def _read(path: Path, device: torch.device) -> dict[str, Any]:
    try:
        state = torch.load(path, map_location=device, weights_only=True)
        if "settings" in state:
            return state
    except (RuntimeError, EOFError, OSError, ValueError, TypeError, pickle.UnpicklingError):
        pass
    raise FileError(
        f"{path} is not a whole checkpoint: it is cut short or of another kind. Train without "
        "resume, or into another folder."
    )


def _state(session: "Session") -> dict[str, Any]:
    state = {
        "settings": _settings(session),
        "operator": session.operator.state_dict(),
        "optimizer": session.optimizer.state_dict(),
        "sampler": session.sampler.state(),
        "step": session.step,
        "elapsed": session.elapsed,
        "names": session.names,
        "smooth": session.smooth,
        "usual_norm": session.usual_norm,
        "generator": session.generator.get_state(),
        "random": torch.get_rng_state(),
    }
    if session.device.type == "cuda":
        state["random_cuda"] = torch.cuda.get_rng_state(session.device)
    return state


def _settings(session: "Session") -> dict[str, Any]:
    """What has to be the same for a run to be continued."""
    training = session.training
    settings = {name: getattr(training, name) for name in training.__dataclass_fields__}
    operator = session.operator
    return settings | {
        "architecture": describe(operator.network.architecture),
        "problem": session.problem.name,
        "space": operator.space.describe(),
        "encoder": operator.encoder.describe(),
        "device": session.device.type,
    }


def _same_settings(saved: dict[str, Any], asked: dict[str, Any]) -> None:
    different = [name for name in asked if saved.get(name) != asked[name]]
    if different:
        was = ", ".join(f"{name} = {saved.get(name)}" for name in different)
        now = ", ".join(f"{name} = {asked[name]}" for name in different)
        raise InputError(
            f"The checkpoint was made with {was}, but {now} was asked for: resume with the same "
            "settings, or train into another folder."
        )
