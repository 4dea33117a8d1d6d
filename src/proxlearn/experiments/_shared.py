"""What the experiments share: training into their folder, rows, tables and figures."""

import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.common.files import read_rows, write_atomically, write_rows
from proxlearn.common.provenance import Row, row
from proxlearn.errors import InputError, TrainingError
from proxlearn.experiments._look import Figure
from proxlearn.figures.draw import new_figure, save
from proxlearn.gpu.devices import pick_device
from proxlearn.networks import architecture_from
from proxlearn.operators.load import load
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import Problem
from proxlearn.show import terminal
from proxlearn.solvers.solve import solve
from proxlearn.spaces import Space
from proxlearn.training import checkpoint
from proxlearn.training.learn import learn

SEED = 0  # of instances, starts and trainings, where an experiment has none of its own


class StoppedError(TrainingError):
    """A training that a person interrupted."""


@dataclass(frozen=True)
class Folder:
    """Where an experiment writes, on which device it runs, and whether it reuses what is there."""

    path: Path
    device: str = "auto"
    resume: bool = False
    progress: bool = True
    data: Path | None = None  # of the user's, where an experiment can use some
    weights: Path | None = None  # of a backbone, where an experiment can begin with some
    only: tuple[str, ...] = ()  # the parts to run, of an experiment that has some; none: all
    about: Row = field(default_factory=dict)  # what every row of the run has
    failed: dict[str, Exception] = field(default_factory=dict)  # parts, filled while it runs

    def train(
        self, label: str, problem: Problem, settings: Row, watch: Callable[..., None] | None = None
    ) -> Operator:
        """An operator trained into the folder's subfolder `label`, or the one already there."""
        out = self.path / label
        file, begun = out / "operator.safetensors", (out / checkpoint.NAME).is_file()
        if self.resume and file.is_file():
            operator = load(file, self.device)
            asked = dict(settings)
            if "architecture" in asked:
                asked["architecture"] = architecture_from(asked["architecture"]).describe()
            check_same(file, operator.provenance["training"], asked)
            operator.problem = problem
            return operator
        if begun and not self.resume:
            raise InputError(
                f"{out} already holds a training: keep it with --resume, or choose another --out."
            )
        how = settings | {"device": self.device, "progress": self.progress, "watch": watch}
        operator = learn(problem, out=out, resume=begun, **how)
        if not file.is_file():
            raise StoppedError(
                f"The training of {label} was interrupted; run again with --resume to go on."
            )
        return operator

    def solve(self, *what: Any, seed: int = SEED, **settings: Any) -> Solutions:
        """`px.solve` on the folder's device; `what`: problem, tau, method and starts."""
        return solve(*what, seed=seed, device=self.device, **settings)

    def row(self, seed: int = SEED, **fields: Any) -> Row:
        """A result of this run, with its seed, versions and machine."""
        return row(pick_device(self.device), **fields, seed=seed)

    @property
    def rows(self) -> Path:
        """The file of all rows."""
        return self.path / "rows.jsonl"

    def keep(self, rows: list[Row]) -> None:
        """Write the rows that there are, so that they are not lost if the rest is interrupted."""
        write_rows(self.rows, [self.about | each for each in rows])

    def in_parts(self, parts: dict[str, Callable[[], list[Row]]]) -> list[Row]:
        """Rows of an experiment's parts, which are run one after the other: all of them, or only
        some, and then those that are there already stay. Rows are kept as soon as a part is done,
        and a part that fails does not keep the others from running."""
        there = self.rows_of_others() if self.only else []
        done: dict[str, list[Row]] = {name: [] for name in parts}
        for each in there:  # maybe also of parts that cannot be run here
            done.setdefault(each["part"], []).append(each)
        for name in dict.fromkeys(self.only or parts):
            said = self.path / f"{name}.error"
            try:
                done[name] = [{"part": name} | each for each in parts[name]()]
                said.unlink(missing_ok=True)  # of an earlier run
            except StoppedError:  # by Ctrl-C, which is meant for all
                raise
            except Exception as error:  # whatever went wrong, the rest goes on
                self.failed[name] = error
                write_atomically(said, traceback.format_exc())
                terminal.complain(f"The part {name} failed (all of it: {said}): {error}")
            self.keep([row for rows in done.values() for row in rows])
        return [row for rows in done.values() for row in rows]

    def rows_of_others(self) -> list[Row]:
        """Those of an earlier run, which has to have been the same but for its parts."""
        there = read_rows(self.rows) if self.rows.is_file() else []
        for each in there:
            same = all(each.get(name) == value for name, value in self.about.items())
            if not same or "part" not in each:
                of = f"of `{each.get('command')}`" if not same else "that name no part"
                raise InputError(
                    f"{self.path} holds rows {of}, to which those of `{self.about['command']}` "
                    "cannot be added: choose another --out."
                )
        return there

    @contextmanager
    def figure(self, name: str, width: float, height: float) -> Iterator[Figure]:
        """A figure to draw into, sizes in inches; it is written at the end."""
        figure = new_figure(width, height)
        yield figure
        save(figure, self.path / name)


def check_same(file: Path, used: dict[str, Any], asked: dict[str, Any]) -> None:
    """An error if a file in the folder was trained with other settings than those asked for."""
    for name, value in json.loads(json.dumps(asked)).items():
        if used.get(name) != value:
            raise InputError(
                f"{file} was trained with {name} = {used.get(name)}, but {value} is asked for: run "
                "without --resume, or into another folder."
            )


def trained_for(provenance: dict[str, Any]) -> Row:
    """How long a training was."""
    return {f"trained_{each}": provenance[each] for each in ("steps", "seconds")}


def spread(values: Float[Tensor, " n"]) -> Row:
    """The mean and standard deviation of values."""
    return {"mean": values.mean().item(), "std": values.std().item()}


def nearby(
    space: Space, some: Float[Tensor, "k d"], others: Float[Tensor, "m d"], tolerance: float
) -> int:
    """How many points have one of the others within `tolerance`, a share of the diameter."""
    if not len(some) or not len(others):
        return 0
    return int((space.pairwise(some, others).amin(1) <= tolerance * space.diameter).sum())


def all_published(experiment: str) -> dict[str, Any]:
    """What the paper's authors published, by method, with where that is from."""
    return json.loads((files("proxlearn.experiments") / f"{experiment}.json").read_text())


def published(experiment: str, method: str, threshold: float) -> dict[str, Any]:
    """What they published for a method at a threshold; nothing if they did not."""
    numbers = all_published(experiment)
    if method not in numbers:
        return {}
    (found,) = (e for e in numbers[method]["by_threshold"] if e["t"] == threshold)
    return found | {"delta": numbers[method]["delta"]}


def grouped(rows: Iterable[Row], *columns: str) -> dict[Any, list[Row]]:
    """Rows by the value in a column (a tuple for several columns), in the order they come in."""
    groups: dict[Any, list[Row]] = {}
    for each in rows:
        groups.setdefault(itemgetter(*columns)(each), []).append(each)
    return groups


def columns(rows: Sequence[Row], *names: str) -> list[np.ndarray]:
    """What all the rows have in each of several columns."""
    return [np.array([each[name] for each in rows]) for name in names]


def markdown(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A table; numbers are right-aligned, None is a dash."""

    def cell(value: object) -> str:
        return f"{value:.3g}" if isinstance(value, float) else "-" if value is None else str(value)

    rows = [map(cell, line) for line in lines]
    rule = ["---", *("---:" for _ in header[1:])]
    return "".join(f"| {' | '.join(each)} |\n" for each in ([*header], rule, *rows))
