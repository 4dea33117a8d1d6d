"""Files of solutions in every format: bytes spoiled, arrays that do not belong together."""

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from safetensors.numpy import save as arrays_to_bytes

import proxlearn as px
from fuzzing._spoiled import bytes_spoiled, json_spoiled, npy_spoiled, pick
from fuzzing.frame import Act, WrongAnswerError, command, quiet
from proxlearn.answers.solution_files import read_arrays
from proxlearn.answers.solutions import FIELDS

WHAT = "solutions files (npz, safetensors, json)"
CASES, QUICK = 500, 8


class Saved(NamedTuple):
    name: str
    content: bytes
    solutions: px.Solutions


def prepare(folder: Path) -> list[Saved]:
    """One of every format, and one of many taus."""
    problem = px.problem("conic")
    taus = [[0.3, 0, 0.5, 0, 0, -1], [0.3, 0, -0.5, 0, 0, -1]]
    found = px.solve(problem, taus, "lbfgs", starts=6, device="cpu").polished()
    paths = [found.save(folder / f"a.{kind}") for kind in ("npz", "safetensors", "json")]
    np.save(folder / "taus.npy", taus)
    with quiet():
        typed = ("--taus", f"{folder}/taus.npy", "--npz", f"{folder}/many.npz", "--starts", "8")
        command("solve", "conic", *typed, "--device", "cpu")
    paths.append(folder / "many.npz")
    return [Saved(each.name, each.read_bytes(), px.Solutions.load(each)) for each in paths]


def case(draw: np.random.Generator, prepared: list[Saved], folder: Path) -> tuple[str, Act]:
    saved, how = pick(draw, prepared), draw.integers(3)
    path = folder / saved.name
    if how < 2:
        path.write_bytes(bytes_spoiled(saved.content, draw))
    else:  # as an earlier version, or somebody else, would have written it: without a checksum
        path.write_bytes(saved.content)
        path.write_bytes(_written_anew(path, draw))

    def act() -> None:
        found = px.Solutions.load(path)
        with quiet():
            Console().print(repr(found), found)
        if how < 2 and not _same(found, saved.solutions):
            raise WrongAnswerError("a damaged file gives other solutions")
        if len(found):
            found[0].unique()

    return f"{saved.name}, {('bytes spoiled', 'bytes spoiled', 'written anew')[how]}", act


def _same(one: px.Solutions, other: px.Solutions) -> bool:
    pairs = [(getattr(one, name), getattr(other, name)) for name in (*FIELDS, "tau")]
    return one.space == other.space and all(
        a is b or (a is not None and b is not None and torch.equal(a, b)) for a, b in pairs
    )


def _written_anew(path: Path, draw: np.random.Generator) -> bytes:
    """The same arrays and words, some of them spoiled, without a checksum."""
    arrays, about = read_arrays(path)
    said = json_spoiled(about, draw) if draw.integers(2) else json.dumps(about)
    if path.suffix == ".json":
        lists = {k: np.where(np.isfinite(v), v, None).tolist() for k, v in arrays.items()}  # pyright: ignore
        return json_spoiled({"about": about} | lists, draw).encode(errors="replace")
    name = pick(draw, sorted(arrays))
    changed: tuple[Any, ...] = (
        arrays[name][:1],
        arrays[name].astype("f2"),
        arrays[name][..., None],
    )
    if path.suffix == ".safetensors":
        arrays[name] = np.ascontiguousarray(pick(draw, changed))
        return arrays_to_bytes(arrays, {"about": said})
    file = io.BytesIO()
    np.savez(file, **arrays | {"about": np.array(said)})  # pyright: ignore
    return file.getvalue() if draw.integers(2) else _with_entry(file, name, arrays[name], draw)


def _with_entry(file: io.BytesIO, name: str, array: np.ndarray, draw: np.random.Generator) -> bytes:
    """An .npz with one array in it spoiled."""
    from zipfile import ZipFile

    spoiled = io.BytesIO()
    with ZipFile(file) as whole, ZipFile(spoiled, "w") as other:
        for each in whole.namelist():
            own = npy_spoiled(array, draw) if each == f"{name}.npy" else whole.read(each)
            other.writestr(each, own)
    return spoiled.getvalue()
