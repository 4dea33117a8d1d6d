"""Where `x` lives: how to sample a space, project onto it, measure in it, tell what is inside.
One file a space. Rests on `common`."""

from typing import Any

from proxlearn.common.registry import Registry
from proxlearn.spaces.base import Space
from proxlearn.spaces.box import Box
from proxlearn.spaces.circles import Circles
from proxlearn.spaces.planes import Planes
from proxlearn.spaces.product import Product
from proxlearn.spaces.signs import Signs
from proxlearn.spaces.sphere import Sphere

__all__ = [
    "Box",
    "Circles",
    "Planes",
    "Product",
    "Signs",
    "Space",
    "Sphere",
    "space_from",
    "spaces",
]

spaces = Registry("space", __name__, Space)


def space_from(description: dict[str, Any], own: Any = None) -> Space:
    """Rebuild a space from what `Space.describe` wrote; `own` is one of the user's."""
    return spaces.rebuild(description, own)
