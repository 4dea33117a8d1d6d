"""The operators shipped with the package, one file for each problem that has one."""

from importlib.resources import files
from pathlib import Path

from proxlearn.errors import UnknownNameError
from proxlearn.operators.load import load
from proxlearn.operators.operator import Operator
from proxlearn.problems import problem

WEIGHTS = Path(str(files("proxlearn.operators"))) / "weights"


def shipped() -> dict[str, Path]:
    """The file of each shipped operator, by problem name."""
    return {path.stem: path for path in sorted(WEIGHTS.glob("*.safetensors"))}


def pretrained(name: str, device: str = "auto") -> Operator:
    """The operator shipped for a built-in problem, with the problem at hand for values."""
    available = shipped()
    if name not in available:
        raise UnknownNameError("shipped operator for", name, available)
    operator = load(available[name], device)
    operator.problem = problem(name)
    return operator
