"""Arguments of every command: words for numbers, names that are none, paths that cannot be."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import proxlearn as px
from fuzzing.frame import Act, command

WHAT = "arguments of the commands"
CASES, QUICK = 500, 4
TAU = "0.3,0,0.5,0,0,-1"
MINE = """import proxlearn as px

class Mine(px.Problem):
    name = "mine"
    space = px.Box(-1.0, 1.0, dim=2)

    def objective(self, x, tau):
        return x.square().sum(-1)
"""
TRAIN = {"--steps": "1", "--applications": "1", "--instances": "2", "--points": "2", "--depth": "1"}
TINY = {"--instances": "1", "--starts": "4", "--witnesses": "4", "--reference": "lbfgs"}
# Options that a command works with; the first, without a name, is its argument.
COMMANDS: dict[str, dict[str, Any]] = {
    "problems": {},
    "train": {"": "mine.py", "--out": "out", "--seed": "0", "--lam": "1", "--rate": "0.01"}
    | {"--precision": "fp32", "--sampling": "pool", "--rule": "proximal", "--device": "cpu"}
    | {"--architecture": "default", "--near": "0", **TRAIN},
    "solve": {"": "conic", "--tau": TAU, "--starts": "8", "--seed": "0", "--device": "cpu"}
    | {"--json": "a.json", "--npz": "a.npz", "--plot": "a.svg", "--lam": "0.02", "--steps": "2"},
    "solve mine": {"": "mine.py", "--method": "lbfgs", "--starts": "8", "--polish": None},
    "solve many": {"": "conic", "--taus": "taus.csv", "--npz": "a.npz", "--starts": "8"},
    "symmetry": {"": "part.xyz", "--starts": "4", "--tolerance": "0.001", "--out": "out"},
    "detect": {"": "a.png", "--operator": "operator.safetensors", "--threshold": "0.5"},
    "evaluate": {"": "conic", "--steps": "1,2", "--trials": "1", "--thresholds": "0.1"}
    | {"--deltas": "0.1", "--out": "out", **TINY},
    "compare": {"": "conic", "--tau": TAU, "--methods": "operator,lbfgs", "--out": "out", **TINY},
    "advise": {"": "mine.py", "--lam": "1", "--seed": "0", "--json": "-"},
    "report": {"": ".", "--output": "a.html"},
    "reproduce": {"": "no such experiment", "--out": "out", "--quick": None, "--resume": None},
}
WORDS = (
    "", " ", "-1", "0", "1", "2", "1000000000", "nan", "inf", "1e400", "1e-400", "0x1", "٣", "1,2",
    "1,2,", ",", "1.5", "True", "None", "a", "auto", "cuda", "mps", "meta", "cpu", "conic",
    "maxcut", "mine.py", "taus.csv", "part.xyz", "operator.safetensors", ".", "..", "pipe",
    "/proc/self/mem", "no/such/file", "a" * 300, "a/" * 400, "[/red]x", "[bold]", "\x1b[31m", "é",
    "--", "\udcff", "$(ls)", "`ls`", "../a", "~", "a.npz", "a.svg", "a.gif", "a.json", "-",
    "9" * 400, "1" * 5_000, "operator", "lbfgs", "descent", "swarm", "fp32", "paper", "boxes",
    "gradient", "unfold",
)  # fmt: skip
LONG = ("--steps", "--applications")  # of which many take long


def prepare(folder: Path) -> dict[str, Any]:
    torch.set_num_threads(1)
    operator = px.pretrained("conic", "cpu")
    operator.save(folder / "operator.safetensors")
    import proxlearn.experiments.base
    import proxlearn.figures.draw
    import proxlearn.shapes.detect  # noqa: F401

    turned = np.random.default_rng(0).normal(size=(80, 3))
    rows = "\n".join(" ".join(f"{each:.4f}" for each in row) for row in turned)
    taus = f"{TAU}\n{TAU}\n"
    files = {"mine.py": MINE, "part.xyz": rows, "taus.csv": taus}
    return {"files": files, "operator": (folder / "operator.safetensors").read_bytes()}


def case(draw: np.random.Generator, prepared: dict[str, Any], folder: Path) -> tuple[str, Act]:
    for name, text in prepared["files"].items():
        (folder / name).write_text(text)
    (folder / "operator.safetensors").write_bytes(prepared["operator"])
    os.mkfifo(folder / "pipe")  # and no device of this machine, in whose place a file could be put
    name = str(draw.choice(list(COMMANDS)))
    given = dict(COMMANDS[name])
    for _ in range(draw.choice([1, 1, 2])):
        _change(draw, given)
    words = [each for pair in given.items() for each in pair if each]
    typed = [name.split()[0], *words]
    return f"{typed}", partial(command, *typed)


def _change(draw: np.random.Generator, given: dict[str, Any]) -> None:
    """Another value, an option of another command, or one that is none."""
    every = sorted({option for options in COMMANDS.values() for option in options if option})
    how = draw.choice(["value", "value", "value", "option", "none"])
    option = str(draw.choice(list(given) or every)) if how == "value" else str(draw.choice(every))
    if how == "none":
        option = option[: draw.integers(2, len(option))] + str(draw.choice(list("xyz-")))
    while True:
        word = str(draw.choice(WORDS))
        if not (option in LONG and _is_large(word)):
            given[option] = word
            return


def _is_large(word: str) -> bool:
    try:
        return any(float(each) > 10 for each in word.split(","))
    except ValueError:
        return False
