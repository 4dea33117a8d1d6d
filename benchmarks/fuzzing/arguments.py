"""Arguments of every public function in Python: of the wrong kind, odd, huge, or in odd forms."""

import functools
import inspect
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

import proxlearn as px
from fuzzing.frame import Act, WrongAnswerError, finite
from proxlearn.errors import InputError
from proxlearn.images.read import read_image
from proxlearn.instances.graph import graphs
from proxlearn.instances.set import Sets
from proxlearn.measure.advise import advise
from proxlearn.measure.evaluate import compare, evaluate
from proxlearn.networks.coupling import Coupling
from proxlearn.operators.taus_file import read_taus
from proxlearn.problems.maxcut.maxcut import Maxcut
from proxlearn.problems.sparse.sparse_half import SparseHalf
from proxlearn.show.report import report
from proxlearn.solvers.solve import curve
from proxlearn.solvers.swarm.learn import learn_swarm

WHAT = "arguments of Python's functions"
CASES, QUICK = 5_000, 10
TAU = np.array([0.3, 0.0, 0.5, 0.0, 0.0, -1.0])
POINTS = np.array([[0.5, -0.25], [1.0, 0.75], [-2.0, 3.0]])
HUGE = 10**400

Draw = np.random.Generator
Call = tuple[Callable[..., Any], dict[str, Any]]  # a function, and arguments that it works with

VALUES = (
    None, True, False, 0, 1, -1, 3, 2**31, 2**62, 2**63, 2**64, -(2**70), 10**30, 0.5, 1.0, -0.0,
    -1.5, 1e-320, 1e30, 1e308, float("nan"), float("inf"), -float("inf"), 1j, Fraction(1, 3),
    Decimal("0.1"), Decimal("NaN"), np.float32(0.5), np.float64("nan"), np.float16(2), np.int8(3),
    np.uint64(7), np.bool_(True), np.datetime64("2020-01-01"), "", "a", "auto", "cpu", "conic", "1",
    "operator", "nan", b"ab", "a\0b", "[/red]", "é\n", "../a", "/", ".", "~", "a.npz", "mine.py",
    ["a"], [None], [[1, 2], [3]], [], (), {}, {"a": 1}, {"kind": None}, {"width": 10**6},
    {"blocks": 10**6}, {1, 2}, range(3), [1],
    [float("nan")], (1, "a"), [HUGE], object, np.zeros(0), np.zeros((0, 2)), np.array("a"),
    np.array([None]), np.zeros((2,) * 9), torch.tensor(3), torch.tensor(0.5), torch.tensor(1j),
    torch.zeros(0), torch.device("meta"), torch.tensor(3.0, device="meta"), torch.float64,
    np.ma.masked, Path("a"), slice(2), ...,
)  # fmt: skip
ANYTHING: dict[str, Callable[[], Any]] = {
    repr(each)[:40]: functools.partial(lambda value: value, each) for each in VALUES
} | {
    "a huge number": lambda: HUGE,
    "a number of 10,000 digits": lambda: 10**10_000,
    "a long word": lambda: "a" * 300,
    "a longer word": lambda: "a/" * 3_000,
    "an iterator": lambda: iter([1, 2, 3]),
    "a function": lambda: lambda *given: None,
    "an object": object,
    "a list in itself": lambda: (lambda each: each.append(each) or each)([]),
    "lists fifty deep": lambda: functools.reduce(lambda inside, _: [inside], range(50), [1]),
    "a module": lambda: torch.nn.Linear(2, 2),
    "a box": lambda: px.Box(-1, 1, dim=2),
}

# Forms of an array that hold the same numbers, and others that hold none or other ones.
SAME: dict[str, Callable[[np.ndarray], Any]] = {
    "backwards": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "by columns": np.asfortranarray,
    "of objects": lambda x: x.astype(object),
    "of fractions": lambda x: np.vectorize(Fraction, otypes=[object])(x).tolist(),
    "a list": np.ndarray.tolist,
    "a list of tensors": lambda x: [torch.tensor(each) for each in x],
    "read only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "strided": lambda x: np.repeat(x, 2, 0)[::2],
    "unmasked": lambda x: np.ma.array(x, mask=np.zeros_like(x)),
    "of long doubles": lambda x: x.astype(np.longdouble),
    "a tensor": torch.tensor,
    "sparse": lambda x: torch.tensor(x).to_sparse(),
    "with a gradient": lambda x: torch.tensor(x, requires_grad=True),
    "an expanded tensor": lambda x: torch.tensor(x)[None].expand(1, *x.shape)[0],
}
OTHER: dict[str, Callable[[np.ndarray], Any]] = {
    "masked": lambda x: np.ma.array(x, mask=np.ones_like(x)),
    "complex": lambda x: x + 1j,
    "a complex tensor": lambda x: torch.tensor(x) * 1j,
    "meta": lambda x: torch.tensor(x, device="meta"),
    "of words": lambda x: x.astype(str),
    "of bytes": lambda x: x.astype(bytes),
    "of None": lambda x: np.full(x.shape, None),
    "of NaN": lambda x: np.full_like(x, np.nan),
    "infinite": lambda x: x * np.inf,
    "of booleans": lambda x: x > 0,
    "of whole numbers": lambda x: x.astype(np.int64),
    "unsigned": lambda x: x.astype(np.uint16),
    "huge": lambda x: x * 1e300,
    "large": lambda x: x * 1e30,
    "tiny": lambda x: x * 1e-300,
    "half": lambda x: torch.tensor(x).to(torch.bfloat16),
    "empty": lambda x: x[:0],
    "of one dimension more": lambda x: x[None],
    "of two more": lambda x: x[None, None],
    "flat": np.ndarray.flatten,
    "longer": lambda x: np.concatenate((x, x), -1),
    "transposed": lambda x: x.T,
    "a structure": lambda x: np.zeros(3, [("a", "f4"), ("b", "i4")]),
    "a dictionary": lambda x: dict(enumerate(x.tolist())),
    "a quantized tensor": lambda x: torch.quantize_per_tensor(
        torch.tensor(x).float(), 0.1, 0, torch.qint8
    ),
}
# Numbers that make a call long.
LONG = ("steps", "seconds", "applications", "descents", "encodes", "unroll")


def square(x: torch.Tensor) -> torch.Tensor:
    return x.square().sum(-1)


SIMPLE = px.Problem.from_function(square, px.Box(-1, 1, dim=2))


def _bowl(x: np.ndarray) -> float:
    return float((x * x).sum())


class Known(NamedTuple):
    """What the calls are made with."""

    conic: px.Problem
    operator: px.Operator
    solutions: px.Solutions
    optima: px.Optima
    learn: dict[str, Any]  # settings of a training that is short
    folder: Path


def prepare(folder: Path) -> Known:
    torch.set_num_threads(1)
    conic, operator = px.problem("conic"), px.pretrained("conic", "cpu")
    solutions = operator.solve(TAU, starts=16)
    solutions.save(folder / "solutions.npz")
    operator.save(folder / "operator.safetensors")
    np.save(folder / "taus.npy", np.stack((TAU, TAU)))
    Image.new("RGB", (12, 8)).save(folder / "b.png")
    learned = {"steps": 1, "progress": False, "device": "cpu", "applications": 1, "points": 2}
    learned |= {"instances": 2, "depth": 1, "architecture": {"width": 8, "shared": 8, "blocks": 1}}
    px.learn(SIMPLE, **learned)  # warms up
    return Known(conic, operator, solutions, solutions.unique(), learned, folder)


def calls(known: Known) -> dict[str, Call]:
    """Every function, with arguments that it works with; arrays are those of NumPy."""
    every = (
        _of_spaces,
        _of_problems,
        _of_solving,
        _of_training,
        _of_operators,
        _of_answers,
        _of_measures,
        _of_files_and_instances,
    )
    return {name: call for some in every for name, call in some(known).items()}


def _of_spaces(known: Known) -> dict[str, Call]:
    """Spaces."""
    corner = np.array([-1.0, -1.0])
    return {
        "Box": (px.Box, {"low": -1.0, "high": 1, "dim": 2, "open": False}),
        "Box of corners": (px.Box, {"low": corner, "high": -corner}),
        "Circles": (px.Circles, {"n": 2}),
        "Sphere": (px.Sphere, {"dim": 3}),
        "Planes": (px.Planes, {"reach": 1.0}),
        "Lines": (px.Lines, {"reach": 1}),
        "Product": (lambda a, b: px.Product(a, b), {"a": px.Sphere(3), "b": px.Circles(1)}),
    }


def _of_problems(known: Known) -> dict[str, Call]:
    """Problems and operators, by name, made or loaded."""
    return {
        "Problem.from_function": (
            px.Problem.from_function,
            {"function": square, "space": SIMPLE.space, "parameters": None, "name": "a"},
        ),
        "problem": (px.problem, {"name": "conic"}),
        "pretrained": (px.pretrained, {"name": "conic", "device": "cpu"}),
        "load": (px.load, {"path": known.folder / "operator.safetensors", "device": "cpu"}),
    }


def _of_solving(known: Known) -> dict[str, Call]:
    """Solving, by several methods and from several starts."""
    one = {"problem": known.conic, "tau": TAU}
    how = {"starts": 4, "seed": 0, "device": "cpu"}
    return {
        "solve": (px.solve, one | how | {"method": None, "unseen_level": 0.5, "fallback": False}),
        "solve by starts": (px.solve, one | how | {"starts": POINTS, "steps": 2}),
        "solve by lbfgs": (px.solve, one | how | {"method": "lbfgs", "steps": 2}),
        "solve by descent": (
            px.solve,
            one | how | {"method": "descent", "steps": 2, "rate": 0.1, "adam": True},
        ),
        "solve by others": (
            lambda method, **more: px.solve(**one, method=method, starts=2, **more),
            {"method": "safeguarded", "steps": 2, "lam": None, "operator": known.operator},
        ),
        "curve": (curve, one | how | {"method": "descent", "at": [0, 1, 2]}),
        "trace": (
            px.trace,
            {"problem": known.conic, "tau0": TAU, "tau1": TAU + 0.01, "samples": 2, "starts": 4}
            | {"method": "lbfgs", "seed": 0, "device": "cpu"},
        ),
        "differentiable": (px.differentiable, one | {"points": known.solutions.points[:, :2]}),
        "Problem.from_numpy": (
            lambda method="lbfgs", **given: px.solve(
                px.Problem.from_numpy(**given), method=method, starts=2, steps=1, device="cpu"
            ),
            {"function": _bowl, "space": SIMPLE.space, "name": "a", "vectorized": False},
        ),
    }


def _of_training(known: Known) -> dict[str, Call]:
    """Training."""
    return {
        "learn": (px.learn, {"problem": SIMPLE, "seed": 0, "lam": 1.0, **known.learn}),
        "learn a family": (
            px.learn,
            {"problem": known.conic, "rate": 0.01, "sampling": "pool", **known.learn, "out": "out"},
        ),
        "learn more": (
            px.learn,
            {"problem": SIMPLE, "rule": "gradient", "descents": 1, "near": 0.0, "encodes": 1}
            | {"precision": "fp32", "resume": False, "watch": None, **known.learn},
        ),
        "learn_swarm": (
            learn_swarm,
            {"problem": SIMPLE, "steps": 1, "rate": 0.01, "runs": 2, "unroll": 2, "seed": 0}
            | {"device": "cpu", "progress": False},
        ),
    }


def _of_operators(known: Known) -> dict[str, Call]:
    """What an operator can do."""
    return {
        "Operator.solve": (known.operator.solve, {"tau": TAU, "starts": 4, "seed": 0, "lam": None}),
        "Operator.solve by starts": (
            known.operator.solve,
            {"tau": TAU, "starts": POINTS, "steps": 3, "lam": known.operator.lam},
        ),
        "Operator": (known.operator, {"x": POINTS, "tau": TAU}),
        "Operator.stream": (
            lambda **given: [each.points for each in known.operator.stream(**given)],
            {"taus": np.stack((TAU, TAU)), "starts": 4, "steps": 2, "seed": 0, "lam": None},
        ),
        "Operator.bind": (known.operator.bind, {"tau": TAU, "problem": known.conic}),
        "Operator.save": (known.operator.save, {"path": "b.safetensors"}),
    }


def _of_answers(known: Known) -> dict[str, Call]:
    """What can be asked of solutions and optima."""
    one = {"problem": known.conic, "tau": TAU}
    return {
        "Solutions.unique": (
            known.solutions.unique,
            {"tolerance": 0.1, "value_tolerance": 0.1, "smallest_share": 0.0, "verify": True},
        ),
        "Solutions.save": (known.solutions.save, {"path": "b.npz"}),
        "Solutions.load": (
            px.Solutions.load,
            {"path": known.folder / "solutions.npz", "space": None},
        ),
        "Solutions.valued": (known.solutions.valued, {"problem": known.conic, "tau": TAU}),
        "Solutions.plot": (known.solutions.plot, {"path": "b.svg", "optima": None}),
        "Solutions[]": (functools.partial(_item, known.solutions), {"index": np.array([0])}),
        "Optima.reached_by": (known.optima.reached_by, {"smallest_share": 0.01}),
        "polish": (px.polish, one | {"points": known.solutions.points[:, :4], "steps": 2}),
        "certify": (px.certify, one | {"points": known.solutions.points[:, :4]}),
        "unseen": (px.unseen, {"hits": np.array([3, 2, 1, 1])}),
        "metrics.witnessed": (
            px.metrics.witnessed,
            {"found": POINTS, "truth": POINTS, "witnesses": POINTS, "deltas": np.array([0.1])}
            | {"threshold": None, "relative": False, "space": SIMPLE.space},
        ),
    }


def _of_measures(known: Known) -> dict[str, Call]:
    """Shapes, images, and what is measured."""
    return {
        "symmetries": (
            px.symmetries,
            {
                "shape": np.random.default_rng(0).normal(size=(80, 3)),
                "starts": 4,
                "tolerance": 0.001,
                "seed": 0,
                "axes": False,
            },
        ),
        "detect": (px.detect, {"images": np.zeros((8, 8, 3)), "starts": 4, "threshold": 0.5}),
        "advise": (advise, {"problem": SIMPLE, "operator": None, "lam": 1.0, "device": "cpu"}),
        "evaluate": (
            evaluate,
            {
                "problem": known.conic,
                "candidates": [("a", "operator", {})],
                "instances": 1,
                "starts": 4,
            }
            | {"witnesses": 4, "trials": 1, "deltas": np.array([0.1]), "seed": 0, "device": "cpu"}
            | {"reference": ("descent", {"steps": 2}), "thresholds": (None,)},
        ),
        "compare": (
            compare,
            {"problem": known.conic, "candidates": [("a", "operator", {})], "tau": TAU, "starts": 4}
            | {"witnesses": 4, "reference": ("descent", {"steps": 2}), "device": "cpu"},
        ),
    }


def _of_files_and_instances(known: Known) -> dict[str, Call]:
    """Files that are read, and values that check what they are given."""
    return {
        "report": (report, {"folder": known.folder, "output": "b.html"}),
        "read_image": (read_image, {"path": known.folder / "b.png", "side": 8}),
        "read_taus": (read_taus, {"path": known.folder / "taus.npy", "size": 6}),
        "graphs": (graphs, {"tau": np.array([[0.0, 1.0], [1.0, 0.0]])}),
        "a set": (Sets((-1.0,), (1.0,), 4).batch, {"tau": np.array([[0.5], [0.25]])}),
        "Maxcut": (Maxcut, {"vertices": 3, "most": 4}),
        "SparseHalf": (SparseHalf, {"matrix": np.eye(8)[:4], "measured": np.ones(4)}),
        "Coupling": (
            Coupling,
            {"blocks": 1, "width": 8, "activation": "silu", "gated": True, "bandwidth": 1.0},
        ),
    }


def _item(solutions: px.Solutions, index: Any) -> px.Solutions:
    """An index that does not fit is the error that Python has for that, in a sentence."""
    try:
        return solutions[index]
    except IndexError as error:
        raise InputError(str(error)) from None


def case(draw: Draw, prepared: Known, folder: Path) -> tuple[str, Act]:
    every = calls(prepared)
    name = str(draw.choice(list(every)))
    function, usual = every[name]
    given, words, alike = dict(usual), [], True
    for which in draw.choice(list(usual), draw.choice([1, 1, 1, 2]), replace=True):
        said, given[which], same = _odd(draw, which, usual[which])
        words, alike = [*words, f"{which} {said}"], alike and same
    return f"{name}: {', '.join(words)}", functools.partial(_act, function, given, usual, alike)


def _odd(draw: Draw, name: str, usual: Any) -> tuple[str, Any, bool]:
    """In words, another value, and whether it means the same as the usual one."""
    forms = isinstance(usual, np.ndarray) and usual.dtype.kind == "f"
    kind = draw.choice(["same", "other", "any"]) if forms else "any"
    if kind != "any":
        pool = SAME if kind == "same" else OTHER
        said = str(draw.choice(list(pool)))
        return said, pool[said](usual), kind == "same"
    while True:
        said = str(draw.choice(list(ANYTHING)))
        value = ANYTHING[said]()
        if not (name in LONG and _waits(value)):
            return f"= {said}", value, False


def _waits(value: Any) -> bool:
    """Whether it is a number that one would wait for."""
    try:
        return float(value) > 10
    except Exception:  # values are made to fail in any way there is
        return False


def _act(function: Callable[..., Any], given: dict[str, Any], usual: Any, alike: bool) -> None:
    inspect.signature(function).bind(**given)
    found = list(_numbers(function(**given)))
    finite(*found)
    if alike:
        for one, other in zip(found, _numbers(function(**usual)), strict=True):
            if not np.allclose(one, other, rtol=1e-4, atol=1e-5):
                raise WrongAnswerError("another answer to the same numbers")


def _numbers(answer: Any) -> Iterator[np.ndarray]:
    """What an answer holds that has to be finite."""
    if isinstance(answer, px.Solutions):
        yield from _numbers([answer.points, answer.values])
    elif isinstance(answer, px.Operator):
        yield from _numbers(list(answer.parameters()))
    elif isinstance(answer, torch.Tensor | np.ndarray):
        yield np.asarray(answer.detach() if isinstance(answer, torch.Tensor) else answer, float)
    elif isinstance(answer, list | tuple):
        for each in answer:
            yield from _numbers(each)
