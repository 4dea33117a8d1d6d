"""`proxlearn symmetry`: the mirror planes and axes of a part, or of every part of a folder."""

import json
from pathlib import Path
from typing import Annotated, Any

from rich.markup import escape
from rich.table import Table
from typer import Argument, Option

from proxlearn.cli import options
from proxlearn.common.files import usual_folder, writable_folder, write_atomically
from proxlearn.common.progress import late_bar
from proxlearn.common.words import counted
from proxlearn.errors import FileError, ProxlearnError
from proxlearn.figures.draw import new_figure
from proxlearn.meshes.folder import Meshes
from proxlearn.operators.load import load
from proxlearn.shapes.answer import Symmetries
from proxlearn.shapes.symmetries import STARTS, TOLERANCE, shipped_operator, symmetries
from proxlearn.show import terminal

EXAMPLES = (
    "proxlearn symmetry part.stl --out symmetries",
    "proxlearn symmetry scan.xyz --tolerance 0.003",
    "proxlearn symmetry parts/",
)
MANY = (".txt", ".npz")  # endings of files that are not one shape but many


def run(
    typed: Annotated[
        str,
        Argument(
            metavar="PATH",
            help="a mesh (.stl, .obj, .ply, .off), a cloud of points (.xyz, .npy, .ply), or many "
            "meshes: a folder, a catalog (.txt) or packed ones (.npz)",
        ),
    ],
    operator: options.OperatorFile = None,
    starts: Annotated[int, Option(min=1, help="random planes to begin with")] = STARTS,
    tolerance: Annotated[
        float, Option(help="largest residual that counts as a symmetry, in parts of the size")
    ] = TOLERANCE,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    out: options.Out = None,
) -> None:
    """Find all planes that reflect a part onto itself, and all axes about which turns do: a table,
    JSON, a picture and a 3-D page.

    The residual of a plane is the mean distance to the part of its reflected points, in the part's
    own units; that of an axis, of its points turned by 1/order. All planes through the axis of a
    turned part are one line of the table.

    Of many parts there is one table and one JSON file.
    """
    path = options.path_typed(typed)
    folder = out or usual_folder(f"{path.absolute().stem}-symmetry")
    many = Meshes(path) if path.is_dir() or path.suffix.lower() in MANY else None
    trained = load(operator, device) if operator else shipped_operator(device)
    how: dict[str, Any] = {"starts": starts, "tolerance": tolerance, "seed": seed}
    how["operator"] = trained
    if many is None:
        _one(path, writable_folder(folder), how)
    else:
        _every(many, writable_folder(folder), how)


def _one(path: Path, folder: Path, how: dict[str, Any]) -> None:
    """Of one part: table, JSON, picture and page."""
    from proxlearn.shapes.given import shape_from
    from proxlearn.shapes.page import page
    from proxlearn.shapes.picture import picture

    new_figure(1, 1)  # an error now where there is nothing to draw with
    shape = shape_from(path)
    found = symmetries(shape, **how)
    if len(found):
        terminal.show(found.table())
    for sentence in (found.summary(), *found.doubts):
        terminal.say(sentence)
    terminal.say(f"JSON: {found.save(folder / 'symmetries.json')}")
    terminal.say(f"Picture: {picture(shape, found, folder / 'symmetries.png', path.name)}")
    terminal.say(f"In 3-D: open {page(shape, found, folder / 'symmetries.html', path.name)}")


def _every(meshes: Meshes, folder: Path, how: dict[str, Any]) -> None:
    """Of many parts: one table, one JSON."""
    found: dict[str, Symmetries] = {}
    failed: dict[str, str] = {}
    with late_bar("symmetries") as show:
        for name, mesh in meshes:
            show((len(found) + len(failed) + len(meshes.skipped)) / len(meshes))
            try:
                found[name] = symmetries(mesh, **how)
            except ProxlearnError as error:
                failed[name] = str(error)
    skipped = meshes.skipped | failed
    if not found:
        first, reason = next(iter(skipped.items()))
        raise FileError(f"None of the {len(meshes)} meshes can be used, such as {first}: {reason}")
    terminal.show(_table(found))
    terminal.say(_said_of(found))
    for name, reason in skipped.items():
        terminal.say(f"Skipped {name}: {reason}")
    if skipped:
        terminal.say(f"{len(skipped)} of {len(meshes)} meshes were skipped.")
    parts = [{"name": name} | each.to_json() for name, each in found.items()]
    text = json.dumps({"parts": parts, "skipped": skipped}, indent=1)
    terminal.say(f"JSON: {write_atomically(folder / 'symmetries.json', text)}")


def _table(found: dict[str, Symmetries]) -> Table:
    """A line for each part."""
    counted = ("planes", "families", "axes (largest order)")
    headings = ("part", *counted, "worst residual", "of size", "best that is none")
    table = Table(*headings, box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.columns[0].overflow = "fold"  # the end of a path says which part it is
    for column in table.columns[1:]:
        column.justify = "right"
    for name, each in found.items():
        worst = max(each.every, key=lambda e: e.share, default=None)
        residual = ("", "") if worst is None else (f"{worst.residual:.2g}", f"{worst.share:.4%}")
        best = "" if each.best is None else f"{each.best.share:.2%}"
        counts = str(len(each.planes)), str(len(each.families)), _axes(each)
        table.add_row(escape(name), *counts, *residual, best)
    return table


def _axes(found: Symmetries) -> str:
    """How many, and the largest order; turns by any angle have the largest."""
    orders = [axis.order for axis in found.axes]
    largest = "any angle" if 0 in orders else max(orders, default=0)
    return f"{len(orders)} ({largest})" if orders else "0"


def _said_of(found: dict[str, Symmetries]) -> str:
    planes = sum(len(each.planes) for each in found.values())
    axes = sum(len(each.axes) for each in found.values())
    turned = sum(bool(each.families) for each in found.values())
    none = sum(not len(each) for each in found.values())
    return (
        f"{counted(len(found), 'part')}: {counted(planes, 'single plane')}, "
        f"{counted(axes, 'axis', 'axes')}, {counted(turned, 'part')} with a continuous family, "
        f"{none or 'none'} without any symmetry."
    )
