"""What the experiments share: training into their folder, tables, and the look of figures."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proxlearn.errors import InputError, TrainingError
from proxlearn.networks import architecture_from
from proxlearn.operators.load import load
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import Problem
from proxlearn.training import checkpoint
from proxlearn.training.learn import learn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DESCENT, GRADIENT, PROXIMAL = "#d1495b", "#3c9d5f", "#2667b5"  # PD, GOL and POL, as in the paper
INK = "0.25"


@dataclass(frozen=True)
class Folder:
    """Where an experiment writes, on which device it runs, and whether it reuses what is there."""

    path: Path
    device: str = "auto"
    resume: bool = False
    progress: bool = True

    def train(
        self,
        label: str,
        problem: Problem,
        settings: dict[str, Any],
        watch: Callable[..., None] | None = None,
    ) -> Operator:
        """An operator trained into the folder's subfolder `label`, or the one already there."""
        out = self.path / label
        file = out / "operator.safetensors"
        if self.resume and file.is_file():
            operator = load(file, self.device)
            _same_settings(operator, settings, file)
            operator.problem = problem
            return operator
        if not self.resume and (out / checkpoint.NAME).is_file():
            raise InputError(
                f"{out} already holds a training: keep it with --resume, or choose another --out."
            )
        operator = learn(
            problem,
            out=out,
            resume=self.resume and (out / checkpoint.NAME).is_file(),
            device=self.device,
            progress=self.progress,
            watch=watch,
            **settings,
        )
        if not file.is_file():
            raise TrainingError(
                f"The training of {label} was interrupted; run again with --resume to go on."
            )
        return operator


def _same_settings(operator: Operator, settings: dict[str, Any], file: Path) -> None:
    used, settings = operator.provenance["training"], dict(settings)
    if "architecture" in settings:
        settings["architecture"] = architecture_from(settings["architecture"]).describe()
    for name, asked in json.loads(json.dumps(settings)).items():
        if used[name] != asked:
            raise InputError(
                f"{file} was trained with {name} = {used[name]}, but {asked} is asked for: run "
                "without --resume, or into another folder."
            )


def published(experiment: str, method: str, threshold: float) -> dict[str, Any]:
    """What the paper's authors published for a method at a threshold; nothing if they did not."""
    numbers = json.loads((files("proxlearn.experiments") / f"{experiment}.json").read_text())
    if method not in numbers:
        return {}
    (found,) = (e for e in numbers[method]["by_threshold"] if e["t"] == threshold)
    return found | {"delta": numbers[method]["delta"]}


def markdown(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A table; numbers are right-aligned, None is a dash."""
    rows = [[_cell(value) for value in line] for line in lines]
    rule = ["---", *("---:" for _ in header[1:])]
    return "".join(f"| {' | '.join(each)} |\n" for each in ([*header], rule, *rows))


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def tidy(axes: "Axes", **labels: Any) -> None:
    """Quiet axes: no box, a faint grid, small numbers."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("0.6")
    axes.grid(color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize="small", length=3)
    axes.set(**labels)


def bare(axes: "Axes", low: Sequence[float], high: Sequence[float]) -> None:
    """A square window on the plane: a thin frame and nothing else."""
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", xticks=[], yticks=[])
    axes.spines[:].set(color="0.75", linewidth=0.7)
