"""The command line: `proxlearn --help`. A command is a file here, with `run`, whose arguments are
its options, and `EXAMPLES` for its help."""

import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from proxlearn.cli import (
    advise,
    bring,
    compare,
    demo,
    detect,
    evaluate,
    export,
    play,
    problems,
    report,
    reproduce,
    solve,
    symmetry,
    trace,
    train,
)
from proxlearn.common.checks import said
from proxlearn.common.contents import brief
from proxlearn.errors import ProxlearnError
from proxlearn.gpu.parallel import this_process
from proxlearn.show import terminal
from proxlearn.version import __version__

USAGE_ERROR: Any = typer.BadParameter.__base__  # of click, which newer versions of typer contain


class Commands(TyperGroup):
    """The commands; an error in how one is called repeats no more than can be read."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except USAGE_ERROR as error:
            error.message = brief(error.message)
            raise


app = typer.Typer(
    cls=Commands,
    help="Find all the optima of a family of objectives with a learned proximal operator.",
    epilog="Example:\n\nproxlearn solve conic --tau 0.3,0,0.5,0,0,-1 --plot out.png",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def paragraphs(text: str) -> str:
    """A docstring without the line breaks inside its paragraphs, which a screen breaks anew."""
    return "\n\n".join(" ".join(each.split()) for each in text.split("\n\n"))


# In the order in which --help lists them.
COMMANDS = (problems, bring, train, solve, trace, symmetry, detect, play)
COMMANDS += (evaluate, compare, advise, export, report, reproduce, demo)
for each in COMMANDS:
    name = each.__name__.rpartition(".")[2]
    heading = "Examples:" if len(each.EXAMPLES) > 1 else "Example:"
    examples = "\n\n".join((heading, *each.EXAMPLES))
    app.command(name, help=paragraphs(each.run.__doc__ or ""), epilog=examples)(each.run)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        print(f"proxlearn {__version__}")
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command: an error is one red line and exit code 2, a warning one yellow line.
    Of several processes on one job, the first one prints."""
    shown: set[str] = set()  # a range is checked more than once, but said once

    def show(message: Warning | str, *_: Any) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            terminal.say(str(message), "yellow")

    output = sys.stdout if this_process().first else StringIO()
    with warnings.catch_warnings(), redirect_stdout(output):
        warnings.showwarning = show
        try:
            app(arguments)
        except ProxlearnError as error:
            terminal.complain(str(error))
            raise SystemExit(2) from None
        except KeyboardInterrupt:  # before there is a command to hear it
            terminal.complain("Stopped.")
            raise SystemExit(128 + signal.SIGINT) from None
        except OSError as error:  # such as a name that is too long, wherever it is used
            terminal.complain(f"Cannot use {said(error.filename)}: {error.strerror}.")
            raise SystemExit(2) from None
