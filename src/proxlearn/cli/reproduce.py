"""`proxlearn reproduce`: an experiment of the paper, or all of them, from training to figures."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from proxlearn.cli import options
from proxlearn.errors import InputError
from proxlearn.experiments import base as experiments
from proxlearn.experiments._shared import StoppedError
from proxlearn.experiments.base import PartsError
from proxlearn.show import terminal
from proxlearn.show.report import report

EXAMPLES = (
    "proxlearn reproduce conic --quick --out runs/reproduce-conic",
    "One part after the other, where a run has to be short:",
    "proxlearn reproduce detection --only looking,pooled --out runs/reproduce-detection",
    "proxlearn reproduce detection --only fn --out runs/reproduce-detection",
    "The paper's whole evaluation, and what goes beyond it:",
    "proxlearn reproduce --all --device cuda --out runs/reproduce-all",
)


def run(
    name: Annotated[
        str | None, Argument(metavar="NAME", help="such as conic, maxcut or peaks")
    ] = None,
    every: Annotated[bool, Option("--all", help="every experiment, one after the other")] = False,
    quick: Annotated[bool, Option("--quick", help="a small version, minutes on a CPU")] = False,
    out: options.Out = None,
    device: options.Device = "auto",
    resume: Annotated[bool, Option("--resume", help="keep what is there already")] = False,
    data: Annotated[
        Path | None,
        Option(help="your own: meshes for symmetry, images for detection; a folder or packed .npz"),
    ] = None,
    weights: Annotated[
        Path | None, Option(help="for detection: weights that the backbone begins with, a .pth")
    ] = None,
    only: Annotated[
        str | None,
        Option(
            metavar="PART,PART",
            help="for detection: run these parts alone; rows of others that OUT holds stay",
        ),
    ] = None,
) -> None:
    """Rerun an experiment of the paper, from training to figures and a table.

    With --all every experiment, each into a folder of its name, and one page of them all. One that
    fails does not keep the others from running: it is named at the end, with exit status 1. So it
    is with the parts of one, where it has some: a wrong name in --only lists them.
    """
    if (name is None) != every:
        raise InputError(
            f"Give the name of one experiment ({', '.join(experiments.names())}), or --all for "
            f"all of them{', not both' if every else ''}."
        )
    how: dict[str, Any] = {"quick": quick, "device": device, "resume": resume}
    if name is None:
        if data or weights or only is not None:
            raise InputError(
                "--data, --weights and --only are for one experiment: run it alone, into the "
                "folder of its name in OUT, and then the others with --all --out OUT --resume."
            )
        _every(out or Path("runs/reproduce-all"), how)
        return
    out = out or Path("runs") / f"reproduce-{name}"
    how |= {"data": data, "weights": weights, "only": _parts(only)}
    failed = None
    try:
        _one(name, out, how)
    except PartsError as error:
        failed = error
    page = report(out, out / "report.html", f"proxlearn: {name}", options.typed_command())
    terminal.say(f"Rows, figures and table.md are in {out}; to look at them all: {page}")
    if failed:
        terminal.complain(str(failed))
        raise typer.Exit(1)


def _parts(typed: str | None) -> tuple[str, ...]:
    """The names in --only; none where it is not given, which means all."""
    if typed is None:
        return ()
    if not (names := tuple(each.strip() for each in typed.split(",") if each.strip())):
        raise InputError("--only names no part: give at least one, or leave it out.")
    return names


def _one(name: str, out: Path, how: dict[str, Any]) -> None:
    """Run one experiment, and print its table."""
    terminal.say(experiments.about(name))
    if how["quick"]:
        terminal.say(f"Quick: {experiments.quick_leaves_out(name)}")
    try:
        folder = experiments.run(name, out, **how)
    except StoppedError as error:
        terminal.complain(str(error))
        raise typer.Exit(130) from None
    print((folder / "table.md").read_text())


def _every(out: Path, how: dict[str, Any]) -> None:
    """Run all of them, each into its own folder; those that fail are named at the end."""
    names, failed = experiments.names(), []
    for k, name in enumerate(names):
        terminal.say(f"{name} ({k + 1} of {len(names)})", "bold")
        try:
            if how["resume"] and experiments.is_done(name, out / name, how["quick"]):
                terminal.say(f"{out / name} is there already.")
            else:
                _one(name, out / name, how)
        except typer.Exit:  # by Ctrl-C, which is meant for all
            raise
        except Exception as error:  # whatever went wrong in hours of work, the rest goes on
            failed.append(name)
            terminal.complain(f"{name} failed: {error}")
    if len(failed) < len(names):
        title = "proxlearn: all experiments"
        page = report(out, out / "report.html", title, options.typed_command())
        terminal.say(f"Rows, figures and tables are in {out}; to look at them all: {page}")
    if failed:
        terminal.complain(
            f"{len(failed)} of {len(names)} experiments failed: {', '.join(failed)}. Run again "
            "with --resume to make them alone."
        )
        raise typer.Exit(1)
