"""An operator as files for other runtimes: ONNX, or what `torch.export` saves."""

import io
import json
import logging
import warnings
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.export import Dim, ExportedProgram

from proxlearn.common import batch as batches
from proxlearn.common.files import writable_folder, write_atomically
from proxlearn.common.provenance import versions
from proxlearn.common.seeds import generator_for
from proxlearn.errors import InputError, ProxlearnError
from proxlearn.instances import Vectors
from proxlearn.operators.bound_operator import MOST_APPLICATIONS, Bound
from proxlearn.operators.graphs import Function, Functions, Named
from proxlearn.problems.base import sampled

if TYPE_CHECKING:
    from proxlearn.operators.operator import Operator

FORMATS = (".onnx", ".pt2")
VERSION = 1  # of the file that says what is where
OPSET = 18  # of ONNX: runtimes in browsers have it, too
INSTANCES = 3  # in an example; 0 and 1 would be taken for sizes that are always so
Sizes = dict[str, list[int | str]]  # of tensors by name; a word for a size that may vary


class MissingExportError(ProxlearnError, ImportError):
    """onnx or onnxscript is not installed."""


class CannotExportError(InputError):
    """A network or an objective that is no graph of tensor operations."""


@dataclass(frozen=True)
class Graph:
    """What a graph takes and gives, and the graph."""

    inputs: Sizes
    outputs: Sizes
    program: ExportedProgram


def export(operator: "Operator", path: str | Path, tau: Any = None) -> Path:
    """Write the graphs of an operator beside each other, one application at `path` itself, and
    return the file that says what is where, `path` with .json after it. See `Operator.export`."""
    path = Path(path)
    kind = check_format(path)
    writable_folder(path.parent)
    device = operator.device
    try:
        made, left_out = graphs_of(operator.to("cpu"), tau)
    finally:
        operator.to(device)
    about: dict[str, Any] = {"format": "proxlearn-graphs", "version": VERSION, "graphs": {}}
    for name, graph in made.items():
        file = path if name == "apply" else path.with_name(f"{path.stem}.{name}{path.suffix}")
        write_atomically(file, as_onnx(graph) if kind == ".onnx" else _as_pt2(graph))
        about["graphs"][name] = {"file": file.name, "inputs": graph.inputs} | {
            "outputs": graph.outputs
        }
    about |= {"left_out": left_out} | _described(operator)
    return write_atomically(path.with_name(f"{path.name}.json"), json.dumps(about, indent=1))


def check_format(path: str | Path) -> str:
    """The format that a file's ending asks for; an error if it cannot be written."""
    kind = Path(path).suffix.lower()
    if kind not in FORMATS:
        raise InputError(
            f"Cannot export to {path}: its ending must be one of {', '.join(FORMATS)}."
        )
    if kind == ".onnx":
        _onnx()
    return kind


def graphs_of(
    operator: "Operator", tau: Any = None, wanted: Container[str] | None = None
) -> tuple[dict[str, Graph], dict[str, str]]:
    """The graphs of an operator on the CPU by name, all or those that are `wanted`, and why there
    is no `objective` where its objective is no graph."""
    made: dict[str, Graph] = {}
    left_out: dict[str, str] = {}
    functions = Functions(_example(operator, tau))
    for name, function in functions.each():
        if wanted is not None and name not in wanted:
            continue
        known = dict(functions.known)
        for graph in made.values():
            known |= graph.outputs
        try:
            made[name] = _traced(operator, function, known)
        except CannotExportError as error:
            if name != "objective":
                raise CannotExportError(
                    f"This operator cannot be exported, as {name} {error}"
                ) from error.__cause__
            left_out[name] = f"it {error}"
    return made, left_out


def _example(operator: "Operator", tau: Any) -> Bound:
    """Several instances, bound to the operator."""
    if tau is not None:
        bound = operator.bind(tau)
    elif operator.problem is not None:
        drawn = sampled(operator.problem, INSTANCES, "test", generator_for(0, "test"))
        bound = operator.bound(operator.problem, drawn)
    elif isinstance(operator.instances, Vectors):
        ends = torch.tensor((operator.instances.low, operator.instances.high))
        bound = operator.bind(ends.mean(0).expand(INSTANCES, -1))
    else:
        raise InputError(
            f"An example is needed to export an operator for {operator.instances.words}: give one, "
            "operator.export(path, tau), or the problem, operator.problem = px.problem(name)."
        )
    whole = bound.tau if bound.tau is not None else bound.observed
    some = batches.select(whole, torch.arange(INSTANCES) % len(bound))
    if bound.tau is not None and bound.problem is not None:
        return operator.bound(bound.problem, some)
    return operator.seeing(some, bound.problem)


class _Traced(nn.Module):
    """A function as a module, which owns the operator's weights."""

    def __init__(self, operator: "Operator", function: Function):
        super().__init__()
        self.operator, self.function = operator, function

    def forward(self, given: Named) -> Named:
        return self.function.compute(given)


@contextmanager
def _quietly() -> Iterator[None]:
    """Without what the exporters say of themselves."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch._export", "torch.export")]
    levels = [each.level for each in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in loggers:
            each.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for each, level in zip(loggers, levels):
                each.setLevel(level)


def _traced(operator: "Operator", function: Function, known: Sizes) -> Graph:
    """A function as a graph, with the sizes that are known of its inputs; others are found."""
    example = {name: each.detach() for name, each in function.example.items()}
    module = _Traced(operator, function)
    with torch.no_grad():
        result = module(example)  # constants that are made once are made of real numbers here
    dynamic = {
        name: tuple(
            Dim.STATIC if name in known and isinstance(known[name][axis], int) else Dim.AUTO
            for axis in range(each.ndim)
        )
        for name, each in example.items()
    }
    # With gradients: without, networks work in place.
    with _quietly(), torch.enable_grad():
        try:
            program = torch.export.export(module, (example,), dynamic_shapes=(dynamic,))
        except Exception as error:  # whatever torch.export makes of a user's network
            why = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise CannotExportError(f"is no graph of tensor operations: {why}") from error
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # of this machine's files
    user = set(program.graph_signature.user_inputs)
    inputs = [
        node for node in program.graph.nodes if node.op == "placeholder" and node.name in user
    ]
    outputs: Any = program.graph.output_node().args[0]
    graph = Graph(_sizes(example, inputs), _sizes(result, outputs), program)
    for name, sizes in {**graph.inputs, **graph.outputs}.items():
        if sizes[0] == INSTANCES:
            raise CannotExportError(
                f"is of one number of instances alone: see what computes {name}, and use "
                "x.shape[0] in place of len(x) there."
            )
    return graph


def _sizes(named: Named, nodes: Sequence[Any]) -> Sizes:
    shapes = [node.meta["val"].shape for node in nodes]
    return {
        n: [_size(n, a, s) for a, s in enumerate(t)] for n, t in zip(named, shapes, strict=True)
    }


def _size(name: str, axis: int, size: int | torch.SymInt) -> int | str:
    """A number, or a word where it may vary: every tensor has instances first, then points where it
    is of points."""
    if isinstance(size, int) or size.node.expr.is_number:  # found to be of one size
        return int(size)
    first = {0: "instances"} | ({} if name.startswith(("tau", "prepared")) else {1: "points"})
    return first.get(axis, f"{name}_{axis}")


def as_onnx(graph: Graph) -> bytes:
    """The graph as an ONNX file: weights inside, plain operators, no word of this machine."""
    onnx = _onnx()
    with _quietly():
        made = torch.onnx.export(
            graph.program,
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
            input_names=list(graph.inputs),
            output_names=list(graph.outputs),
        )
    assert made is not None
    model = made.model_proto
    del model.metadata_props[:], model.graph.metadata_props[:]
    del model.graph.value_info[:]  # what is inside is found again by whoever runs it
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    for each in model.graph.initializer:
        del each.metadata_props[:]
    _name_sizes(model.graph.input, graph.inputs)
    _name_sizes(model.graph.output, graph.outputs)
    model.producer_name, model.producer_version = "proxlearn", versions()["proxlearn"]
    onnx.checker.check_model(model)
    return model.SerializeToString()


def _name_sizes(ends: Any, sizes: Sizes) -> None:
    for end in ends:
        del end.metadata_props[:]
        for place, size in zip(end.type.tensor_type.shape.dim, sizes[end.name]):
            if isinstance(size, str):
                place.dim_param = size


def _as_pt2(graph: Graph) -> bytes:
    buffer = io.BytesIO()
    with _quietly():
        torch.export.save(graph.program, buffer)
    return buffer.getvalue()


def _onnx() -> Any:
    try:
        import onnx
        import onnxscript  # noqa: F401
    except ImportError:
        raise MissingExportError(
            "ONNX files need onnx and onnxscript, which are not installed: "
            "pip install 'proxlearn[export]'. A .pt2, of torch.export, needs neither."
        ) from None
    return onnx


def _described(operator: "Operator") -> dict[str, Any]:
    """What else one needs to know to use the graphs."""
    return {
        "problem": operator.provenance.get("problem"),
        "space": operator.space.describe(),
        "instances": operator.instances.describe(),
        "lam": operator.lam,
        "lams": operator.lams,
        "applications": operator.applications,
        "most_applications": MOST_APPLICATIONS,
        "card": operator.card,
        "doubtful": operator.doubtful,
        "versions": versions(),
    }
