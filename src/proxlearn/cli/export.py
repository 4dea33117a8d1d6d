"""`proxlearn export`: an operator as files for runtimes without proxlearn."""

import json
from pathlib import Path
from typing import Annotated

from typer import Argument

from proxlearn.cli import options
from proxlearn.operators.export import check_format
from proxlearn.problems import problem
from proxlearn.show import terminal

EXAMPLES = (
    "proxlearn export conic conic.onnx",
    "proxlearn export wells.py wells.pt2 --operator runs/wells",
)


def run(
    name: options.Name,
    file: Annotated[
        Path, Argument(metavar="FILE", help="what to write: .onnx, or .pt2 for torch.export")
    ],
    operator: options.OperatorFile = None,
) -> None:
    """Write an operator as graphs that run without proxlearn, in a browser, say.

    FILE is one application. Beside it are what is worked out once per tau (FILE.prepare), when a
    point has arrived and the objective, where there are such, and a JSON file that says what is
    where.
    """
    options.check_file(file)
    check_format(file)
    trained = options.operator_for(name, problem(name), operator, "cpu")
    said = trained.export(file)
    about = json.loads(said.read_text())
    for graph, each in about["graphs"].items():
        terminal.say(
            f"{graph}: {said.with_name(each['file'])}, from {', '.join(each['inputs'])} to "
            f"{', '.join(each['outputs'])}"
        )
    for graph, why in about["left_out"].items():
        terminal.say(f"No {graph}: {why}")
    terminal.say(f"What is where: {said}")
