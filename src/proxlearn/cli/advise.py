"""`proxlearn advise`: which proximal weight to choose."""

from typing import Annotated

from typer import Option

from proxlearn.cli import options
from proxlearn.measure.advise import advise
from proxlearn.operators.shipped import available
from proxlearn.problems import problem
from proxlearn.show import terminal

EXAMPLES = ("proxlearn advise cosine --lam 10", "proxlearn advise conic --json -")


def run(
    name: options.Name,
    operator: options.OperatorFile = None,
    lam: Annotated[
        float | None, Option(help="proximal weight (default: the operator's or the problem's)")
    ] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    json_file: options.JsonFile = None,
) -> None:
    """Say which lam theorem 3.1 asks for, what it costs, and how exact an operator is."""
    chosen = problem(name)
    options.check_file(json_file)
    ready = operator or chosen.name in available()
    trained = options.operator_for(name, chosen, operator, device) if ready else None
    advice = advise(chosen, trained, lam, seed, device)
    if json_file != "-":
        terminal.advice_table(advice)
        for sentence in advice.sentences():
            terminal.say(sentence)
    if json_file:
        options.write_json(json_file, advice.as_dict())
