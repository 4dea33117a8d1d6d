"""`proxlearn solve`: the optima of one instance, or every solution of a file of instances."""

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

from torch import Tensor
from typer import Option

from proxlearn.answers.optima import Optima
from proxlearn.answers.solution_files import array_format
from proxlearn.answers.solutions import Solutions
from proxlearn.answers.table import SHOWN
from proxlearn.answers.unseen import unseen
from proxlearn.calculus.loop import progress_shown
from proxlearn.cli import options
from proxlearn.common.batch import Batch, vector_of
from proxlearn.common.contents import brief
from proxlearn.errors import InputError
from proxlearn.figures import draw
from proxlearn.figures.animation import animate, check_animated
from proxlearn.gpu.devices import pick_device
from proxlearn.gpu.parallel import processes
from proxlearn.operators import taus_file as many
from proxlearn.problems import problem
from proxlearn.problems.base import Problem
from proxlearn.show import terminal
from proxlearn.solvers.base import solver, solvers
from proxlearn.solvers.solve import curve, solve, usual_method

EXAMPLES = (
    "proxlearn solve conic --tau 0.3,0,0.5,0,0,-1 --plot out.png",
    "proxlearn solve peaks --gif out.gif --starts 400",
    "proxlearn solve conic --polish --starts auto",
    "proxlearn solve springs --method lbfgs --starts 512 --json -",
    "proxlearn solve conic --taus taus.npy --npz solutions.npz",
)

MOST_SHOWN = 30  # steps of an animation


def run(
    name: options.Name,
    tau: options.Tau = None,
    taus: Annotated[
        Path | None, Option(help="a file of many instances, whose solutions go to --npz")
    ] = None,
    operator: options.OperatorFile = None,
    starts: Annotated[
        str, Option(help="how many points to start from; auto: until few optima are missed")
    ] = "1024",
    steps: Annotated[
        int | None, Option(min=0, help="applications of the operator, or steps of the method")
    ] = None,
    lam: Annotated[
        str | None, Option(help="proximal weight, if trained for a range; 10,1,0.1 is a schedule")
    ] = None,
    method: Annotated[
        str | None,
        Option(
            help=f"one of {', '.join(solvers.names())} (default: operator where there is one, "
            "else lbfgs)"
        ),
    ] = None,
    falling: Annotated[
        bool, Option("--falling", help="a rate of descent that falls to 0: for kinked objectives")
    ] = False,
    polish: Annotated[
        bool, Option("--polish", help="move solutions onto the optima beside them, and certify")
    ] = False,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    plot: Annotated[Path | None, Option(help="draw a picture: png, svg or pdf")] = None,
    gif: Annotated[Path | None, Option(help="animate how the points go; in 2 dimensions")] = None,
    json_file: options.JsonFile = None,
    npz: Annotated[Path | None, Option(help="write every start and solution")] = None,
) -> None:
    """Find the optima of one instance and list the distinct ones; or solve a file of instances.

    A file of instances is an array (instances, p) in a .npy, or a .csv or .txt, one tau a line.
    """
    chosen, begin = problem(name), _starts(starts)
    for file in (plot, gif, npz, json_file):
        options.check_file(file)
    if plot:
        draw.check_format(plot)
    if gif:
        check_animated(chosen, gif)
    if npz:
        array_format(npz)
    if taus:
        _check_many(chosen, tau, bool(plot or gif or json_file or begin == "auto"), npz)
    only_seen = tau is not None and chosen.observes_part  # as a picture, without its boxes
    method = method or ("operator" if only_seen else _usual_method(name, chosen, operator))
    settings = options.settings_for(name, chosen, method, operator, device)
    settings |= {} if steps is None else {"steps": steps}
    settings |= {"falling": True} if falling else {}
    if lam:
        if "operator" not in settings:
            raise InputError(f"--lam is for methods with an operator; {method!r} has none.")
        settings["lam"] = options.one_or_more("--lam", lam)
    how: dict[str, Any] = {"method": method, "seed": seed, "device": device, **settings}
    if taus and npz:
        _solve_many(chosen, taus, npz, int(begin), polish, how)
        return
    instance = options.instances_for(chosen, tau, seed, 1)
    started = time.perf_counter()
    with nullcontext() if begin == "auto" else progress_shown(f"{chosen.name} by {method}"):
        solutions = solve(chosen, instance, starts=begin, **how)
    if polish and begin != "auto":  # which is polished already
        solutions = solutions.polished()
    seconds = time.perf_counter() - started
    meant = solutions.rounded()
    doubt = meant.doubt or getattr(settings.get("operator"), "doubtful", None)
    optima = _show_optima(meant, method, seconds, doubt, table=json_file != "-")
    if json_file:
        about = {"problem": chosen.name, "method": method, "starts": optima.starts, "seed": seed}
        told = {"tau": vector_of(meant.tau), "doubt": doubt, "optima": optima.rows()}
        options.write_json(json_file, about | told)
    if npz:
        terminal.say(f"Solutions: {solutions.save(npz)}")
    if plot:
        terminal.say(f"Picture: {meant.plot(plot, optima)}")
    if gif:
        followed, what = _steps(chosen, instance, solutions, how)
        terminal.say(f"Animation: {animate(chosen, instance, followed, gif, optima, what)}")


def _steps(
    problem: Problem, instance: Any, found: Solutions, how: dict[str, Any]
) -> tuple[dict[int, Solutions], str]:
    """Where the points of solutions were after some of the steps that were made, most of them
    early, and what a step is called."""
    if how["method"] == "operator" and found.arrived is not None:
        how = how | {"method": "arriving"}  # which can be followed
    if found.applications is not None:
        last = int(found.applications.max())
    else:
        settings = {k: v for k, v in how.items() if k not in ("method", "seed", "device")}
        last = solver(how["method"], **settings).steps  # pyright: ignore[reportAttributeAccessIssue]
    shown = min(last, MOST_SHOWN)
    at = sorted(
        {round(last * (k / shown) ** (1 if last == shown else 2)) for k in range(shown + 1)}
    )
    every = curve(problem, instance, at=at, starts=found.starts, **how)
    return dict(zip(at, every)), "application" if options.learned(how["method"]) else "step"


def _starts(text: str) -> int | str:
    if text != "auto" and not (text.isdecimal() and int(text)):
        raise InputError(f"--starts must be a whole number, 1 or more, or auto, not {brief(text)}.")
    return text if text == "auto" else int(text)


def _show_optima(
    solutions: Solutions, method: str, seconds: float, doubt: str | None, table: bool
) -> Optima:
    """The distinct optima of one instance, shown and returned, after what speaks against them."""
    if doubt:
        otherwise = solutions.doubt and solutions.values is not None  # a card says what to do
        terminal.say(f"Do not trust this: {doubt}.{' Try --method lbfgs.' if otherwise else ''}")
    listed, inside = solutions.unique(), solutions.inside.sum().item()
    if table:
        terminal.optima_table(listed)
        if (count := len(listed)) > SHOWN:
            terminal.say(f"... and {count - SHOWN} more: --json FILE lists all {count}.")
    optima = len(listed)
    terminal.say(
        f"{optima} distinct {'optimum' if optima == 1 else 'optima'} by {method} in {seconds:.3g} "
        f"s; {inside:,} of {listed.starts:,} starts ended inside the space."
    )
    if listed.said_of_the_rest:
        terminal.say(f"{listed.said_of_the_rest}: they ended at no optimum.")
    if not doubt:
        terminal.say(f"Missed? {unseen(listed)}")
    return listed


def _usual_method(name: str, problem: Problem, operator: Path | None) -> str:
    """The method where none is asked for; said where it is not the operator."""
    method = usual_method(problem, operator)
    if method != "operator":
        terminal.say(
            f"No operator is shipped for {brief(problem.name)!r}, so it is solved by L-BFGS. To "
            f"have one: `{options.how_to_train(name, problem)}`."
        )
    return method


def _check_many(problem: Problem, tau: str | None, of_one: bool, npz: Path | None) -> None:
    """An error if --taus comes with options for one instance, or cannot be used."""
    kind = terminal.tau_size(problem)
    if not kind.isdigit():
        takes = "no tau: leave --taus out." if kind == "none" else f"a {kind}: use --tau FILE."
        only = "--taus works only for problems whose tau is a vector"
        raise InputError(f"{only}; {problem.name!r} takes {takes}")
    if tau is not None:
        raise InputError("Give --tau for one instance or --taus for a file of them, not both.")
    if of_one:
        raise InputError(
            "--plot, --gif, --json and --starts auto are for one instance: leave them out with "
            "--taus, or use --tau."
        )
    if npz is None:
        raise InputError("The solutions of --taus go to a file: give --npz solutions.npz.")


def _solve_many(
    problem: Problem, file: Path, npz: Path, starts: int, polish: bool, how: dict[str, Any]
) -> None:
    """Solve a file of instances by any method, on all processes."""

    def solved(tau: Batch, points: Tensor) -> Solutions:
        found = solve(problem, tau, starts=points, **how)
        return found.polished() if polish else found

    with processes(pick_device(how["device"])) as process:
        started = time.perf_counter()
        taus = many.read_taus(file, int(terminal.tau_size(problem)))
        many.solve_many(solved, problem, taus, npz, process, starts, how["seed"])
        seconds, found = time.perf_counter() - started, len(taus) * starts
        terminal.say(
            f"{len(taus):,} tau{'s' * (len(taus) > 1)} from {starts:,} starts each by "
            f"{how['method']} in {seconds:.3g} s: {found / seconds:,.0f} solutions a second. They "
            f"are in {npz}."
        )
