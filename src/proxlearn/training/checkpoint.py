"""Checkpoints: everything it takes to go on as if nothing had happened, in one file."""

import io
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from proxlearn.common.files import write_atomically
from proxlearn.errors import FileError, InputError

if TYPE_CHECKING:
    from proxlearn.training.session import Session

NAME = "checkpoint.pt"
PLAIN = ("step", "elapsed", "names", "smooth")  # what of a session is put back as it was


def save(session: "Session", folder: Path) -> Path:
    """Write weights, optimizer, sampled points, position and all random states; all processes
    have to save, and the first one writes."""
    buffer = io.BytesIO()
    state = {
        "noise": session.process.gather(session.sampler.noise.get_state()),  # of each process
        "settings": _settings(session),
        "operator": session.operator.state_dict(),
        "optimizer": session.optimizer.state(),
        "sampler": session.sampler.state(),
        "usual_norm": session.usual_norm,
        "generator": session.sampler.generator.get_state(),
    } | {name: getattr(session, name) for name in PLAIN}
    if session.process.first:
        torch.save(state, buffer)
        write_atomically(folder / NAME, buffer.getvalue())
    return folder / NAME


def restore(session: "Session", folder: Path | None) -> None:
    """Put a session back to where a checkpoint was written, by any number of processes; the first
    one reads."""
    process, path = session.process, None if folder is None else folder / NAME
    content = process.from_first(_content(path) if process.first else b"")
    state = _read(path, content, session.device)
    _same_settings(state["settings"], _settings(session))
    session.operator.load_state_dict(state["operator"])
    session.optimizer.restore(state["optimizer"])
    session.sampler.restore(state["sampler"])
    for name in PLAIN:
        setattr(session, name, state[name])
    session.count.fill_(session.step)
    session.fine.fill_(session.step)
    session.usual_norm.copy_(state["usual_norm"])
    session.sampler.generator.set_state(state["generator"].cpu())
    if process.rank < len(state["noise"]):  # else there was no such process, and it begins anew
        session.sampler.noise.set_state(state["noise"][process.rank].cpu())


def _content(path: Path | None) -> bytes:
    if path is None or not path.is_file():
        raise FileError(
            f"There is no checkpoint to resume from {f'at {path}' if path else '(give out=)'}: "
            "train without resume first."
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror}.") from None


def _read(path: Path | None, content: bytes, device: torch.device) -> dict[str, Any]:
    try:
        state = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
        if "settings" in state and "momentum" in state["optimizer"]:
            return state
    except (RuntimeError, EOFError, ValueError, TypeError, pickle.UnpicklingError):
        pass
    raise FileError(
        f"{path} is not a whole checkpoint: it is cut short, of another kind or of an earlier "
        "version. Train without resume, or into another folder."
    )


def _settings(session: "Session") -> dict[str, Any]:
    """What has to be the same for a run to be continued."""
    operator = session.operator
    return vars(session.training) | {
        "architecture": operator.network.architecture.describe(),
        "problem": session.problem.name,
        "space": operator.space.describe(),
        "instances_of": operator.instances.describe(),
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
