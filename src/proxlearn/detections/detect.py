"""`px.detect`, the front door: what it needs is imported when it is called."""

import warnings
from pathlib import Path
from typing import Any

from proxlearn.common.checks import count, path_of, seed_of, share
from proxlearn.detections.answer import Detections
from proxlearn.operators.operator import Operator
from proxlearn.operators.shipped import pretrained

STARTS = 256


def detect(
    images: Any,
    operator: Operator | None = None,
    starts: int = STARTS,
    threshold: float | None = None,
    seed: int = 0,
    device: str = "auto",
) -> Detections | list[Detections]:
    """The boxes around the things in a picture, in its own pixels.

    * `images`: a picture: its path, an array (h, w, 3) or (3, h, w), or a picture of Pillow. Of a
      list of such, or a folder, there is a list of answers; what cannot be read in a folder is left
      out with a warning;
    * `operator`: one trained for `detection`; None: the shipped one;
    * `starts`: how many random boxes it is applied to in each picture;
    * `threshold`: the score from which boxes are listed; None: the one that suited the operator's
      training images best, where it was measured;
    * `seed`: fixes the boxes to start from;
    * `device`: where the shipped operator works; another one works where it is.
    """
    from proxlearn.detections.detected import detected, side_of
    from proxlearn.detections.given import Pictures, picture_from

    check_settings(starts, threshold)
    seed = seed_of(seed)
    if operator is None:
        operator = shipped_operator(device)
    side, how = side_of(operator), (operator, starts, threshold, seed)
    if isinstance(images, str | Path) and path_of(images, "file of a picture").is_dir():
        folder = Pictures(Path(images), side)
        found = list(detected(folder, *how))
        folder.check_some_were_read()
        if said := folder.report():
            warnings.warn(said, stacklevel=2)
        return found
    several = isinstance(images, list | tuple)
    given = (picture_from(each, side) for each in (images if several else [images]))
    found = list(detected(given, *how))
    return found if several else found[0]


def check_settings(starts: int, threshold: float | None) -> None:
    """An error in a sentence where a setting cannot be used."""
    count("starts", starts)
    if threshold is not None:
        share("threshold", threshold, "a score")


def shipped_operator(device: str = "auto") -> Operator:
    """The operator that finds boxes, where none is given."""
    return pretrained("detection", device)
