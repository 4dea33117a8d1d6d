"""Where `x` lives, a file a space: sample it, project onto it, measure in it. Rests on `common`."""

from proxlearn.common.registry import Registry
from proxlearn.spaces.base import Space
from proxlearn.spaces.box import Box
from proxlearn.spaces.circles import Circles
from proxlearn.spaces.lines import Lines
from proxlearn.spaces.planes import Planes
from proxlearn.spaces.product import Product
from proxlearn.spaces.signs import Signs
from proxlearn.spaces.sphere import Sphere

__all__ = ["Box", "Circles", "Lines", "Planes", "Product", "Signs", "Space", "Sphere", "space_from"]

spaces = Registry("space", __name__, Space)
space_from = spaces.rebuild  # from what `Space.describe` wrote
