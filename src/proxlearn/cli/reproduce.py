"""`proxlearn reproduce`: an experiment of the paper, from training to figures."""

from pathlib import Path
from typing import Annotated

import typer

from proxlearn.cli.options import Device, typed_command
from proxlearn.show import screen

EXAMPLES = ("proxlearn reproduce conic --quick --out runs/reproduce-conic",)


def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="such as conic, maxcut or peaks")],
    quick: Annotated[
        bool, typer.Option("--quick", help="a small version that takes minutes on a CPU")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="folder to write to (default: runs/reproduce-NAME)")
    ] = None,
    device: Device = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="keep the operators that are trained already")
    ] = False,
) -> None:
    """Rerun an experiment of the paper, from training to figures and a table."""
    from proxlearn.experiments import base as experiments
    from proxlearn.show.report import report

    screen.say(experiments.about(name))
    if quick:
        screen.say(f"Quick: {experiments.quick_leaves_out(name)}")
    folder = experiments.run(name, out or Path("runs") / f"reproduce-{name}", quick, device, resume)
    page = report(folder, folder / "report.html", f"proxlearn: {name}", typed_command())
    print((folder / "table.md").read_text())
    screen.say(f"Rows, figures and table.md are in {folder}; to look at them all: {page}")
