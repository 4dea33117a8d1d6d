"""COCO's format of results: a list of boxes, each with the number of its picture."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from proxlearn.detections.answer import Detections

CATEGORY = 1  # of every box: what a thing is, is not told
MOST = 100  # boxes of a picture that COCO's metrics look at


def results(every: Iterable[Detections]) -> list[dict[str, Any]]:
    """The best boxes of pictures with names, those below the threshold among them, as average
    precision is of all scores. A picture's number is its file's name where all of these are
    numbers, as in COCO, else its place, from 1."""
    every = list(every)
    stems = [Path(each.name or "").stem for each in every]
    named = all(stem.isdecimal() for stem in stems) and len(set(map(int, stems))) == len(stems)
    return [
        {
            "image_id": int(stems[k]) if named else k + 1,
            "category_id": CATEGORY,
            "bbox": box.bbox,
            "score": round(box.score, 5),
        }
        for k, each in enumerate(every)
        for box in [*each.boxes, *each.below][:MOST]
    ]
