"""Operator files: bytes spoiled, headers that say what cannot be, weights that are not theirs."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

import proxlearn as px
from fuzzing._spoiled import bytes_spoiled, json_spoiled, pick
from fuzzing.frame import Act, WrongAnswerError, finite
from proxlearn.common.weight_files import Weights, write_weights
from proxlearn.networks.arrival import Arrival
from proxlearn.operators.load import SEALED_FROM
from proxlearn.operators.operator import VERSION

WHAT = "operator files"
CASES, QUICK = 10_000, 12
STARTS = 8
ODD_NUMBERS = (float("nan"), float("inf"), -float("inf"), 3e38, -1e30, 1e20, 1e10, 1e-45)
ODD_KINDS = (torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int8, torch.bool)


class Saved(NamedTuple):
    """An operator's file, what it holds, and where it takes some starts."""

    content: bytes
    header: str
    weights: Weights
    tau: Any
    points: Tensor


def prepare(folder: Path) -> list[Saved]:
    """Of vectors, with arrival and a range of lam; of a single objective; of graphs; of sets."""
    torch.manual_seed(0)
    bowl = px.Problem.from_function(lambda x: x.square().sum(-1), px.Box(-1.0, 1.0, dim=2))
    conic, maxcut, peaks = map(px.problem, ("conic", "maxcut", "peaks"))
    low, high = np.array(peaks.instances.low), np.array(peaks.instances.high)  # pyright: ignore
    small: dict[str, Any] = {"blocks": 1, "width": 8, "shared": 8}
    made = [
        (conic, {"kind": "coupling", **small}, [0.3, 0, 0.5, 0, 0, -1], (0.5, 2.0)),
        (bowl, {"kind": "coupling", "sinusoids": 4, **small}, None, None),
        (
            maxcut,
            {"kind": "cut_circles", "blocks": 1, "width": 4},
            np.ones((8, 8)) - np.eye(8),
            None,
        ),
        (peaks, {"kind": "attending", **small}, ((low + high) / 2)[None].tolist(), None),
    ]
    every = []
    for k, (problem, sizes, tau, lams) in enumerate(made):
        operator = px.Operator.untrained(problem, sizes, 1.0, lams, applications=3)
        with torch.no_grad():  # a little away from the identity, with which it begins
            for weight in operator.parameters():
                weight += 0.01 * torch.randn_like(weight)
        if lams:
            operator.arrival = Arrival.of(operator.network, problem.space.dim)
        path = operator.save(folder / f"{k}.safetensors")
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + length])["__metadata__"]["header"]
        points = px.load(path, "cpu").solve(tau, starts=STARTS).points
        every.append(Saved(content, header, from_bytes(content), tau, points))
    return every


def case(draw: np.random.Generator, prepared: list[Saved], folder: Path) -> tuple[str, Act]:
    saved, path, how = pick(draw, prepared), folder / "mine.safetensors", draw.integers(4)
    if how < 2:
        path.write_bytes(bytes_spoiled(saved.content, draw))
        about = "bytes spoiled"
    elif how == 2:
        header = json_spoiled(json.loads(saved.header), draw)
        _write(path, header, saved.weights, sealed=bool(draw.integers(2)))
        about = f"header {header}"
    else:
        weights, about = _weights_spoiled(saved.weights, draw)
        _write(path, saved.header, weights, sealed=bool(draw.integers(2)))

    def act() -> None:
        found = px.load(path, "cpu").solve(saved.tau, starts=STARTS)
        finite(found.points)
        if how < 2 and not torch.equal(found.points, saved.points):
            raise WrongAnswerError("a damaged file gives other solutions")

    return about, act


def _write(path: Path, header: str, weights: Weights, sealed: bool) -> None:
    """A file that says this of itself, with a checksum, or of the last version without one."""
    about = {"format": "proxlearn-operator", "version": str(SEALED_FROM - 1), "header": header}
    try:
        said = json.loads(header) if sealed else None
    except (ValueError, RecursionError):
        said = None
    if said is not None:
        write_weights(path, "operator", VERSION, said, weights)
    else:
        path.write_bytes(to_bytes(weights, about))


def _weights_spoiled(weights: Weights, draw: np.random.Generator) -> tuple[Weights, str]:
    name, how = pick(draw, sorted(weights)), draw.integers(6)
    weights = {key: each.clone() for key, each in weights.items()}
    if how < 2:
        number = pick(draw, ODD_NUMBERS)
        weights[name].view(-1)[int(draw.integers(weights[name].numel()))] = number
        return weights, f"{number} in {name}"
    if how == 2:
        kind = pick(draw, ODD_KINDS)
        weights[name] = weights[name].to(kind)
        return weights, f"{name} of {kind}"
    if how == 3:
        shape = pick(draw, ((0,), (1, 1), (-1,), (3, 5)))
        weights[name] = torch.zeros(shape) if -1 not in shape else weights[name].flatten().clone()
        return weights, f"{name} of shape {shape}"
    if how == 4:
        del weights[name]
        return weights, f"without {name}"
    scale = float(pick(draw, (1e3, 1e6, 1e12, 1e18)))
    return {key: each * scale for key, each in weights.items()}, f"weights times {scale}"
