"""How good boxes are: precision and recall, average precision, witnessed metrics, as a row; and the
score from which boxes are best listed."""

import math
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.common.batch import Batch, Flags
from proxlearn.common.provenance import Row
from proxlearn.common.seeds import generator_for
from proxlearn.detections.coco import MOST
from proxlearn.detections.detected import DETECTION, solved
from proxlearn.detections.distinct import DistinctBoxes, distinct_boxes, together
from proxlearn.detections.starts import starting_boxes
from proxlearn.errors import InputError
from proxlearn.images.boxes import overlaps
from proxlearn.measure.evaluate import over_trials
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import Problem, sampled
from proxlearn.spaces import Box

HIT = 0.5  # of the IoU, from which a box is that of a true one
RECALLS = 101  # at which precision is read for its average
AREAS = (0.0, 0.01, 0.05, 0.2, math.inf)  # of true boxes, in parts of the picture
DELTA = 0.1  # of the witnessed precision
WITNESSES, TRIALS = 1024, 10
TRIED = 20  # scores from which boxes might be listed
AT_ONCE = 32  # pictures
UNIT = Box(0.0, 1.0, dim=4)


class Truth(NamedTuple):
    """The true boxes of every picture, as `problem.known(tau)` has them."""

    boxes: Float[Tensor, "i k 4"]
    real: Bool[Tensor, "i k"]


class Calibration(NamedTuple):
    """A score from which boxes are listed, with what is then right of them."""

    threshold: float
    precision: float
    recall: float
    f1: float


def truth_of(problem: Problem, tau: Batch) -> Truth:
    """The true boxes of instances."""
    if (known := problem.known(tau)) is None:
        raise InputError(
            f"{problem.name!r} knows no solutions of its instances, so that boxes have nothing to "
            "be compared with: define known(tau)."
        )
    return Truth(*known)


def found_by(
    operator: Operator,
    images: Float[Tensor, "i 3 s s"],
    starts: int = 256,
    seed: int = 0,
    steps: int | None = None,
) -> DistinctBoxes:
    """The boxes of pictures, some at a time, with the same starts for each; on the device of the
    pictures. `steps`: how many applications, by default until points stop."""
    points = starting_boxes(operator, starts, seed)
    some = (images[k : k + AT_ONCE] for k in range(0, len(images), AT_ONCE))
    parts = (distinct_boxes(solved(each, operator, points, steps)) for each in some)
    return together(each.to(images.device) for each in parts)


def row_of(
    found: DistinctBoxes,
    truth: Truth,
    threshold: float = 0.0,
    seed: int = 0,
    wd_threshold: float | None = None,
) -> Row:
    """All metrics. Average precision is of all boxes, all else of those with a score of at least
    the threshold; the witnessed metrics have one of their own, where it is given. None stands for
    what cannot be told, such as the recall of boxes of a size that there are none of."""
    listed = found.above(threshold)
    hits, there = matched(listed, truth)
    right, said, total = (int(each.sum()) for each in (hits, listed.real, truth.real))
    wd_threshold = threshold if wd_threshold is None else wd_threshold
    return {
        "images": len(found),
        "boxes": total,
        "listed": said,
        "threshold": threshold,
        "precision": _share(right, said),
        "recall": _share(right, total),
        "f1": _share(2 * right, said + total),
        "ap50": average_precision(found, truth),
        **recall_by_area(there, truth),
        "wd_threshold": wd_threshold,
        **witnessed(found.above(wd_threshold), truth, seed, TRIALS),
    }


def witnessed(listed: DistinctBoxes, truth: Truth, seed: int, trials: int) -> Row:
    """The witnessed metrics with t infinite: all boxes listed count."""
    witnesses = UNIT.sample(trials, WITNESSES, generator=generator_for(seed, "witnesses"))
    some = as_solutions(listed.boxes, listed.real)
    seen = over_trials(some, as_solutions(*truth), witnesses, None, (DELTA,))
    return {name: number for name, number in seen.items() if not name.startswith("rho")}


def as_solutions(boxes: Float[Tensor, "i k 4"], real: Flags) -> Solutions:
    """Boxes as a set of solutions, for the witnessed metrics with t infinite: all that are real
    count."""
    return Solutions(UNIT, boxes, boxes, real)


def matched(
    found: DistinctBoxes, truth: Truth, least: float = HIT
) -> tuple[Bool[Tensor, "i k"], Bool[Tensor, "i m"]]:
    """Which boxes that were found, and which true ones, are matched when as many as possible are,
    each with one that it overlaps by at least so much (the paper's Hungarian matching, D.8)."""
    from scipy.optimize import linear_sum_assignment

    pairs = (overlaps(found.boxes, truth.boxes) >= least) & _both(found, truth)
    hits, there = torch.zeros_like(found.real), torch.zeros_like(truth.real)
    for k, allowed in enumerate(pairs.cpu().numpy()):
        some, others = linear_sum_assignment(allowed, maximize=True)
        fits = allowed[some, others]
        hits[k, some[fits].tolist()] = True
        there[k, others[fits].tolist()] = True
    return hits, there


def greedily_matched(found: DistinctBoxes, truth: Truth, least: float = HIT) -> Flags:
    """Which boxes are right by COCO's rule: each, the best first, takes the true one that it
    overlaps most, by at least so much, of those that are left."""
    pairs = overlaps(found.boxes, truth.boxes).masked_fill(~_both(found, truth), -1.0)
    hits, left = torch.zeros_like(found.real), truth.real.clone()
    for k in range(found.boxes.shape[1] if truth.boxes.shape[1] else 0):
        most, which = pairs[:, k].masked_fill(~left, -1.0).max(1)
        hits[:, k] = most >= least
        left &= ~(hits[:, k, None] & (torch.arange(left.shape[1]).to(which) == which[:, None]))
    return hits


def average_precision(found: DistinctBoxes, truth: Truth, least: float = HIT) -> float | None:
    """COCO's, over all pictures: of boxes by their scores, the best precision at a recall of at
    least 0, 0.01, ... 1, on average; None where there are no true boxes."""
    if not (total := int(truth.real.sum())):
        return None
    hits, _ = _by_score(found, truth, least)
    right = hits.cumsum(0).double()
    precision = right / torch.arange(1, len(right) + 1)
    best = precision.flip(0).cummax(0).values.flip(0)  # at this recall or a larger one
    at = torch.searchsorted(right / total, torch.linspace(0, 1, RECALLS, dtype=torch.float64))
    return torch.cat((best, best.new_zeros(1)))[at].mean().item()


def best_threshold(found: DistinctBoxes, truth: Truth, least: float = HIT) -> Calibration:
    """The score from which boxes are best listed: where F1, the harmonic mean of precision and
    recall, is largest."""
    hits, scores = _by_score(found, truth, least)
    total = int(truth.real.sum())
    if not hits.any():
        raise InputError(
            f"None of the {len(hits)} boxes is that of one of the {total} true ones, so that no "
            "score tells right from wrong: train the operator longer."
        )
    right, listed = hits.cumsum(0).double(), torch.arange(1, len(hits) + 1)
    f1 = 2 * right / (listed + total)
    ends = torch.cat((scores[1:] < scores[:-1], scores.new_ones(1) > 0))  # not between equal ones
    k = int(f1.where(ends, -1.0).argmax())
    return Calibration(
        scores[k].item(), (right[k] / listed[k]).item(), (right[k] / total).item(), f1[k].item()
    )


def wd_threshold(found: DistinctBoxes, truth: Truth, seed: int = 0) -> float:
    """The score from which the boxes have the smallest witnessed divergence. It is below that of
    the best F1: a picture of which no box is listed, is as far from the truth as can be."""
    scores = torch.linspace(0, found.score.max().item(), TRIED + 1)[:-1].tolist()
    return min(scores, key=lambda each: witnessed(found.above(each), truth, seed, 1)["wd"])


def calibrate(
    operator: Operator, problem: Problem, images: int = 512, starts: int = 256, seed: int = 0
) -> Calibration:
    """Find the best threshold on training images, and let the operator know: `px.detect` then
    lists boxes from there on, and `save` keeps it (`operator.provenance["detection"]`)."""
    generator = generator_for(seed, "threshold", operator.device)
    tau = sampled(problem, images, "train", generator)
    found = found_by(operator, problem.observe(tau), starts, seed)
    best = best_threshold(found, truth_of(problem, tau))
    operator.provenance[DETECTION] = best._asdict() | {"images": images, "starts": starts}
    return best


def recall_by_area(there: Flags, truth: Truth) -> dict[str, float | None]:
    """Of true boxes by their share of the picture, how many were matched."""
    areas, recalls = truth.boxes[..., 2:].prod(-1), {}
    for low, high in pairwise(AREAS):
        some = truth.real & (areas >= low) & (areas < high)
        name = f"recall@{100 * low:g}-{100 * min(high, 1):g}%"
        recalls[name] = _share(int((there & some).sum()), int(some.sum()))
    return recalls


def _by_score(found: DistinctBoxes, truth: Truth, least: float) -> tuple[Tensor, Tensor]:
    """Whether each of the boxes of all pictures is right, and its score, the best first."""
    hits = greedily_matched(found, truth, least)[:, :MOST]
    real, scores = found.real[:, :MOST], found.score[:, :MOST]
    scores, order = scores[real].cpu().sort(descending=True, stable=True)
    return hits[real].cpu()[order], scores


def _both(found: DistinctBoxes, truth: Truth) -> Bool[Tensor, "i k m"]:
    """Which pairs are of boxes that are both real."""
    return found.real[..., None] & truth.real[:, None]


def _share(some: int, every: int) -> float | None:
    return some / every if every else None
