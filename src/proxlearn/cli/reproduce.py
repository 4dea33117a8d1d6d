"""`proxlearn reproduce`: an experiment of the paper, from training to figures."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from proxlearn.cli import options
from proxlearn.experiments import base as experiments
from proxlearn.show import terminal
from proxlearn.show.report import report

EXAMPLES = ("proxlearn reproduce conic --quick --out runs/reproduce-conic",)


def run(
    name: Annotated[str, Argument(metavar="NAME", help="such as conic, maxcut or peaks")],
    quick: Annotated[bool, Option("--quick", help="a small version, minutes on a CPU")] = False,
    out: options.Out = None,
    device: options.Device = "auto",
    resume: Annotated[bool, Option("--resume", help="keep what is trained already")] = False,
    data: Annotated[
        Path | None,
        Option(help="your own: meshes for symmetry, images for detection; a folder or packed .npz"),
    ] = None,
    weights: Annotated[
        Path | None, Option(help="for detection: weights that the backbone begins with, a .pth")
    ] = None,
) -> None:
    """Rerun an experiment of the paper, from training to figures and a table."""
    terminal.say(experiments.about(name))
    if quick:
        terminal.say(f"Quick: {experiments.quick_leaves_out(name)}")
    out = out or Path("runs") / f"reproduce-{name}"
    folder = experiments.run(name, out, quick, device, resume, data=data, weights=weights)
    page = report(folder, folder / "report.html", f"proxlearn: {name}", options.typed_command())
    print((folder / "table.md").read_text())
    terminal.say(f"Rows, figures and table.md are in {folder}; to look at them all: {page}")
