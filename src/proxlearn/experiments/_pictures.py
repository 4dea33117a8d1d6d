"""The images of the experiment on boxes, some at a time, and what methods find in them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.calculus.loop import now
from proxlearn.common.batch import Batch, Device, move, select, size
from proxlearn.common.seeds import generator_for
from proxlearn.detections.distinct import DistinctBoxes, together
from proxlearn.experiments._shared import SEED, Folder
from proxlearn.images.coco import read_coco
from proxlearn.measure.detection import AT_ONCE, Truth, truth_of
from proxlearn.networks.encoders.image import Image
from proxlearn.problems.base import Split, drawn
from proxlearn.problems.detection import Detection
from proxlearn.show import terminal

GENERATED = 1000  # images to test on, where none are given
BACKBONE = "efficientnet_lite0"  # that the weights are of
Finder = Callable[[Float[Tensor, "i 3 s s"]], DistinctBoxes]


def problem_of(folder: Folder, side: int | None) -> tuple[Detection, str]:
    """Boxes in the images of the data folder, or in generated ones; and what they are, in words."""
    if folder.data is None:
        return Detection(side=side), "Images are generated, and new ones in every step."
    said = f"Images are those of {folder.data.name}."
    if folder.data.suffix == ".npz":
        return Detection(folder.data, side), said
    packed, report = read_coco(folder.data)
    if folder.progress:
        terminal.say(f"{said} {report}")
    return Detection(packed, side), f"{said} {report}"


class Begun(NamedTuple):
    """The backbone of all operators of a run, and the file of weights that it begins with."""

    backbone: str
    weights: str | None

    @staticmethod
    def of(folder: Folder) -> "Begun":
        """As given, else one that is trained from nothing."""
        if folder.weights is None:
            return Begun("small", None)
        return Begun(BACKBONE, str(folder.weights))


class Pooled(Detection):
    """The same images for the paper's network, which sees of each nothing but the code of the
    whole."""

    architecture = "paper"

    def __init__(self, problem: Detection, begun: Begun):
        self.data, self.instances, self.stores = problem.data, problem.instances, problem.stores
        self.begun = begun

    def encoder(self):
        return Image(self.instances, **self.begun._asdict())


class Found(NamedTuple):
    """The boxes of all images, and the seconds that an image took, of many together."""

    boxes: DistinctBoxes
    seconds: float


@dataclass(frozen=True)
class Pictures:
    """Images on a device; only some are there as pixels at a time."""

    problem: Detection
    drawn: Batch
    truth: Truth

    @staticmethod
    def of(problem: Detection, split: Split, count: int, device: Device) -> "Pictures":
        some = move(drawn(problem, count, split, generator_for(SEED, split)), device)
        every = [truth_of(problem, tau) for tau in looked_up(problem, some)]
        return Pictures(problem, some, Truth(*map(torch.cat, zip(*every))))

    def __len__(self) -> int:
        return size(self.drawn)

    def by_chance(self, count: int) -> Batch:
        """Whole instances, drawn at random, always the same."""
        lots = torch.randperm(len(self), generator=generator_for(SEED, "shown"))[:count]
        return self.problem.look_up(select(self.drawn, lots.to(self.truth.real.device)))

    def found(self, find: Finder) -> Found:
        """What a method finds in all of them."""
        device, seconds, parts = self.truth.real.device, 0.0, []
        for tau in looked_up(self.problem, self.drawn):
            images = self.problem.observe(tau)
            began = now(device)
            parts.append(find(images))
            seconds += now(device) - began
        return Found(together(parts), seconds / len(self))


def to_test_on(problem: Detection, most: int | None) -> int:
    """How many images there are to test on, up to `most`; none is taken twice."""
    if (data := problem.data) is None:
        return most or GENERATED
    there = len(data) - data.trained or len(data)
    return min(most or there, there)


def looked_up(problem: Detection, some: Batch) -> Iterator[Batch]:
    """Whole instances of what was drawn, some at a time."""
    for k in range(0, size(some), AT_ONCE):
        yield problem.look_up(select(some, slice(k, k + AT_ONCE)))
