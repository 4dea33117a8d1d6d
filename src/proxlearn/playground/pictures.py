"""What the page is told of an operator for detection: pictures in which boxes flow to things."""

from dataclasses import dataclass
from typing import Any

from jaxtyping import UInt8
from torch import Tensor

from proxlearn.detections.detect import STARTS
from proxlearn.detections.detected import BY_QUALITY, BY_SHARE, DETECTION, side_of
from proxlearn.operators.bound_operator import MOST_APPLICATIONS
from proxlearn.operators.operator import Operator
from proxlearn.playground.playable import Playable, packed
from proxlearn.problems.base import held_out
from proxlearn.problems.detection import Detection

SCENES = 3  # generated pictures that come with the page


@dataclass(frozen=True)
class Pictured(Playable):
    """Boxes in a picture. In the page, tau is which picture; the operator sees its pixels."""

    @property
    def view(self) -> str:
        return "photo"

    @property
    def applications(self) -> int:
        return MOST_APPLICATIONS if self.operator.stops else self.operator.applications

    @property
    def how_often(self) -> str:
        if not self.operator.stops:
            return super().how_often
        return f"until boxes get no better, at most {self.applications} times"

    @property
    def shape(self) -> list[int]:
        side = side_of(self.operator)
        return [1, 3, side, side]

    @property
    def tau(self) -> Tensor:
        return self.operator.instances.batch(scenes(side_of(self.operator))[:1])

    def tau_range(self) -> dict[str, Any]:
        return {"kind": "picture", "low": [], "high": [], "labels": []}

    def files(self) -> dict[str, Any]:
        drawn = scenes(side_of(self.operator))
        return {"pictures": [packed(each.numpy().tobytes()) for each in drawn]}


def pictured(operator: Operator, title: str) -> Pictured:
    """A user's own operator for detection."""
    rates = operator.network.rates
    own = operator.provenance.get(DETECTION, {}).get("threshold")
    how = "the default, as it has no threshold of its own"
    return Pictured(
        operator,
        "own",
        title,
        "Boxes around the things in a picture. The operator moves random boxes by what it sees "
        "under them; where boxes gather, there is one.",
        "Drop a picture of your own, or choose one.",
        starts=STARTS,
        presets=lambda: {f"scene {k + 1}": [float(k)] for k in range(SCENES)},
        more={
            "files": {"chosen": "Picture", "words": "Your own ...", "accept": "image/*"},
            "rises": operator.stops,
            "rates": rates,
            "threshold": (BY_QUALITY if rates else BY_SHARE) if own is None else own,
            "chosen": how if own is None else "which suited its training images best",
        },
    )


def scenes(side: int) -> UInt8[Tensor, "k 3 s s"]:
    """Generated pictures, always the same."""
    problem = Detection(side=side)
    return (255 * held_out(problem, SCENES)["image"]).round().byte()
