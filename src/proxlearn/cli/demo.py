"""`proxlearn demo`: a gallery of conics, in a minute."""

from pathlib import Path
from typing import Annotated

import typer

from proxlearn.cli.options import Device, OperatorFile, operator_for, typed_command
from proxlearn.show import screen

EXAMPLES = ("proxlearn demo --out demo",)


def run(
    out: Annotated[Path, typer.Option(help="folder for the pictures and the page")] = Path("demo"),
    operator: OperatorFile = None,
    device: Device = "auto",
) -> None:
    """Solve a gallery of conics with the shipped operator, and compare it with other methods."""
    from proxlearn.problems import problem
    from proxlearn.show.demo import demo

    trained = operator_for("conic", problem("conic"), operator, device)
    rows, page = demo(out, trained, device, typed_command())
    screen.rows_table(rows)
    screen.say(f"Pictures and tables: open {page}")
