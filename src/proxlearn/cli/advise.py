"""`proxlearn advise`: which proximal weight to choose."""

from typing import Annotated

import typer

from proxlearn.cli.options import (
    Device,
    JsonFile,
    Name,
    OperatorFile,
    Seed,
    check_file,
    operator_for,
    write_json,
)
from proxlearn.show import screen

EXAMPLES = ("proxlearn advise cosine --lam 10", "proxlearn advise conic --json -")


def run(
    name: Name,
    operator: OperatorFile = None,
    lam: Annotated[
        float | None,
        typer.Option(help="proximal weight (default: the operator's, or else the problem's)"),
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    json_file: JsonFile = None,
) -> None:
    """Say which lam theorem 3.1 asks for, what it costs, and how exact an operator is."""
    from proxlearn.measure.advise import advise
    from proxlearn.operators.shipped import shipped
    from proxlearn.problems import problem

    chosen = problem(name)
    check_file(json_file)
    ready = operator or chosen.name in shipped()
    trained = operator_for(name, chosen, operator, device) if ready else None
    advice = advise(chosen, trained, lam, seed, device)
    if json_file != "-":
        screen.advice_table(advice)
        for sentence in advice.sentences():
            screen.say(sentence)
    if json_file:
        write_json(json_file, advice.as_dict())
