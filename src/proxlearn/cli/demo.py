"""`proxlearn demo`: a gallery of conics, in a minute."""

from pathlib import Path
from typing import Annotated

from typer import Option

from proxlearn.cli import options
from proxlearn.problems import problem
from proxlearn.show import terminal
from proxlearn.show.demo import demo

EXAMPLES = ("proxlearn demo --out demo",)


def run(
    out: Annotated[Path, Option(help="folder for the pictures and the page")] = Path("demo"),
    operator: options.OperatorFile = None,
    device: options.Device = "auto",
) -> None:
    """Solve a gallery of conics with the shipped operator, and compare it with other methods."""
    trained = options.operator_for("conic", problem("conic"), operator, device)
    rows, page = demo(out, trained, device, options.typed_command())
    terminal.rows_table(rows)
    terminal.say(f"Pictures and tables: open {page}")
