"""The experiments of the paper, one file each, from training to figures.

An experiment is a module here with a docstring, its `Sizes`, all the numbers that it depends on, in
full and in the small version (`FULL` and `QUICK`), a sentence on what the small one leaves out
(`LEFT_OUT`), and `run(sizes, folder)`, which returns rows and a table and draws figures; one that
can use data of the user's says which (`DATA`), one that can begin with the trained weights of a
backbone, of which (`WEIGHTS`), and one whose parts can be run alone, what they are called
(`parts()`). Modules whose name begins with `_` are shared.
"""

from collections.abc import Sequence
from pathlib import Path

from proxlearn.common.files import read_rows, writable_folder, write_atomically, write_rows
from proxlearn.common.provenance import Row
from proxlearn.common.registry import Registry
from proxlearn.errors import InputError, ProxlearnError, UnknownNameError
from proxlearn.experiments._shared import Folder
from proxlearn.figures.draw import new_figure
from proxlearn.gpu.devices import pick_device

experiments = Registry("experiment", "proxlearn.experiments", object)
names = experiments.names


def about(name: str) -> str:
    """What an experiment shows, in a line."""
    return (experiments.module(name).__doc__ or name).splitlines()[0]


def quick_leaves_out(name: str) -> str:
    """What the small version of an experiment leaves out, as a sentence."""
    return experiments.module(name).LEFT_OUT


def parts_of(name: str) -> tuple[str, ...]:
    """What the parts of an experiment are called that can be run alone; mostly, there are none."""
    module = experiments.module(name)
    return module.parts() if hasattr(module, "parts") else ()


def is_done(name: str, folder: Path, quick: bool) -> bool:
    """Whether a folder holds an experiment's whole result, in the version that is asked for."""
    if not (folder / "table.md").is_file():
        return False
    rows = read_rows(folder / "rows.jsonl")
    if any(row["quick"] != quick for row in rows):
        which = "full" if quick else "quick"
        raise InputError(f"{folder} holds the {which} version: choose another --out.")
    return {row.get("part") for row in rows}.issuperset(parts_of(name))


def run(
    name: str,
    out: str | Path,
    quick: bool = False,
    device: str = "auto",
    resume: bool = False,
    progress: bool = True,
    data: str | Path | None = None,
    weights: str | Path | None = None,
    only: Sequence[str] = (),
) -> Path:
    """Rerun an experiment, from training to figures, into the folder `out`, and return it.

    It holds rows.jsonl, table.md (ours against published), figures (*.png), and a folder for each
    trained operator. `quick` is a small version for two CPU cores, a few minutes long; `resume`
    reuses the operators already trained in `out`, and goes on with an interrupted training; `data`
    are the user's own, in place of generated ones, for an experiment that says so (`DATA`), and
    `weights` those of a backbone (`WEIGHTS`); `only` these parts are run (`parts()`), and what the
    folder holds of the others stays.
    """
    experiment = experiments.module(name)
    if data is not None and not hasattr(experiment, "DATA"):
        raise InputError(f"The experiment {name} generates its data: leave --data out.")
    if weights is not None and not hasattr(experiment, "WEIGHTS"):
        raise InputError(f"The experiment {name} has no backbone: leave --weights out.")
    known = parts_of(name)
    if only and not known:
        raise InputError(f"The experiment {name} has no parts to run alone: leave --only out.")
    for each in only:
        if each not in known:
            raise UnknownNameError("part", each, known)
    pick_device(device)  # says at once if there is no such device,
    new_figure(1, 1)  # or nothing to draw with
    own, begun = (None if each is None else Path(each) for each in (data, weights))
    about = row_about(name, quick, own, begun)
    where = writable_folder(out)
    folder = Folder(where, device, resume, progress, own, begun, tuple(only), about)
    if only:
        folder.rows_of_others()  # says at once if nothing can be added to them
    rows, table = experiment.run(experiment.QUICK if quick else experiment.FULL, folder)
    write(name, folder.path, [about | each for each in rows], table, quick)
    if folder.failed:
        raise PartsError(folder)
    return folder.path


class PartsError(ProxlearnError):
    """Some of an experiment's parts failed."""

    def __init__(self, folder: Folder):
        names = ", ".join(folder.failed)
        first = str(next(iter(folder.failed.values()))).rstrip(".")
        super().__init__(
            f"Of the experiment, {names} failed: {first}. The other parts are in {folder.path}; "
            f"run what failed again with --resume --only {names.replace(' ', '')}."
        )


def row_about(name: str, quick: bool, data: Path | None = None, weights: Path | None = None) -> Row:
    """What all rows of an experiment have."""
    command = f"proxlearn reproduce {name}{' --quick' * quick}"
    command += f" --data {data.name}" if data else ""
    command += f" --weights {weights.name}" if weights else ""
    return {"experiment": name, "command": command, "quick": quick}


def write(name: str, folder: Path, rows: list[Row], table: str, quick: bool) -> Path:
    """Rows and a table into an experiment's folder."""
    write_rows(folder / "rows.jsonl", [row_about(name, quick) | each for each in rows])
    note = f"\nThis is the quick version. {quick_leaves_out(name)}\n" if quick else ""
    write_atomically(folder / "table.md", f"# {about(name)}\n{note}\n{table}")
    return folder
