"""Files of taus: those of `solve --taus`, a tau a row, and of `solve --tau`, one set of vectors."""

import json
from pathlib import Path
from typing import Any

import numpy as np

import proxlearn as px
from fuzzing._spoiled import bytes_spoiled, json_spoiled, npy_spoiled, pick, words_spoiled
from fuzzing.frame import Act, command, finite, quiet

WHAT = "tau files (csv, txt, npy, json)"
CASES = 500
ODD = ("", "#\n", "1,2,3,4,5,6" * 10**5, "1 " * 10**6, "0,0,0,0,0,0\n", "1e38," * 5 + "1e38\n")
KINDS = (  # one of them is not a kind that is read
    "csv",
    "txt",
    "npy",
    "npy",
    "json",
    "json",
    "set.npy",
    "wrong.safetensors",
)


def prepare(folder: Path) -> Any:
    generator = np.random.default_rng(0)
    taus = np.column_stack([generator.uniform(-1, 1, (5, 5)), -np.ones(5)]).round(3)
    peaks = px.problem("peaks")
    low, high = np.array(peaks.instances.low), np.array(peaks.instances.high)  # pyright: ignore
    members = generator.uniform(low, high, (4, len(low))).round(3)
    for name in ("conic", "peaks"):
        px.pretrained(name, "cpu")
    with quiet():
        command("solve", "conic", "--starts", "8")  # imports what there is
    return taus, members


def case(draw: np.random.Generator, prepared: Any, folder: Path) -> tuple[str, Act]:
    taus, members = prepared
    kind = pick(draw, KINDS)
    if kind in ("csv", "txt"):
        rows = (", " if kind == "csv" else " ").join
        text = "\n".join(rows(map(str, tau)) for tau in taus.tolist())
        content = _text(text, draw)
    elif kind == "json":
        content = json_spoiled(members.tolist(), draw).encode(errors="replace")
    elif kind == "wrong.safetensors":
        content = bytes_spoiled(json.dumps(taus.tolist()).encode(), draw)
    else:
        content = npy_spoiled(members if kind == "set.npy" else taus, draw)
    file = folder / f"taus.{kind}"
    file.write_bytes(content)
    if kind in ("json", "set.npy"):
        typed = ["solve", "peaks", "--tau", file.name]
    else:
        typed = ["solve", "conic", "--taus", file.name]
    typed += ["--starts", "8", "--npz", "out.npz"]
    return f"{' '.join(typed)}: {content[:300]!r}", lambda: _solve(typed)


def _text(text: str, draw: np.random.Generator) -> bytes:
    if not draw.integers(8):
        return pick(draw, ODD).encode()
    if draw.integers(2):
        return words_spoiled(text, draw).encode(errors="replace")
    return bytes_spoiled(text.encode(), draw)


def _solve(typed: list[str]) -> None:
    command(*typed)
    with np.load("out.npz") as file:
        finite(*(file[name] for name in ("points", "values") if name in file.files))
