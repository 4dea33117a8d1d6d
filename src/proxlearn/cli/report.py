"""`proxlearn report`: one page of all that a folder holds."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from proxlearn.cli import options
from proxlearn.show import terminal
from proxlearn.show.report import report

EXAMPLES = ("proxlearn report runs/ -o report.html",)


def run(
    folder: Annotated[
        str, Argument(metavar="FOLDER", help="folder with results (*.jsonl) and pictures (*.png)")
    ],
    output: Annotated[Path, Option("--output", "-o", help="the page")] = Path("report.html"),
) -> None:
    """Make one self-contained HTML page of the results and pictures in a folder and below it."""
    options.check_file(output)
    terminal.say(
        f"Report: {report(options.path_typed(folder), output, command=options.typed_command())}"
    )
