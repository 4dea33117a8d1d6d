"""Operators with weights just drawn, images, and kernels, for tests."""

import importlib.util
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

import proxlearn as px
from proxlearn.images.packed import Packed
from proxlearn.instances import Instances
from proxlearn.networks.coupling import Coupling
from proxlearn.operators.load import SEALED_FROM


def problem_over(space: px.Space, instances: Instances) -> px.Problem:
    """A problem without an objective."""
    problem = px.Problem()
    problem.space, problem.instances = space, instances
    return problem


def untrained(
    space: px.Space, instances: Instances, architecture: Any, lam: float = 1.0, **more: Any
) -> px.Operator:
    """An operator that knows no problem."""
    operator = px.Operator.untrained(problem_over(space, instances), architecture, lam, **more)
    operator.problem = None
    return operator


class Fixed(px.Operator):
    """An operator whose application is a given function of x."""

    def step(self, x, prepared, space=None, precision=None):
        return self.apply_to(x)


def fixed(problem: px.Problem, apply: Callable[[Tensor], Tensor], lam: float = 1.0) -> px.Operator:
    """An operator of a problem that applies a function."""
    operator = Fixed.untrained(problem, Coupling(blocks=1, width=8, shared=8), lam)
    operator.apply_to = apply
    return operator


def grey_images(side: int) -> Packed:
    """Thirty images, each of its own grey, 20 of them to train on; image k has k % 4 boxes."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    files, boxes = [], []
    for k in range(30):
        file = io.BytesIO()
        image.new("RGB", (side, side), (8 * k, 8 * k, 8 * k)).save(file, "PNG")
        files.append(file.getvalue())
        boxes.append(np.full((k % 4, 4), 0.4) + 0.05 * np.arange(k % 4)[:, None])
    return Packed.of(files, boxes, [f"{k}.png" for k in range(30)], 20, side)


def parts(path: Path) -> tuple[dict[str, torch.Tensor], dict]:
    """The weights and the header of an operator file, to be tampered with."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length])["__metadata__"]
    return from_bytes(data), json.loads(metadata["header"])


def write(path: Path, weights: dict[str, torch.Tensor], header: object, **metadata: str) -> None:
    """A file of the last version that had no checksum."""
    text = header if isinstance(header, str) else json.dumps(header)
    version = str(SEALED_FROM - 1)
    tags = {"format": "proxlearn-operator", "version": version, "header": text} | metadata
    path.write_bytes(to_bytes(weights, tags))


def imported_as_written(name: str) -> ModuleType:
    """A module of the package past the hook that checks shapes, which rewrites functions that
    Triton reads."""
    whole = f"proxlearn.{name}"
    path = Path(px.__file__).parent.joinpath(*name.split(".")).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(whole, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[whole] = module
    spec.loader.exec_module(module)
    return module
