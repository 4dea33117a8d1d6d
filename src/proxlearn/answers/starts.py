"""Where solving begins."""

from collections.abc import Sequence
from numbers import Integral

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.seeds import generator_for
from proxlearn.errors import InputError
from proxlearn.spaces import Space


def starting_points(
    space: Space,
    starts: int | Tensor | Sequence,
    instances: int,
    seed: int,
    device: torch.device | str,
) -> Float[Tensor, "i n d"]:
    """The starts of every instance: drawn from the space, or those given."""
    if isinstance(starts, Integral) and not isinstance(starts, bool):
        starts = int(starts)
        if starts < 1:
            raise InputError(f"starts must be at least 1, not {starts}.")
        generator = generator_for(seed, "starts")  # on the CPU, so that every device starts alike
        return space.sample(instances, starts, generator=generator).to(device)
    points = torch.as_tensor(starts, dtype=torch.float32)
    points = points.expand(instances, -1, -1) if points.ndim == 2 else points
    if points.ndim != 3 or points.shape[::2] != (instances, space.dim) or not points.shape[1]:
        raise InputError(
            f"starts has shape {tuple(points.shape)}; expected a number, ({'points'}, {space.dim}) "
            f"or ({instances}, points, {space.dim})."
        )
    if not points.isfinite().all():
        raise InputError("starts holds NaN or infinite numbers; every entry must be finite.")
    return points.to(device)
