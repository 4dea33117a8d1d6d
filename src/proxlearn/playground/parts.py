"""What the page is told of the operator for symmetries: generated parts that are turned."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from proxlearn.common.seeds import generator_for
from proxlearn.meshes import parts
from proxlearn.meshes.mesh import Mesh, sampled, scaled
from proxlearn.operators.operator import Operator
from proxlearn.playground.playable import Playable, packed
from proxlearn.shapes.detect import APPLICATIONS

POINTS = 256  # of the cloud that the operator sees
STARTS = 256
# What each is made by, and the seed of its sizes.
SHOWN = {
    "flange": (parts.flange, 0),
    "nut": (parts.nut, 1),
    "gear": (parts.gear, 0),
    "bracket": (parts.even_bracket, 0),
    "uneven bracket": (parts.angle_bracket, 2),
    "washer with a collar": (parts.collared_washer, 0),
    "ratchet": (parts.ratchet, 0),
    "plate with a boss": (parts.cut_plate, 2),
}
POSE = (28.0, -38.0, -12.0)  # from which a part is seen at first


@dataclass(frozen=True)
class Turned(Playable):
    """Planes of a part that is turned. In the page, tau is which part there is and three angles;
    the operator sees points of the turned part."""

    @property
    def view(self) -> str:
        return "body"

    @property
    def applications(self) -> int:
        return APPLICATIONS

    @property
    def shape(self) -> list[int]:
        return [1, POINTS, 6]

    @property
    def tau(self) -> Tensor:
        points, normals = sampled(shown_parts()[0], POINTS, generator_for(0, "cloud"))
        assert normals is not None
        return self.operator.instances.batch(torch.cat((points, normals), 1))

    def tau_range(self) -> dict[str, Any]:
        last = len(SHOWN) - 1
        return {
            "kind": "pose",
            "low": [0, -180, -90, -180],
            "high": [last, 180, 90, 180],
            "labels": ["part", "turn", "tilt", "roll"],
            "unit": "°",
        }

    def files(self) -> dict[str, Any]:
        made = zip(SHOWN, shown_parts())
        return {"parts": [{"name": name} | _numbers(mesh) for name, mesh in made]}


def turned(operator: Operator) -> Turned:
    """The operator for symmetries, or one of a user's own."""
    return Turned(
        operator,
        "symmetry",
        "Symmetries",
        "All planes that reflect a part onto itself. The operator sees points of the part and "
        "takes random planes, drawn as circles around it, to where they are mirrors. Those that "
        "are, by how far reflected points are from the surface, are listed, and drawn on the part.",
        "Drag the part to turn it, or drop a file of your own: STL or OBJ.",
        starts=STARTS,
        presets=lambda: {name: [k, *POSE] for k, name in enumerate(SHOWN)},
        more={"files": {"chosen": "Part", "words": "Your own ...", "accept": ".stl,.obj"}},
    )


def shown_parts() -> list[Mesh]:
    """The parts at unit size, as they are before they are turned."""
    made = (of(parts.Draw(torch.Generator().manual_seed(seed))) for of, seed in SHOWN.values())
    return [scaled(parts.in_its_frame("", each).mesh)[0] for each in made]


def _numbers(mesh: Mesh) -> dict[str, str]:
    """Of 32 and of 16 bits, compressed."""
    content = {"vertices": mesh.vertices.numpy(), "faces": mesh.faces.numpy().astype("uint16")}
    return {name: packed(each.tobytes()) for name, each in content.items()}
