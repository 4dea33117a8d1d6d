"""`proxlearn detect`: the boxes of a picture, or of every picture of a folder."""

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
from proxlearn.detections.answer import Detections
from proxlearn.detections.detect import STARTS, check_settings, shipped_operator
from proxlearn.operators.load import load
from proxlearn.show import terminal

EXAMPLES = (
    "proxlearn detect street.jpg --operator runs/detection --out boxes",
    "proxlearn detect street.jpg --operator runs/detection --threshold 0.5",
    "proxlearn detect val2017/ --operator runs/detection",
)


def run(
    typed: Annotated[
        str, Argument(metavar="PATH", help="a picture (.jpg, .png, ...), or a folder of pictures")
    ],
    operator: Annotated[
        Path | None,
        Option(help="operator file or folder (default: one that `bring` has installed)"),
    ] = None,
    starts: Annotated[int, Option(min=1, help="random boxes to begin with")] = STARTS,
    threshold: Annotated[
        float | None,
        Option(help="score from which boxes are listed (default: the operator's own)"),
    ] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    out: options.Out = None,
) -> None:
    """Find the things in a picture: a table of boxes, JSON, and the picture with the boxes in it.

    A box is x, y, width and height in the picture's own pixels, from its left upper corner. Its
    score says from 0 to 1 how sure it is; boxes with less than the threshold are not listed.

    Of a folder there is one table, one JSON file, one in COCO's format of results (coco.json, with
    boxes of all scores), and the pictures with their boxes.
    """
    from proxlearn.detections.detected import side_of
    from proxlearn.detections.given import Pictures

    check_settings(starts, threshold)
    path = options.path_typed(typed)
    folder = out or usual_folder(f"{path.absolute().stem}-boxes")
    trained = load(operator, device) if operator else shipped_operator(device)
    many = Pictures(path, side_of(trained)) if path.is_dir() else None
    how = (trained, starts, threshold, seed)
    if many is None:
        _one(path, writable_folder(folder), how)
    else:
        _every(many, writable_folder(folder), how)


def _one(path: Path, folder: Path, how: tuple[Any, ...]) -> None:
    """Of one picture: table, JSON and the picture."""
    from proxlearn.detections.detected import detected, side_of
    from proxlearn.detections.given import read
    from proxlearn.detections.picture import picture

    (found,) = detected([read(path, side_of(how[0]))], *how)
    if len(found):
        terminal.show(found.table())
    for sentence in (found.summary(), *found.doubts):
        terminal.say(sentence)
    terminal.say(f"JSON: {found.save(folder / 'boxes.json')}")
    terminal.say(f"Picture: {picture(read(path).image, found, folder / 'boxes.png')}")


def _every(pictures: Any, folder: Path, how: tuple[Any, ...]) -> None:
    """Of many pictures: one table, one JSON, one file for COCO's metrics, and every picture."""
    from proxlearn.detections.coco import results
    from proxlearn.detections.detected import detected
    from proxlearn.detections.given import read
    from proxlearn.detections.picture import FORMATS, picture

    found: list[Detections] = []
    with late_bar("boxes") as show:
        for each in detected(pictures, *how):
            found.append(each)
            file = pictures.folder / str(each.name)
            ending = "" if file.suffix.lower() in FORMATS else ".png"
            drawn = folder / "pictures" / f"{file.name}{ending}"
            picture(read(file).image, each, drawn)
            show((len(found) + len(pictures.skipped)) / len(pictures))
    pictures.check_some_were_read()
    terminal.show(_table(found))
    terminal.say(_said_of(found))
    for name, reason in pictures.skipped.items():
        terminal.say(f"Skipped {name}: {reason}")
    if pictures.skipped:
        terminal.say(f"{len(pictures.skipped)} of {len(pictures)} pictures were skipped.")
    for sentence in found[0].doubts:
        if all(sentence in each.doubts for each in found):
            terminal.say(sentence)
    content = {"images": [each.to_json() for each in found], "skipped": pictures.skipped}
    for name, data in (("boxes.json", content), ("coco.json", results(found))):
        terminal.say(f"JSON: {write_atomically(folder / name, json.dumps(data))}")
    terminal.say(f"Pictures: {folder / 'pictures'}")


def _table(found: list[Detections]) -> Table:
    """A line for each picture."""
    headings = ("picture", "size", "boxes", "best score", "scored less", "doubts")
    table = Table(*headings, box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.columns[0].overflow = "fold"
    for column in table.columns[1:]:
        column.justify = "right"
    for each in found:
        best = f"{each.boxes[0].score:.3f}" if each.boxes else ""
        size, counts = f"{each.width} x {each.height}", (len(each.boxes), len(each.below))
        table.add_row(
            escape(str(each.name)),
            size,
            str(counts[0]),
            best,
            str(counts[1]),
            str(len(each.doubts)),
        )
    return table


def _said_of(found: list[Detections]) -> str:
    boxes, first = sum(map(len, found)), found[0]
    none = sum(not len(each) for each in found)
    return (
        f"{counted(len(found), 'picture')}: {counted(boxes, 'box', 'boxes')} with a score of at "
        f"least {first.threshold:.3g}, {first.chosen}; {counted(none, 'picture')} without any."
    )
