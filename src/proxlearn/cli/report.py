"""`proxlearn report`: one page of all that a folder holds."""

from pathlib import Path
from typing import Annotated

import typer

from proxlearn.cli.options import check_file, typed_command
from proxlearn.show import screen

EXAMPLES = ("proxlearn report runs/ -o report.html",)


def run(
    folder: Annotated[
        Path, typer.Argument(help="folder with results (*.jsonl) and pictures (*.png)")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="the file to write the page to")
    ] = Path("report.html"),
) -> None:
    """Make one self-contained HTML page of the results and pictures in a folder and below it."""
    from proxlearn.show.report import report

    check_file(output)
    screen.say(f"Report: {report(folder, output, command=typed_command())}")
