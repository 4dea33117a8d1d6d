"""An operator as two ONNX graphs: what is prepared of a tau, and one application."""

import io
import warnings
from contextlib import redirect_stderr, redirect_stdout

import torch
from torch import Tensor, nn

from proxlearn.common.batch import Batch, Points, leaves, tree_map
from proxlearn.errors import InputError
from proxlearn.operators.operator import Operator
from proxlearn.spaces import Space

POINTS = 7  # traced with; any number may be given


class _Prepare(nn.Module):
    def __init__(self, operator: Operator):
        super().__init__()
        self.operator = operator

    def forward(self, tau: Batch) -> list[Tensor]:
        return leaves(self.operator.prepare(self.operator.encode(tau)))


class _Apply(nn.Module):
    def __init__(self, operator: Operator, space: Space, like: Batch):
        super().__init__()
        self.operator, self.space, self.like = operator, space, like

    def forward(self, x: Points, prepared: list[Tensor]) -> Points:
        left = iter(prepared)
        return self.operator.step(x, tree_map(lambda _: next(left), self.like), self.space)


def graphs(operator: Operator, space: Space, tau: Tensor) -> dict[str, bytes]:
    """`prepare`: tau (1, ...) to prepared_0, ...; `apply`: x (1, points, d) and these to y."""
    operator.network.precision = "fp32"
    x = space.sample(1, POINTS, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        like = operator.prepare(operator.encode(tau))
        operator.step(x, like, space)  # constants that are kept are made here, not while tracing
    known = leaves(like)
    names = [f"prepared_{k}" for k in range(len(known))]
    moving = {1: torch.export.Dim.DYNAMIC}
    return {
        "prepare": _exported(_Prepare(operator), (tau,), ["tau"], names, None),
        "apply": _exported(
            _Apply(operator, space, like),
            (x, known),
            ["x", *names],
            ["y"],
            (moving, [{}] * len(known)),
        ),
    }


def _exported(
    module: nn.Module, arguments: tuple, inputs: list[str], outputs: list[str], shapes: tuple | None
) -> bytes:
    try:
        import onnxscript  # noqa: F401  # what torch exports by
    except ImportError:
        raise InputError(
            "The playground writes operators as ONNX, which needs onnx and onnxscript: "
            "pip install 'proxlearn[export]'."
        ) from None
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module.eval(),
            arguments,
            input_names=inputs,
            output_names=outputs,
            dynamic_shapes=shapes,
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    return program.model_proto.SerializeToString()
