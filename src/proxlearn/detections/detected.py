"""From pictures to their boxes: an operator moves many starts to boxes of each picture, and what
gathers is told apart."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.common.words import counted
from proxlearn.detections.answer import Box, Detections
from proxlearn.detections.distinct import DistinctBoxes, distinct_boxes
from proxlearn.detections.given import Picture
from proxlearn.detections.starts import starting_boxes
from proxlearn.errors import InputError
from proxlearn.images.boxes import corners
from proxlearn.images.read import pixels, stretched
from proxlearn.instances.image import Images
from proxlearn.operators.operator import Operator, check_operator

AT_ONCE = 16  # pictures
DETECTION = "detection"  # where in an operator's provenance its threshold is
BY_QUALITY, BY_SHARE = 0.5, 0.02  # thresholds of operators that have none of their own
ENOUGH_STARTS = 64
SLIM = 3.0  # times as long as wide: such a picture is stretched a lot
SMALL = 0.5  # of the side that an operator sees: such a picture has few details
SCATTERED = 0.25  # of the starts: where more end alone, an operator has not settled


def detected(
    pictures: Iterable[Picture],
    operator: Operator,
    starts: int,
    threshold: float | None,
    seed: int,
) -> Iterator[Detections]:
    """As `px.detect`, of any number of pictures, some at a time; the starts are the same for each,
    so that its boxes do not depend on the others."""
    points = starting_boxes(operator, starts, seed)
    every, side = iter(pictures), side_of(operator)
    while some := list(islice(every, AT_ONCE)):
        squares = torch.stack([pixels(stretched(each.image, side)) for each in some])
        solutions = solved(operator.instances.batch(squares), operator, points)
        found = distinct_boxes(solutions)
        limit, chosen = threshold_for(operator, solutions, threshold)
        for k, (name, _, (width, height)) in enumerate(some):
            boxes = in_pixels(found, k, width, height)
            yield Detections(
                boxes=[each for each in boxes if each.score >= limit],
                below=[each for each in boxes if each.score < limit],
                threshold=limit,
                chosen=chosen,
                width=width,
                height=height,
                name=name,
                doubts=[*doubts(boxes, width, height, operator, starts)],
            )


def side_of(operator: Operator) -> int:
    """How many pixels on each side it looks at; an error where it does not look at images."""
    check_operator(operator)
    own = operator.instances
    if not isinstance(own, Images) or operator.space.dim != 4:
        raise InputError(f"{operator} does not look at images: give one trained for 'detection'.")
    return own.side


def solved(
    images: Float[Tensor, "i 3 s s"], operator: Operator, points: Tensor, steps: int | None = None
) -> Solutions:
    """Where so many applications take points (n, 4) in pictures as the operator sees them; None:
    until they stop."""
    bound = operator.seeing(images, None)  # without an objective
    return bound.answer(partial(bound.run, steps=steps, lam=None), points)


def threshold_for(
    operator: Operator, solutions: Solutions, asked: float | None
) -> tuple[float, str]:
    """The score from which boxes are listed, and how it was chosen."""
    own = operator.provenance.get(DETECTION, {}).get("threshold")
    if asked is not None:
        return asked, "as asked for"
    if own is not None:
        return own, "which suited its training images best"
    by_share = max(BY_SHARE, 2 / solutions.points.shape[1])  # one start alone says nothing
    usual = by_share if solutions.quality is None else BY_QUALITY
    return usual, "the default, as the operator has no threshold of its own"


def in_pixels(found: DistinctBoxes, k: int, width: int, height: int) -> list[Box]:
    """The boxes of one of the pictures, which has this size."""
    real = found.real[k]
    sides = corners(found.boxes[k][real]).double().cpu()
    low, high = (sides * torch.tensor([width, height] * 2)).split(2, -1)
    known = torch.stack((found.share[k][real], found.score[k][real]), -1).double().cpu()
    return [Box(*each) for each in torch.cat((low, high - low, known), -1).tolist()]


def doubts(
    boxes: list[Box], width: int, height: int, operator: Operator, starts: int
) -> Iterator[str]:
    """What speaks against relying on the boxes of a picture of this size."""
    side = side_of(operator)
    alone = sum(each.share for each in boxes if each.share * starts < 1.5)
    short, long = sorted((width, height))
    if operator.doubtful:
        yield f"The operator is not to be trusted: {operator.doubtful}."
    if starts < ENOUGH_STARTS:
        yield f"With only {counted(starts, 'start')}, boxes may have been missed: give 256."
    elif alone > SCATTERED:
        yield (
            f"{alone:.0%} of the starts ended where no other did: the operator has not settled on "
            "this picture, which may be unlike those that it was trained on."
        )
    if long > SLIM * short:
        yield (
            f"The picture is {long / short:.1f} times as long on one side as on the other, and the "
            "operator sees it stretched to a square: better give parts of it."
        )
    if long < SMALL * side:
        yield (
            f"The picture has only {width} x {height} pixels, and the operator looks at "
            f"{side} x {side}."
        )
