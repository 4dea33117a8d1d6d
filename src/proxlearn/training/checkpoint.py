"""Checkpoints: one file with all that a training needs to go on as if it had not stopped, and the
settings that have to be the same for that."""

import io
import math
import os
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from proxlearn.common.batch import leaves
from proxlearn.common.contents import brief, content_of
from proxlearn.common.files import TEMPORARY, write_atomically
from proxlearn.common.module_weights import WRONG
from proxlearn.errors import FileError, InputError

if TYPE_CHECKING:
    from proxlearn.training.session import Session

NAME, PREVIOUS = "checkpoint.pt", "checkpoint.previous.pt"
SEAL = b"\nproxlearn checkpoint 2, sha256 "  # between the content and its checksum
PLAIN = ("step", "elapsed", "names", "smooth")  # attributes of a session, put back as they were
MAY_CHANGE = ("steps", "seconds", "save_every")  # settings: a training can be made longer
RULE = "the rule's "  # before the names of what it holds
SAME = 1e-3  # the relative difference up to which measured numbers and values are the same


def save(session: "Session", folder: Path) -> Path:
    """Write weights, optimizer, sampled points, position and all random states. All processes have
    to call it, and the first one writes. The checkpoint before this one is kept."""
    state = _state(session)
    if session.process.first:
        buffer = io.BytesIO()
        torch.save(state, buffer)
        _keep(folder / NAME, folder / PREVIOUS)
        write_atomically(folder / NAME, sealed(buffer.getvalue()))
    return folder / NAME


def sealed(content: bytes) -> bytes:
    """The content with its checksum, which torch.load ignores."""
    return content + SEAL + sha256(content).hexdigest().encode() + b"\n"


def _state(session: "Session") -> dict[str, Any]:
    """All that is saved."""
    return {
        "noise": session.process.gather(session.sampler.noise.get_state()),  # of each process
        "settings": _settings(session),
        "values": session.values,
        "operator": session.operator.state_dict(),
        "optimizer": session.optimizer.state(),
        "sampler": session.sampler.state(),
        "usual_norm": session.usual_norm,
        "generator": session.sampler.generator.get_state(),
        **{name: getattr(session, name) for name in PLAIN},
    }


def _keep(path: Path, older: Path) -> None:
    """Keep a checkpoint under a second name. It is linked and not renamed, so that at any moment
    there is one under the first."""
    if path.is_file():
        temporary = older.with_name(f".{older.name}.{os.getpid()}{TEMPORARY}")
        try:
            temporary.unlink(missing_ok=True)
            os.link(path, temporary)
            temporary.replace(older)
            temporary.unlink(missing_ok=True)  # two names of one file are not renamed onto another
        except OSError:  # a file system without links
            with suppress(OSError):
                path.replace(older)


def restore(session: "Session", folder: Path | None) -> None:
    """Put a session back to where a checkpoint was written, by any number of processes. All have
    to call it, and the first one reads."""
    process, path = session.process, None if folder is None else folder / NAME
    content = process.from_first(_content(path) if process.first else b"")
    try:
        state = torch.load(io.BytesIO(content), map_location=session.device, weights_only=True)
        _same_settings(state["settings"], _settings(session))
        _same_objective(state["values"], session)
        _same_rule(state["settings"], _settings(session))
        if process.size == 1:
            _check_alike(state, _state(session))
        _check_finite(state)
        _put_back(session, state)
    except InputError:
        raise
    except (*WRONG, EOFError, OSError) as error:
        raise FileError(
            f"{brief(path)} is no checkpoint of this training: {brief(error)}.{_previous(path)}"
        ) from None


def _put_back(session: "Session", state: dict[str, Any]) -> None:
    session.operator.load_state_dict(state["operator"])
    session.optimizer.restore(state["optimizer"])
    session.sampler.restore(state["sampler"])
    for name in PLAIN:
        setattr(session, name, state[name])
    session.count.fill_(session.step)
    session.fine.fill_(session.step)
    session.usual_norm.copy_(state["usual_norm"])
    session.sampler.generator.set_state(state["generator"].cpu())
    rank = session.process.rank
    if rank < len(state["noise"]):  # else this process is a new one, with new noise
        session.sampler.noise.set_state(state["noise"][rank].cpu())


def _content(path: Path | None) -> bytes:
    """The content of the file, after a check that it is whole."""
    if path is None or not path.exists():
        raise FileError(
            f"There is no checkpoint to resume from {f'at {path}' if path else '(give out=)'}: "
            f"train without resume first.{_previous(path)}"
        )
    content = _unsealed(content_of(path, what="checkpoint"))
    if content is None:
        raise FileError(
            f"{brief(path)} is not a whole checkpoint: it is damaged, cut short, of another kind "
            f"or of another version.{_previous(path)}"
        )
    return content


def _unsealed(content: bytes) -> bytes | None:
    """The content without its checksum; None where that is missing or another one."""
    before, _, _ = content.rpartition(SEAL)
    return before if before and sealed(before) == content else None


def _previous(path: Path | None) -> str:
    """What to do where a checkpoint cannot be used, as the end of an error."""
    if path is None:
        return ""
    older = path.with_name(PREVIOUS)
    with suppress(FileError):
        if _unsealed(content_of(older)) is not None:
            return (
                f" The checkpoint before it, {older.name}, is whole: to go on from there, give it "
                f"the name {path.name}."
            )
    return " Train into another folder." if path.exists() else ""


def _check_alike(saved: Any, mine: Any, where: str = "it") -> None:
    """A ValueError where what was saved differs in structure, shapes or types from what this
    session would save. What a session has only after its first step is left out."""
    if isinstance(mine, dict):
        if not isinstance(saved, dict) or saved.keys() != mine.keys():
            raise ValueError(f"{where} does not hold what it should")
        for name in mine.keys() - {"settings", "values", "names", "smooth", "codes"}:
            _check_alike(saved[name], mine[name], name)
    elif isinstance(mine, list | tuple):
        # The noise is of each process, and there may have been another number of them.
        if not isinstance(saved, list | tuple) or (len(saved) != len(mine) and where != "noise"):
            raise ValueError(f"{where} does not hold what it should")
        for one, other in zip(saved, mine):
            _check_alike(one, other, where)
    elif isinstance(mine, Tensor):
        if not isinstance(saved, Tensor) or (saved.shape, saved.dtype) != (mine.shape, mine.dtype):
            raise ValueError(f"{where} is not a tensor {tuple(mine.shape)} of {mine.dtype}")
    elif type(saved) is not type(mine) or not saved >= 0:
        raise ValueError(f"{where} cannot be {brief(saved)}")


def _check_finite(state: dict[str, Any]) -> None:
    """A ValueError where something is NaN or infinite that a training would not have saved."""
    every = *state["operator"].values(), *leaves(state["optimizer"])
    if not all(each.isfinite().all() for each in every):
        raise ValueError("weights that are NaN or infinite")
    names, smooth = state["names"], state["smooth"]
    if smooth is None:
        return  # it was written before the first step
    alike = smooth.dtype == torch.float32 and smooth.shape == (len(names),)
    if not alike or "loss" not in names or not all(isinstance(name, str) for name in names):
        raise ValueError("the means of the loss's terms are not those of a training")


def _settings(session: "Session") -> dict[str, Any]:
    """What has to be the same for a training to be continued, besides the objective: the settings
    that were asked for, with what was chosen where they left something open."""
    operator, (instances, points) = session.operator, session.shape
    asked = {name: each for name, each in vars(session.training).items() if name not in MAY_CHANGE}
    chosen = {
        "instances": instances,
        "points": points,
        "rate": session.rate,
        "near": session.sampler.near,
        "architecture": operator.network.architecture.describe(),
        "problem": session.problem.name,
        "space": operator.space.describe(),
        "instances_of": operator.instances.describe(),
        "device": session.device.type,
    }
    rule = {f"{RULE}{name}": each for name, each in asdict(session.rule).items()}
    return asked | chosen | rule


def _same_settings(saved: dict[str, Any], asked: dict[str, Any]) -> None:
    """An error that names what differs."""
    _same_named(saved, asked, [name for name in asked if not name.startswith(RULE)])


def _same_rule(saved: dict[str, Any], asked: dict[str, Any]) -> None:
    """The rule follows from the settings and the objective: it is looked at once those are the
    same."""
    _same_named(saved, asked, [name for name in asked if name.startswith(RULE)])


def _same_named(saved: dict[str, Any], asked: dict[str, Any], names: list[str]) -> None:
    different = [name for name in names if not _same(saved.get(name), asked[name])]
    if different:
        was = ", ".join(f"{name} = {brief(saved.get(name))}" for name in different)
        now = ", ".join(f"{name} = {brief(asked[name])}" for name in different)
        raise InputError(
            f"The checkpoint was made with {was}, but {now} was asked for: resume with the same "
            f"settings ({' and '.join(MAY_CHANGE[:2])} may change), or train into another folder."
        )


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=SAME)
    return one == other


def _same_objective(saved: Tensor | None, session: "Session") -> None:
    """An error where the objective has other values than that of the checkpoint."""
    mine = session.values
    if saved is None or mine is None:
        return  # a random one, which has no values to compare
    scale = float(saved.nan_to_num(0.0, 0.0, 0.0).abs().amax())
    if saved.shape == mine.shape:
        same = torch.isclose(saved, mine, rtol=SAME, atol=1e-5 * scale, equal_nan=True)
        if same.all():
            return
        k = int((~same).flatten().nonzero()[0])
        was, now = saved.flatten()[k].item(), mine.flatten()[k].item()
        said = f"{was:.6g} at a point where that of {session.problem.name!r} now has {now:.6g}"
    else:
        said = f"{saved.numel()} values, and that of {session.problem.name!r} {mine.numel()}"
    raise InputError(
        f"The checkpoint is of another objective: it had {said}. Resume with the objective that it "
        "was made with (and the same instances), or train into another folder."
    )
