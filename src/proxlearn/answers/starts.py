"""Where solving begins: starts that are given, or drawn, or drawn until few optima are missed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral, Number

import torch
from rich.console import Console
from torch import Tensor

from proxlearn.answers.solutions import PER_POINT, Solutions
from proxlearn.answers.unseen import unseen_mass
from proxlearn.common.batch import Device, Points
from proxlearn.common.checks import floats, is_number, plain_number, said, seed_of, whole
from proxlearn.common.log import logger
from proxlearn.common.memory import afford
from proxlearn.common.seeds import generator_for
from proxlearn.errors import InputError
from proxlearn.gpu.parallel import this_process
from proxlearn.spaces import Space

FIRST_STARTS, MOST_STARTS = 256, 65_536  # of "auto": at first, and where it gives up
COPIES, NUMBERS = 6, 4  # of a start and besides it, held while it is solved
SMALL = 1 << 26  # bytes: for less, the free memory is not looked up
UNSEEN_LEVEL = 0.01  # the unseen mass that "auto" is content with


def from_starts(
    run: Callable[[Points], Solutions],
    space: Space,
    instances: int,
    starts: int | str | Tensor | Sequence,
    seed: int,
    device: Device,
    unseen_level: float = UNSEEN_LEVEL,
) -> Solutions:
    """What `run` makes of the starts.

    `run`: takes starts (i n d) to solutions, with values where there is an objective;
    `space`, `instances`, `seed`, `device`: where starts are drawn, for how many instances, from
    which seed, and where they are then kept;
    `starts`: how many, or the points themselves, or "auto": twice as many each time, up to
    `MOST_STARTS`, until the unseen mass of every instance is at most `unseen_level`.

    Points on their way to one optimum look like many. So "auto" polishes solutions that have
    values, and counts and returns the polished ones.
    """
    if not (isinstance(starts, str) and starts == "auto"):
        return run(starting_points(space, starts, instances, seed, device))
    if not (is_number(unseen_level) and 0 < unseen_level < 1):
        raise InputError(f"unseen_level must be a share between 0 and 1, not {said(unseen_level)}.")
    # The first starts are those of a fixed number.
    generator = generator_for(seed_of(seed), "starts")

    def draw(count: int) -> Solutions:
        _afford(space, instances, count, device)
        found = run(space.sample(instances, count, generator=generator).to(device))
        return found if found.values is None else found.polished()

    return _until_little_is_unseen(draw, unseen_level)


def _until_little_is_unseen(draw: Callable[[int], Solutions], unseen_level: float) -> Solutions:
    """Solutions from ever more starts, of which `draw` solves so many. Their `doubts` are those of
    the last draw, half of all."""
    found, console = draw(FIRST_STARTS), Console(stderr=True)
    console.quiet = not (console.is_terminal and this_process().first)
    with console.status("") as status:  # a line that is gone in the end
        while (done := found.points.shape[1]) < MOST_STARTS:
            if (mass := unseen_mass(found)) <= unseen_level:
                break
            standing = (
                f"{done:,} starts: one more would find a new optimum with a chance of {mass:.2%}, "
                f"and {unseen_level:.2%} is asked for; solving from {2 * done:,}"
            )
            logger.info(standing)
            status.update(standing)
            more = draw(done)
            pairs = {name: (getattr(found, name), getattr(more, name)) for name in PER_POINT}
            both = {k: torch.cat(pair, 1) for k, pair in pairs.items() if pair[0] is not None}
            found = replace(more, **both)
    return found


def starting_points(
    space: Space, starts: int | Tensor | Sequence, instances: int, seed: int, device: Device
) -> Points:
    """The starts of every instance: drawn from the space, or those given."""
    seed, starts = seed_of(seed), plain_number(starts)
    if isinstance(starts, Integral) and not isinstance(starts, bool):
        starts = whole("starts", starts, 1)
        _afford(space, instances, starts, device)
        generator = generator_for(seed, "starts")  # on the CPU, so that every device starts alike
        return space.sample(instances, starts, generator=generator).to(device)
    expected = "a whole number, points or 'auto'"
    if isinstance(starts, Number | str | None):
        raise InputError(f"starts must be {expected}, not {said(starts)}.")
    points = floats("starts", starts, expected).detach()
    points = points.expand(instances, -1, -1) if points.ndim == 2 else points
    if points.ndim != 3 or points.shape[::2] != (instances, space.dim) or not points.shape[1]:
        raise InputError(
            f"starts has shape {tuple(points.shape)}; expected a number, (points, {space.dim}) "
            f"or ({instances}, points, {space.dim})."
        )
    _afford(space, instances, points.shape[1], device)
    return points.to(device)


def _afford(space: Space, instances: int, count: int, device: Device) -> None:
    """An error where so many starts of each instance need more memory than there is."""
    needed = 4 * instances * count * (COPIES * space.dim + NUMBERS)
    if needed < SMALL:
        return
    what, instead = f"{count:,} starts", "give fewer"
    if instances > 1:
        what += f" for each of {instances:,} taus"
        instead += ", or solve some taus at a time (operator.stream, or proxlearn solve --taus)"
    for place in {"cpu", str(device)}:
        afford(needed, what, instead, place)
