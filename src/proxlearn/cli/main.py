"""The command line: `proxlearn --help`. Every command is a thin wrapper of a function of the
library; what is heavy is imported where it is used.
"""

import json
import shlex
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from proxlearn.errors import InputError, ProxlearnError
from proxlearn.gpu.parallel import this_process
from proxlearn.show import screen

if TYPE_CHECKING:
    from proxlearn.answers.optima import Optima
    from proxlearn.answers.solutions import Solutions
    from proxlearn.common.batch import Batch
    from proxlearn.common.provenance import Row
    from proxlearn.operators.operator import Operator
    from proxlearn.problems.base import Problem
    from proxlearn.training.session import Report

app = typer.Typer(
    help="Find all the optima of a family of objectives with a learned proximal operator.",
    epilog="Example:\n\nproxlearn solve conic --tau 0.3,0,0.5,0,0,-1 --plot out.png",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

LEARNED = ("operator", "safeguarded", "arriving")  # the methods that apply a trained operator

Name = Annotated[
    str, typer.Argument(metavar="PROBLEM", help="a built-in problem, or the path of your own .py")
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda")]
Seed = Annotated[int, typer.Option(help="fixes everything that is drawn at random")]
OperatorFile = Annotated[
    Path | None, typer.Option("--operator", help="a trained operator; default: the shipped one")
]
Tau = Annotated[
    str | None, typer.Option(help="numbers with commas, or a file; default: a random test instance")
]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command: an error is one red line and exit code 2, a warning one yellow line.

    Of several processes on one job, the first one prints.
    """
    shown: set[str] = set()  # a range is checked more than once, but said once

    def show(message: Warning | str, *_: Any) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            screen.say(str(message), "yellow")

    output = sys.stdout if this_process().first else StringIO()
    with warnings.catch_warnings(), redirect_stdout(output):
        warnings.showwarning = show
        try:
            app(arguments)
        except ProxlearnError as error:
            screen.complain(str(error))
            raise SystemExit(2) from None


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="and nothing else")] = False):
    if version:
        from proxlearn.version import __version__

        print(f"proxlearn {__version__}")
        raise typer.Exit


@app.command(epilog="Example:\n\nproxlearn problems")
def problems() -> None:
    """List the built-in problems."""
    from proxlearn.operators.shipped import shipped
    from proxlearn.problems import names, problem

    table = Table("name", "what it is", "space", "size of tau", "pretrained", box=None)
    for name in names():
        each = problem(name)
        about = (sys.modules[type(each).__module__].__doc__ or "").strip().splitlines()[0]
        pretrained = "yes" if name in shipped() else "no"
        space, size = screen.space_words(each.space), screen.tau_size(each)
        table.add_row(name, escape(about), escape(space), size, pretrained)
    screen.show(table)


@app.command(
    epilog="Example:\n\nproxlearn train springs --seconds 120 --out runs/springs\n\n"
    "proxlearn train springs --seconds 120 --out runs/springs --resume"
)
def train(
    name: Name,
    out: Annotated[Path | None, typer.Option(help="folder; default: runs/PROBLEM")] = None,
    steps: Annotated[
        int | None, typer.Option(help="length in steps; default: 20,000, on a CPU 3,000")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="length in seconds, instead")] = None,
    lam: Annotated[
        str | None, typer.Option(help="proximal weight, or a range: 0.1,10; default: estimated")
    ] = None,
    rule: Annotated[str | None, typer.Option(help="proximal (POL) or gradient (GOL)")] = None,
    sampling: Annotated[str | None, typer.Option(help="pool, or unfold as in the paper")] = None,
    depth: Annotated[int | None, typer.Option(help="how many applications deep to sample")] = None,
    instances: Annotated[int | None, typer.Option(help="instances in a step")] = None,
    points: Annotated[int | None, typer.Option(help="points for each of them")] = None,
    rate: Annotated[float | None, typer.Option(help="Adam's largest learning rate")] = None,
    preset: Annotated[str | None, typer.Option(help="network: default or paper")] = None,
    precision: Annotated[
        str | None, typer.Option(help="of the network's products: fp32, tf32 or bf16")
    ] = None,
    applications: Annotated[
        int | None, typer.Option(help="of the finished operator; default: till it settles")
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="go on from the checkpoint")] = False,
) -> None:
    """Train an operator: live progress, checkpoints, and --resume after an interruption."""
    from proxlearn.problems import problem
    from proxlearn.training import checkpoint

    chosen = problem(name)
    folder = out or Path("runs") / chosen.name
    if (folder / checkpoint.NAME).exists() and not resume:
        raise InputError(
            f"{folder} already holds a training: go on with --resume, or choose another --out."
        )
    weights = _numbers("--lam", lam)
    settings = {
        "steps": steps,
        "seconds": seconds,
        "lam": weights[0] if len(weights) == 1 else weights or None,
        "rule": rule,
        "sampling": sampling,
        "depth": depth,
        "instances": instances,
        "points": points,
        "rate": rate,
        "architecture": preset,
        "precision": precision,
        "applications": applications,
        "seed": seed,
    }
    given = {key: value for key, value in settings.items() if value is not None}
    last = _train(chosen, folder, resume, device, given)
    if last is None or last.spent < 1:
        again = [each for each in sys.argv[1:] if each != "--resume"]
        screen.say(f"Go on with: {shlex.join(['proxlearn', *again, '--resume'])}")
        raise typer.Exit(130)
    file = folder / "operator.safetensors"
    screen.say(f"The operator is {file}. Next:")
    screen.say(f"  proxlearn solve {name} --operator {file} --plot {folder}/solutions.png")


@app.command(
    epilog="Example:\n\nproxlearn solve conic --tau 0.3,0,0.5,0,0,-1 --plot out.png\n\n"
    "proxlearn solve conic --polish --starts auto\n\n"
    "proxlearn solve springs --method lbfgs --starts 512 --json -\n\n"
    "proxlearn solve conic --taus taus.npy --npz solutions.npz"
)
def solve(
    name: Name,
    tau: Tau = None,
    taus: Annotated[
        Path | None, typer.Option(help="many, by the operator, into --npz: .npy, .csv or .txt")
    ] = None,
    operator: OperatorFile = None,
    starts: Annotated[
        str, typer.Option(help="how many points to begin from; auto: till few are missed, polished")
    ] = "1024",
    steps: Annotated[
        int | None, typer.Option(min=0, help="applications of the operator, or steps of the method")
    ] = None,
    lam: Annotated[
        str | None, typer.Option(help="of an operator trained for a range; with commas a schedule")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="operator, safeguarded, arriving, descent, lbfgs, multistart, "
            "proximal_gradient, skglm or swarm"
        ),
    ] = "operator",
    polish: Annotated[
        bool, typer.Option("--polish", help="then move solutions onto their optima, and certify")
    ] = False,
    seed: Seed = 0,
    device: Device = "auto",
    plot: Annotated[Path | None, typer.Option(help="draw a picture: png, svg or pdf")] = None,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="distinct optima; - is the screen")
    ] = None,
    npz: Annotated[Path | None, typer.Option(help="every start and solution, for NumPy")] = None,
) -> None:
    """Find the optima of one instance and list the distinct ones; or solve a file of instances.

    A file of instances is a .npy (instances, p), or a .csv or .txt with one tau a line.
    """
    from proxlearn.problems import problem
    from proxlearn.solvers.solve import solve as solve_any

    chosen = problem(name)
    _check_outputs(plot, json_file, npz)
    begin = _starts(starts)
    if taus:
        into = _file_of_many(tau, method, plot, json_file, npz)
        if not isinstance(begin, int) or polish or lam:
            raise InputError(
                "--starts auto, --polish and --lam are of one tau: leave them out with --taus."
            )
        _solve_many(chosen, taus, into, operator, begin, steps, seed, device)
        return
    settings = _settings(chosen, method, operator, steps, device)
    if lam and "operator" not in settings:
        raise InputError(f"--lam is for methods with an operator; {method!r} has none.")
    if lam:
        weights = _numbers("--lam", lam)
        settings["lam"] = weights if len(weights) > 1 else weights[0]
    instance = _instances(chosen, tau, seed, 1)
    started = time.perf_counter()
    solutions = solve_any(chosen, instance, method, begin, seed, device, **settings)
    solutions = solutions.polished() if polish and begin != "auto" else solutions
    seconds = time.perf_counter() - started
    meant = solutions.rounded()
    optima = _show_optima(meant, method, seconds, table=json_file != "-")
    if json_file:
        about = {"problem": chosen.name, "method": method, "starts": optima.starts, "seed": seed}
        _write_json(json_file, about | {"tau": _as_list(instance)}, optima)
    if npz:
        screen.say(f"Solutions: {solutions.save(npz)}")
    if plot:
        screen.say(
            f"Picture: {(meant if meant.space == solutions.space else solutions).plot(plot)}"
        )


@app.command(
    epilog="Example:\n\nproxlearn evaluate conic --steps 3,5,10,20 --thresholds 0.05,0.1\n\n"
    "The paper's protocol:\n\nproxlearn evaluate conic --instances 256 --starts 1024 "
    "--witnesses 1024 --trials 10 --thresholds 0.05,0.1,0.2"
)
def evaluate(
    name: Name,
    operator: OperatorFile = None,
    steps: Annotated[
        str | None, typer.Option(help="applications, several with commas; default: the operator's")
    ] = None,
    instances: Annotated[int, typer.Option(min=1, help="test instances")] = 32,
    starts: Annotated[int, typer.Option(help="for each of them")] = 256,
    witnesses: Annotated[int, typer.Option(min=1, help="random points that look")] = 256,
    trials: Annotated[int, typer.Option(min=1, help="draws of witnesses")] = 3,
    thresholds: Annotated[
        str | None, typer.Option(help="only solutions with at most this value count; with commas")
    ] = None,
    deltas: Annotated[str, typer.Option(help="of the witnessed precision")] = "0.05,0.1,0.2",
    reference: Annotated[str, typer.Option(help="the method taken as the truth")] = "descent",
    seed: Seed = 0,
    device: Device = "auto",
    out: Annotated[Path | None, typer.Option(help="default: runs/PROBLEM-evaluate")] = None,
) -> None:
    """Measure an operator against a reference solver: witnessed divergence and precision.

    The last line is the reference measured against itself from other starts: the best there is.
    """
    from proxlearn.common.files import writable_folder
    from proxlearn.measure import evaluate as evaluation
    from proxlearn.problems import problem

    chosen = problem(name)
    folder = writable_folder(out or Path("runs") / f"{chosen.name}-evaluate")
    settings = _settings(chosen, "operator", operator, None, device)
    applied = _counts("--steps", steps) or [settings["operator"].applications]
    candidates = [(f"operator x{k}", "operator", settings | {"steps": k}) for k in applied]
    rows = evaluation.evaluate(
        chosen,
        [*candidates, (reference, reference, {})],
        reference=(reference, {}),
        instances=instances,
        starts=starts,
        witnesses=witnesses,
        trials=trials,
        thresholds=_numbers("--thresholds", thresholds) or [None],
        deltas=_numbers("--deltas", deltas),
        seed=seed,
        device=device,
    )
    _finish(rows, folder)
    screen.say(
        f"From {starts:,} starts each: the fewer, the farther apart even two truths are, as the "
        "last line shows; the paper's sizes are in --help."
    )


@app.command(
    epilog="Example:\n\nproxlearn compare springs --methods descent,lbfgs,multistart\n\n"
    "proxlearn compare conic --tau 0.3,0,0.5,0,0,-1 --starts 1024"
)
def compare(
    name: Name,
    tau: Tau = None,
    operator: OperatorFile = None,
    methods: Annotated[
        str | None,
        typer.Option(help="with commas; default: operator if there is one, descent, lbfgs"),
    ] = None,
    instances: Annotated[int, typer.Option(min=1, help="test instances, without --tau")] = 4,
    starts: Annotated[int, typer.Option(help="the same ones for every method")] = 256,
    witnesses: Annotated[int, typer.Option(min=1, help="random points that look")] = 256,
    reference: Annotated[str, typer.Option(help="the method taken as the truth")] = "descent",
    seed: Seed = 0,
    device: Device = "auto",
    out: Annotated[Path | None, typer.Option(help="default: runs/PROBLEM-compare")] = None,
) -> None:
    """Run several solvers from the same starts: one table and one figure."""
    from proxlearn.common.files import writable_folder
    from proxlearn.figures import draw as plots
    from proxlearn.measure import evaluate as evaluation
    from proxlearn.operators.shipped import shipped
    from proxlearn.problems import problem

    chosen = problem(name)
    folder = writable_folder(out or Path("runs") / f"{chosen.name}-compare")
    ready = ["operator"] if operator or chosen.name in shipped() else []
    asked = (
        [each.strip() for each in methods.split(",")] if methods else [*ready, "descent", "lbfgs"]
    )
    candidates = [
        (each, each, _settings(chosen, each, operator if each in LEARNED else None, None, device))
        for each in asked
    ]
    instance = _instances(chosen, tau, seed, instances)
    comparison = evaluation.compare(
        chosen,
        candidates,
        tau=instance,
        reference=(reference, {}),
        starts=starts,
        witnesses=witnesses,
        seed=seed,
        device=device,
    )
    _finish(comparison.rows, folder)
    found = {each.candidate.label: each.solutions for each in comparison.solved}
    screen.say(f"Figure: {plots.compare(chosen, instance, found, folder / 'compare.png')}")


@app.command(
    epilog="Example:\n\nproxlearn advise cosine --lam 10\n\nproxlearn advise conic --json -"
)
def advise(
    name: Name,
    operator: OperatorFile = None,
    lam: Annotated[
        float | None, typer.Option(help="default: the operator's, or the problem's own")
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="the numbers; - is the screen")
    ] = None,
) -> None:
    """Say which lam theorem 3.1 asks for, what it costs, and how exact an operator is."""
    from proxlearn.common.files import writable_folder, write_atomically
    from proxlearn.measure import advise as advising
    from proxlearn.operators.shipped import shipped
    from proxlearn.problems import problem

    chosen = problem(name)
    if json_file and json_file != "-":
        writable_folder(Path(json_file).parent)
    ready = operator or chosen.name in shipped()
    trained = _operator(chosen, operator, device) if ready else None
    advice = advising.advise(chosen, trained, lam, seed, device)
    if json_file == "-":
        print(json.dumps(advice.as_dict(), indent=1))
        return
    screen.advice_table(advice)
    for sentence in advice.sentences():
        screen.say(sentence)
    if json_file:
        screen.say(
            f"Numbers: {write_atomically(json_file, json.dumps(advice.as_dict(), indent=1))}"
        )


@app.command(epilog="Example:\n\nproxlearn report runs/ -o report.html")
def report(
    folder: Annotated[Path, typer.Argument(help="with rows (*.jsonl) and pictures (*.png)")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the page")] = Path("report.html"),
) -> None:
    """Make one self-contained HTML page of the rows and pictures below a folder."""
    from proxlearn.show import report as reporting

    screen.say(f"Report: {reporting.report(folder, output, command=_command())}")


@app.command(epilog="Example:\n\nproxlearn reproduce conic --quick --out runs/reproduce-conic")
def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="such as conic, maxcut or peaks")],
    quick: Annotated[bool, typer.Option("--quick", help="small, minutes on a CPU")] = False,
    out: Annotated[Path | None, typer.Option(help="default: runs/reproduce-NAME")] = None,
    device: Device = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="keep what is trained already")] = False,
) -> None:
    """Rerun an experiment of the paper, from training to figures and a table."""
    from proxlearn.experiments import base as experiments
    from proxlearn.show import report as reporting

    screen.say(experiments.about(name))
    if quick:
        screen.say(f"Quick: {experiments.quick_leaves_out(name)}")
    folder = experiments.run(name, out or Path("runs") / f"reproduce-{name}", quick, device, resume)
    page = reporting.report(folder, folder / "report.html", f"proxlearn: {name}", _command())
    print((folder / "table.md").read_text())
    screen.say(f"Rows, figures and table.md are in {folder}; to look at them all: {page}")


@app.command(epilog="Example:\n\nproxlearn demo --out demo")
def demo(
    out: Annotated[Path, typer.Option(help="folder for the pictures and the page")] = Path("demo"),
    operator: OperatorFile = None,
    device: Device = "auto",
) -> None:
    """Solve a gallery of conics with the shipped operator, beside the methods of today."""
    from proxlearn.problems import problem
    from proxlearn.show import demo as demonstration

    settings = _settings(problem("conic"), "operator", operator, None, device)
    rows, page = demonstration.demo(out, settings["operator"], device, _command())
    screen.rows_table(rows)
    screen.say(f"Pictures and tables: open {page}")


def _train(
    problem: "Problem", folder: Path, resume: bool, device: str, settings: dict[str, Any]
) -> "Report | None":
    """Train, and return the last report: it tells a finished training from an interrupted one."""
    from proxlearn.training.learn import learn

    last: list[Report] = []

    def watch(report: "Report", _: "Operator") -> None:
        last[:] = [report]

    learn(problem, out=folder, resume=resume, device=device, watch=watch, **settings)
    return last[0] if last else None


def _check_outputs(plot: Path | None, json_file: str | None, npz: Path | None) -> None:
    """An error, before any work is done, if one of the files cannot be written."""
    from proxlearn.common.files import array_format, writable_folder
    from proxlearn.figures import draw as plots

    for file in (plot, npz, json_file):
        if file and file != "-":
            writable_folder(Path(file).parent)
    if plot:
        plots.check_format(plot)
    if npz:
        array_format(npz)


def _show_optima(solutions: "Solutions", method: str, seconds: float, table: bool) -> "Optima":
    """The distinct optima of one instance, said and returned, with what speaks against them."""
    from proxlearn.answers.solutions import DOUBTS, SMALLEST_SHARE
    from proxlearn.answers.unseen import unseen

    every = solutions.unique(smallest_share=0.0)
    listed, inside = every.reached_by(SMALLEST_SHARE), solutions.inside.sum().item()
    if table:
        screen.optima_table(listed)
    optima = len(listed.certified())
    screen.say(
        f"{optima} distinct {'optimum' if optima == 1 else 'optima'} from {listed.starts:,} starts "
        f"by {method} in {seconds:.3g} s; {inside:,} solutions are inside the space."
    )
    if others := len(listed) - optima:
        screen.say(f"Listed besides: {others} that are saddles or have not converged.")
    screen.say(f"Missed? {unseen(every.certified().hits.tolist())}")
    if solutions.doubts is not None and solutions.doubts.any():
        reason = DOUBTS[int(solutions.doubts[0])]
        screen.say(f"Do not trust this: {reason}. Try --method lbfgs.")
    return listed


def _file_of_many(
    tau: str | None, method: str, plot: Path | None, json_file: str | None, npz: Path | None
) -> Path:
    """Where the solutions of --taus go; an error where it comes with what is of one instance."""
    if tau is not None:
        raise InputError("Give --tau for one instance or --taus for a file of them, not both.")
    if method != "operator":
        raise InputError(f"--taus is for the method 'operator', not for {method!r}: use --tau.")
    if plot or json_file:
        raise InputError("--plot and --json are of one instance: use --tau, or --npz for many.")
    if npz is None:
        raise InputError("The solutions of --taus go to a file: give --npz solutions.npz.")
    return npz


def _solve_many(
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
    if size == "none":
        raise InputError(f"{problem.name!r} takes no numbers as tau: leave --taus out.")
    if not size.isdigit():
        raise InputError(
            f"--taus is for rows of numbers, which {problem.name!r} does not take: give one "
            "instance with --tau, or several in Python, px.solve(problem, [...])."
        )
    with processes(pick_device(device)) as process:
        started = time.perf_counter()
        taus = many.read_taus(file, int(size))
        chosen = _operator(problem, operator, device)
        many.solve_many(chosen, taus, npz, process, starts, steps, seed)
        seconds, found = time.perf_counter() - started, len(taus) * starts
        screen.say(
            f"{len(taus):,} taus from {starts:,} starts each in {seconds:.3g} s: "
            f"{found / seconds:,.0f} solutions a second. They are in {npz}."
        )


def _settings(
    problem: "Problem", method: str, operator: Path | None, steps: int | None, device: str
) -> dict[str, Any]:
    """A method's settings, with its operator where it needs one."""
    settings: dict[str, Any] = {} if steps is None else {"steps": steps}
    if method in LEARNED:
        return settings | {"operator": _operator(problem, operator, device)}
    if operator:
        raise InputError(
            f"--operator is for methods that apply one, such as 'operator', not for {method!r}."
        )
    return settings


def _operator(problem: "Problem", file: Path | None, device: str) -> "Operator":
    """The operator asked for, or the shipped one, seen to fit the problem."""
    from proxlearn.operators.load import load
    from proxlearn.operators.shipped import pretrained, shipped

    if file is None and problem.name in shipped():
        return pretrained(problem.name, device)
    if file is None:
        raise InputError(
            f"No operator is shipped for {problem.name!r}: train one with `proxlearn train "
            f"{problem.name} --out runs/{problem.name}` and give --operator "
            f"runs/{problem.name}/operator.safetensors, or use --method lbfgs."
        )
    operator = load(file, device, encoder=problem.encoder())
    operator.check_fits(problem)
    operator.problem = problem
    return operator


def _instances(problem: "Problem", tau: str | None, seed: int, count: int) -> "Batch":
    """The tau asked for; without one, test instances."""
    from proxlearn.problems.base import held_out

    size = screen.tau_size(problem)
    if tau is not None:
        if size == "none":
            raise InputError(f"{problem.name!r} takes no numbers as tau: leave --tau out.")
        numbers = size.isdigit()
        return problem.batch(_numbers("--tau", tau) if numbers else problem.instances.read(tau))
    if size == "none":
        return problem.batch(None)
    instances = held_out(problem, count, seed)
    if count == 1:
        numbers = instances[0].tolist() if size.isdigit() else []
        said = ",".join(f"{number:.4g}" for number in numbers)
        screen.say(f"No --tau given: a random test instance (seed {seed}) {said}")
    return instances


def _numbers(option: str, text: str | None) -> list[float]:
    """Numbers with commas between them."""
    try:
        return [float(each) for each in text.split(",")] if text else []
    except ValueError:
        raise InputError(
            f"{option} {text} is not a list of numbers with commas between them, such as 0.3,0,-1."
        ) from None


def _starts(text: str) -> int | str:
    """A number of starts, or `auto`."""
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise InputError(f"--starts {text} must be a whole number, or auto.") from None


def _counts(option: str, text: str | None) -> list[int]:
    """Whole numbers, 0 or more, with commas between them."""
    numbers = _numbers(option, text)
    if not all(number >= 0 and number.is_integer() for number in numbers):
        raise InputError(f"{option} {text} must be whole numbers, 0 or more, such as 3,5,10.")
    return [int(number) for number in numbers]


def _finish(rows: "list[Row]", folder: Path) -> None:
    """Show the rows, and add them to those that the folder holds already."""
    from proxlearn.common.files import append_rows

    screen.rows_table(rows)
    file, command = folder / "rows.jsonl", _command()
    append_rows(file, [row | {"command": command} for row in rows])
    screen.say(f"Rows: {file}")


def _write_json(file: str, about: dict[str, Any], optima: "Optima") -> None:
    from proxlearn.common.files import write_atomically

    text = json.dumps(about | {"optima": optima.rows()}, indent=1)
    if file == "-":
        print(text)
    else:
        screen.say(f"Optima: {write_atomically(file, text)}")


def _as_list(tau: "Batch") -> list[float] | None:
    from torch import Tensor

    return tau[0].tolist() if isinstance(tau, Tensor) and tau.ndim == 2 else None


def _command() -> str:
    """What was typed, for rows and pages to say."""
    return shlex.join(["proxlearn", *sys.argv[1:]])
