"""`proxlearn solve`: the optima of one instance, or every solution of a file of instances."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proxlearn.cli.options import (
    Device,
    JsonFile,
    Name,
    OperatorFile,
    Seed,
    Tau,
    check_file,
    instances_for,
    one_or_more,
    operator_for,
    settings_for,
    write_json,
)
from proxlearn.errors import InputError
from proxlearn.show import screen

if TYPE_CHECKING:
    from proxlearn.answers.optima import Optima
    from proxlearn.answers.solutions import Solutions
    from proxlearn.common.batch import Batch
    from proxlearn.problems.base import Problem

EXAMPLES = (
    "proxlearn solve conic --tau 0.3,0,0.5,0,0,-1 --plot out.png",
    "proxlearn solve conic --polish --starts auto",
    "proxlearn solve springs --method lbfgs --starts 512 --json -",
    "proxlearn solve conic --taus taus.npy --npz solutions.npz",
)


def run(
    name: Name,
    tau: Tau = None,
    taus: Annotated[
        Path | None,
        typer.Option(help="a file of many instances, solved by the operator into --npz"),
    ] = None,
    operator: OperatorFile = None,
    starts: Annotated[
        str,
        typer.Option(
            help="how many points to start from; auto: as many as it takes to miss few optima, "
            "with --polish"
        ),
    ] = "1024",
    steps: Annotated[
        int | None,
        typer.Option(min=0, help="how often to apply the operator, or how many steps to take"),
    ] = None,
    lam: Annotated[
        str | None,
        typer.Option(
            help="proximal weight, for an operator trained for a range of them; several, "
            "separated by commas, are used one after another"
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="operator, safeguarded, arriving, descent, lbfgs, multistart, "
            "proximal_gradient, skglm or swarm"
        ),
    ] = "operator",
    polish: Annotated[
        bool,
        typer.Option(
            "--polish", help="move every solution to the exact optimum beside it, and certify it"
        ),
    ] = False,
    seed: Seed = 0,
    device: Device = "auto",
    plot: Annotated[Path | None, typer.Option(help="draw a picture: png, svg or pdf")] = None,
    json_file: JsonFile = None,
    npz: Annotated[Path | None, typer.Option(help="write all starts and solutions")] = None,
) -> None:
    """Find the optima of one instance and list the distinct ones; or solve a file of instances.

    A file of instances is a .npy with an array (instances, p), or a .csv or .txt with one tau per
    line.
    """
    from proxlearn.answers.solutions import SMALLEST_SHARE
    from proxlearn.problems import problem
    from proxlearn.solvers.solve import solve

    chosen, begin = problem(name), _starts(starts)
    _check_outputs(plot, json_file, npz)
    if taus:
        of_one = bool(plot or json_file or polish or lam or begin == "auto")
        into = _file_for_many(tau, method, of_one, npz)
        _solve_many(name, chosen, taus, into, operator, int(begin), steps, seed, device)
        return
    settings = settings_for(name, chosen, method, operator, device)
    settings |= {} if steps is None else {"steps": steps}
    if lam:
        if "operator" not in settings:
            raise InputError(f"--lam is for methods with an operator; {method!r} has none.")
        settings["lam"] = one_or_more("--lam", lam)
    instance = instances_for(chosen, tau, seed, 1)
    started = time.perf_counter()
    solutions = solve(chosen, instance, method, begin, seed, device, **settings)
    solutions = solutions.polished() if polish or begin == "auto" else solutions
    seconds = time.perf_counter() - started
    meant = solutions.rounded()
    every = meant.unique(smallest_share=0.0)
    optima = every.reached_by(SMALLEST_SHARE)
    if json_file != "-":
        screen.optima_table(optima)
    screen.say(_summary(meant, optima, method, seconds))
    _say_doubts(meant, every)
    if json_file:
        about = {"problem": chosen.name, "method": method, "starts": optima.starts, "seed": seed}
        write_json(json_file, about | {"tau": _as_list(meant.tau), "optima": optima.rows()})
    if npz:
        screen.say(f"Solutions: {solutions.save(npz)}")
    if plot:
        drawn = meant if meant.space == solutions.space else solutions
        screen.say(f"Picture: {drawn.plot(plot)}")


def _starts(text: str) -> int | str:
    """A number of starts, or `auto`."""
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise InputError(f"--starts {text} must be a whole number, or auto.") from None


def _check_outputs(plot: Path | None, json_file: str | None, npz: Path | None) -> None:
    """An error, before any work is done, if one of the files cannot be written."""
    from proxlearn.common.files import array_format
    from proxlearn.figures import draw

    for file in (plot, npz, json_file):
        check_file(file)
    if plot:
        draw.check_format(plot)
    if npz:
        array_format(npz)


def _summary(solutions: "Solutions", optima: "Optima", method: str, seconds: float) -> str:
    """How many optima there are, and what else is in the table."""
    count, inside = len(optima.certified()), int(solutions.inside.sum())
    said = (
        f"{count} distinct {'optimum' if count == 1 else 'optima'} from {optima.starts:,} starts "
        f"by {method} in {seconds:.3g} s; {inside:,} solutions are inside the space."
    )
    others = len(optima) - count
    return f"{said} {others} more listed: saddles or not converged." if others else said


def _say_doubts(solutions: "Solutions", every: "Optima") -> None:
    """What may have been missed, and why an operator's answer may be wrong."""
    from proxlearn.answers.solutions import DOUBTS
    from proxlearn.answers.unseen import unseen

    screen.say(f"Missed? {unseen(every.certified().hits.tolist())}")
    if solutions.doubts is not None and solutions.doubts.any():
        reason = DOUBTS[int(solutions.doubts[0])]
        screen.say(f"Do not trust this: {reason}. Try --method lbfgs.")


def _as_list(tau: "Batch | None") -> list[float] | None:
    """The numbers of a tau; None where it is something else."""
    from torch import Tensor

    return tau[0].tolist() if isinstance(tau, Tensor) and tau.ndim == 2 else None


def _file_for_many(tau: str | None, method: str, of_one: bool, npz: Path | None) -> Path:
    """Where the solutions of --taus go; an error if it comes with options for one instance."""
    if tau is not None:
        raise InputError("Give --tau for one instance or --taus for a file of them, not both.")
    if method != "operator":
        raise InputError(f"--taus is for the method 'operator', not for {method!r}: use --tau.")
    if of_one:
        raise InputError(
            "--plot, --json, --polish, --lam and --starts auto are for one instance: leave them "
            "out with --taus, or use --tau."
        )
    if npz is None:
        raise InputError("The solutions of --taus go to a file: give --npz solutions.npz.")
    return npz


def _solve_many(
    name: str,
    problem: "Problem",
    file: Path,
    npz: Path,
    operator: Path | None,
    starts: int,
    steps: int | None,
    seed: int,
    device: str,
) -> None:
    """Solve a file of instances, on as many processes as were launched."""
    from proxlearn.common.devices import pick_device
    from proxlearn.gpu.parallel import processes
    from proxlearn.operators import many

    size = screen.tau_size(problem)
    if not size.isdigit():
        raise InputError(
            f"--taus is for rows of numbers, and {problem.name!r} takes no numbers as tau: give "
            "one instance with --tau, or several in Python, px.solve(problem, [...])."
        )
    with processes(pick_device(device)) as process:
        started = time.perf_counter()
        taus = many.read_taus(file, int(size))
        trained = operator_for(name, problem, operator, device)
        many.solve_many(trained, taus, npz, process, starts, steps, seed)
        seconds, found = time.perf_counter() - started, len(taus) * starts
        screen.say(
            f"{len(taus):,} taus from {starts:,} starts each in {seconds:.3g} s: "
            f"{found / seconds:,.0f} solutions a second. They are in {npz}."
        )
