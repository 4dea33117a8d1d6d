"""The boxes that an operator starts from."""

from jaxtyping import Float
from torch import Tensor, cat
from torch.quasirandom import SobolEngine

from proxlearn.answers.starts import starting_points
from proxlearn.operators.operator import Operator

SMALLEST = 0.03  # of the sides of a start, in parts of the picture


def starting_boxes(operator: Operator, count: int, seed: int) -> Float[Tensor, "n 4"]:
    """So many boxes, on the operator's device. They are spread evenly (Sobol's points, shifted by a
    random one), so that fewer small things are missed; and of their sides every order of magnitude
    is as likely: if sides were uniform, one box in a hundred would have both below a tenth of the
    picture, and so have many things."""
    drawn = starting_points(operator.space, count, 1, seed, operator.device)[0]
    unit = (SobolEngine(4).draw(len(drawn)).to(drawn) + drawn[0]) % 1
    return cat((unit[:, :2], SMALLEST ** (1 - unit[:, 2:])), 1)
