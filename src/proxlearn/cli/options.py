"""What the commands share: options, reading what is typed, and writing results."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from proxlearn.common.contents import brief
from proxlearn.common.files import append_rows, usual_folder, writable_file, write_atomically
from proxlearn.common.provenance import Row
from proxlearn.errors import InputError
from proxlearn.instances import Vectors
from proxlearn.operators.load import load
from proxlearn.operators.operator import Operator
from proxlearn.operators.shipped import available, how_to_have_one, pretrained
from proxlearn.problems.base import Problem, held_out
from proxlearn.show import terminal
from proxlearn.solvers.base import Learned, solvers

Name = Annotated[
    str, Argument(metavar="PROBLEM", help="a built-in problem, or the path of your own .py")
]
Device = Annotated[str, Option(help="auto, cpu or cuda")]
Seed = Annotated[int, Option(help="fixes everything that is drawn at random")]
OperatorFile = Annotated[
    Path | None, Option("--operator", help="operator file or folder (default: the shipped one)")
]
Tau = Annotated[
    str | None,
    Option(help="numbers separated by commas; for a graph or picture, a file (default: random)"),
]
Instances = Annotated[int, Option(min=1, help="how many test instances")]
Witnesses = Annotated[
    int, Option(min=1, help="random points from which found and true optima are compared")
]
Reference = Annotated[str, Option(help="the method whose solutions are taken as the truth")]
JsonFile = Annotated[
    str | None, Option("--json", metavar="FILE", help="write the results as JSON; - prints them")
]
Out = Annotated[Path | None, Option(help="folder to write to (default: a folder in runs/)")]

# Commands of their own that problems have, with what they are given.
MADE_FOR = {"detection": ("detect", "picture.jpg"), "symmetry": ("symmetry", "part.stl")}


def path_typed(text: str) -> Path:
    """A path; `Path("")` would be the current folder."""
    if not text:
        raise InputError("PATH is empty: give a file or a folder.")
    return Path(text)


def numbers(option: str, text: str | None, which: str = "numbers") -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(each) for each in text.split(",")] if text else []
    except ValueError:
        raise InputError(
            f"{option} must be {which}, separated by commas, not {brief(text)}."
        ) from None


def whole_numbers(option: str, text: str | None) -> list[int]:
    """Whole numbers, 0 or more, separated by commas."""
    given = numbers(option, text)
    if not all(each >= 0 and each.is_integer() for each in given):
        raise InputError(
            f"{option} {brief(text)} must be whole numbers, 0 or more, such as 3,5,10."
        )
    return [int(each) for each in given]


def one_or_more(option: str, text: str | None) -> float | list[float] | None:
    """A number, or several separated by commas; None where nothing is given."""
    given = numbers(option, text)
    return given[0] if len(given) == 1 else given or None


def learned(method: str) -> bool:
    """Whether a method applies a trained operator."""
    return issubclass(solvers[method], Learned)


def settings_for(
    name: str, problem: Problem, method: str, operator: Path | None, device: str
) -> dict[str, Any]:
    """The settings of a method: its operator, where it needs one."""
    if learned(method):
        return {"operator": operator_for(name, problem, operator, device)}
    if operator:
        raise InputError(
            f"--operator is for methods that apply one, such as 'operator', not for {method!r}."
        )
    return {}


def operator_for(name: str, problem: Problem, file: Path | None, device: str) -> Operator:
    """The operator in the file, checked to fit the problem; without a file, the shipped one."""
    if file is None and problem.name in available():
        return pretrained(problem.name, device)
    if file is None:
        raise InputError(how_to_have_one(problem.name, how_to_train(name, problem)))
    own: dict[str, Any] = {"space": problem.space, "instances": problem.instances}
    if type(problem).encoder is not Problem.encoder:
        own["encoder"] = problem.encoder()
    if not isinstance(problem.architecture, str):
        own["architecture"] = problem.architecture
    operator = load(file, device, **own)
    operator.check_fits(problem)
    operator.problem = problem
    return operator


def how_to_train(name: str, problem: Problem) -> str:
    """The command that trains an operator for a problem, by its name or file as it was typed."""
    return shlex.join(["proxlearn", "train", name, "--out", str(usual_folder(problem.name))])


def how_to_use(name: str, problem: Problem, operator: Path, picture: Path) -> str:
    """The command that an operator of a problem is made for: one of its own, or `solve`, which
    draws what it finds."""
    if problem.name in MADE_FOR:
        return shlex.join(["proxlearn", *MADE_FOR[problem.name], "--operator", str(operator)])
    how = ["--operator", str(operator), "--plot", str(picture)]
    return shlex.join(["proxlearn", "solve", name, *how])


def instances_for(
    problem: Problem, tau: str | None, seed: int, count: int, option: str = "--tau"
) -> Any:
    """The instance that an option gives, still to be checked; without it, random test instances."""
    size, own = terminal.tau_size(problem), problem.instances
    if tau is not None:
        if size == "none":
            raise InputError(f"{problem.name!r} takes no tau: leave {option} out.")
        typed = isinstance(own, Vectors)
        return numbers(option, tau, own.words) if typed else own.read(tau)
    if size == "none":
        return problem.batch(None)
    instances = held_out(problem, count, seed)
    if count == 1:
        drawn = instances[0].tolist() if size.isdigit() else []
        said = ",".join(f"{number:.4g}" for number in drawn)
        terminal.say(f"No {option} given: a random test instance (seed {seed}) {said}")
    return instances


def check_file(file: Path | str | None) -> None:
    """An error, before any work is done, if a file cannot be written."""
    if file and file != "-":
        writable_file(file)


def write_json(file: str, content: dict[str, Any]) -> None:
    """Write to a file, or print where the file is `-`."""
    text = json.dumps(content, indent=1)
    if file == "-":
        print(text)
    else:
        terminal.say(f"JSON: {write_atomically(file, text)}")


def show_and_keep(rows: list[Row], folder: Path) -> None:
    """Show the rows, and add them to those that the folder holds already."""
    terminal.rows_table(rows)
    file = folder / "rows.jsonl"
    append_rows(file, [row | {"command": typed_command()} for row in rows])
    terminal.say(f"Rows: {file}")


def typed_command() -> str:
    """The command as it was typed, for rows and pages to name."""
    return shlex.join(["proxlearn", *sys.argv[1:]])
