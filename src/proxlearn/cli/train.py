"""`proxlearn train`: `px.learn` into a folder. Its options are the fields of `Training`."""

import shlex
import sys
import warnings
from collections.abc import Callable
from dataclasses import Field, fields
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer
from typer import Option

from proxlearn.cli import options
from proxlearn.common.files import usual_folder
from proxlearn.errors import InputError, PoorOperatorWarning
from proxlearn.problems import problem
from proxlearn.show import terminal
from proxlearn.training import checkpoint
from proxlearn.training.learn import learn
from proxlearn.training.settings import Training

EXAMPLES = (
    "proxlearn train springs --seconds 120 --out runs/springs",
    "proxlearn train springs --seconds 120 --out runs/springs --resume",
    "proxlearn train springs --seconds 600 --save-every 120 --out runs/springs --resume",
    "proxlearn train conic --lam 0.1,10",
)
PLAIN = [kind | None for kind in (bool, int, float, str)]  # types that an option can have
POOR = 3  # the exit status where the operator is poor
MORE_NAMES = {"architecture": ("--architecture", "--preset")}


def options_from(settings: type) -> Callable[[Callable], Callable]:
    """Put an option for every field of a dataclass in place of a command's `**settings`."""
    kinds = get_type_hints(settings)

    def option(field: Field) -> Parameter:
        kind = kinds[field.name] if kinds[field.name] | None in PLAIN else str | None
        about = Option(*MORE_NAMES.get(field.name, ()), help=field.metadata["help"])
        kind = Annotated[kind, about]
        return Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=kind)

    def with_options(command: Callable) -> Callable:
        *own, _ = signature(command).parameters.values()
        every = [*own, *map(option, fields(settings))]
        command.__signature__ = Signature(every)  # pyright: ignore[reportFunctionMemberAccess]
        return command

    return with_options


@options_from(Training)
def run(
    name: options.Name,
    out: options.Out = None,
    resume: Annotated[bool, Option("--resume", help="go on from the last checkpoint")] = False,
    device: options.Device = "auto",
    **settings: Any,
) -> None:
    """Train an operator, with a progress bar and checkpoints. Ctrl-C stops it, --resume goes on.

    A training can be made longer by --resume with more --steps or --seconds; else its settings and
    its problem have to be the same. In the end it is judged on held-out instances; the exit status
    is 3 where it is poor.
    """
    chosen = problem(name)
    folder = out or usual_folder(chosen.name)
    if (folder / checkpoint.NAME).exists() and not resume:
        raise InputError(
            f"{folder} already holds a training: go on with --resume, or choose another --out."
        )
    settings["lam"] = options.one_or_more("--lam", settings["lam"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PoorOperatorWarning)  # said below
        try:
            operator = learn(chosen, out=folder, resume=resume, device=device, **settings)
        except SystemExit:  # told to end
            _say_how_to_go_on()
            raise
    if operator.provenance.get("interrupted"):
        _say_how_to_go_on()
        raise typer.Exit(130)
    file = folder / "operator.safetensors"
    terminal.say(f"The operator is {file}. Next:")
    terminal.say(f"  {options.how_to_use(name, chosen, file, folder / 'solutions.png')}")
    if operator.doubtful:
        terminal.say(f"But do not trust it: {operator.doubtful}.")
        raise typer.Exit(POOR)


def _say_how_to_go_on() -> None:
    again = [each for each in sys.argv[1:] if each != "--resume"]
    terminal.say(f"Go on with: {shlex.join(['proxlearn', *again, '--resume'])}")
