"""One loop for every method that goes step by step: solutions, curves over steps, timed races.

The loop splits instances and points into parts of a bounded size, and takes each part through all
its steps before the next. Where a method can tell that points have stopped, they cost nothing more;
on a GPU a step that can be captured is replayed as one graph.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Shaped
from torch import Tensor

from proxlearn.common.batch import (
    Batch,
    Counts,
    Flags,
    Points,
    Values,
    first_those,
    leaves,
    pieces,
    tree_map,
)
from proxlearn.common.progress import late_bar
from proxlearn.errors import InputError
from proxlearn.gpu.capture import WARM_UP, captured
from proxlearn.problems.base import Problem

ON_CPU, ON_GPU = 1 << 17, 1 << 20  # points at once; fewer cost more calls, more cost memory
TICKS = 100  # how often a progress bar is updated, at most
_shown: ContextVar[Callable[[float], None] | None] = ContextVar("_shown", default=None)

State = Any  # a named tuple of tensors; its `x` (i n d) is where the points are


@contextmanager
def progress_shown(name: str) -> Iterator[None]:
    """Within, a loop that takes long has a progress bar with this name."""
    with late_bar(name) as show:
        before = _shown.set(show)
        try:
            yield
        finally:
            _shown.reset(before)


class Method(ABC):
    """How points are taken to solutions, step by step: a value that holds settings alone. All that
    changes on the way is in a state, which is passed in and returned."""

    captures: ClassVar[bool] = False  # whether a step can be captured: it never waits for a GPU

    def prepare(self, problem: Any, tau: Batch, starts: Points) -> Any:
        """What the steps need of these instances, computed once; by default the problem and tau.
        `starts` are all that an instance has; `init` gets a part of them at a time."""
        return problem, tau

    @abstractmethod
    def init(self, prepared: Any, x: Points) -> State:
        """The state of points that have not moved yet; x is a copy that may be changed."""

    @abstractmethod
    def one_step(self, prepared: Any, state: State) -> State:
        """The state after one more step; it may be the one given, changed in place."""

    def many_steps(self, prepared: Any, state: State, count: int) -> State:
        """The state after several steps, for methods that do these faster than one by one."""
        for _ in range(count):
            state = self.one_step(prepared, state)
        return state

    def moving(self, state: State) -> Flags | None:
        """Which points go on after a step; None where a method cannot tell. Where it can, every
        tensor of the state is (i n ...), and steps are given only some columns of it."""
        return None

    def found(self, prepared: Any, state: State) -> Points:
        """The solutions so far: where the points are, unless a method remembers better places."""
        return state.x

    def rated(self, prepared: Any, x: Points) -> Values | None:
        """How good solutions are, from 0 to 1; None where a method cannot tell."""
        return None

    def at_once(self, x: Points) -> int:
        """How many points go through the loop at once."""
        return ON_GPU if x.is_cuda else ON_CPU


class Reached(NamedTuple):
    """Where the points are after some steps; the other fields are None where a method cannot
    tell."""

    x: Points
    steps: Counts | None = None  # how many each point made
    arrived: Flags | None = None  # whether it stopped by itself
    quality: Values | None = None  # how good it is, from 0 to 1


@dataclass(frozen=True)
class Loop:
    """Points on their way to solutions."""

    method: Method  # what takes them on
    problem: Problem | None  # None for a method that needs no objective
    tau: Batch
    starts: Points  # where they begin

    def run(self, steps: int) -> Reached:
        """Where every point is after so many steps, or when it stopped before."""
        return self.curve((steps,))[0]

    def curve(self, at: Sequence[int]) -> list[Reached]:
        """Where every point is after each of several numbers of steps, in one pass.
        at: the numbers, in ascending order; 0 is the starts themselves."""
        if not at or list(at) != sorted(at) or at[0] < 0:
            raise InputError(f"at= must be numbers of steps, 0 or more and ascending, not {at}.")
        show, done, total = _shown.get(), 0, max(1, at[-1] * self.starts[..., 0].numel())
        ticks = range(0, at[-1], max(1, at[-1] // TICKS)) if show else ()

        def along(walk: _Walk) -> list[Reached]:
            nonlocal done
            reached = {}
            for before, k in pairwise((0, *sorted({*at, *ticks}))):
                if k > before:
                    walk.advance(k - before)
                if k in at:
                    reached[k] = walk.reached()
                done += (k - before) * walk.points
                if show:
                    show(done / total)
            return [reached[k] for k in at]

        return self._in_parts(along)

    def run_for(self, seconds: float) -> tuple[Reached, int]:
        """Where every point is after as many steps as fit into so many seconds, at least one, and
        how many these are. What a method does once at the beginning is not timed. The first part of
        the points finds the number of steps, in its share of the time; the others make as many."""
        steps = 0

        def within(walk: _Walk) -> list[Reached]:
            nonlocal steps
            if steps:
                walk.advance(steps)
            else:
                share = walk.points / self.starts[..., 0].numel()
                steps = walk.advance_for(share * seconds, self.starts.device)
            return [walk.reached()]

        return self._in_parts(within)[0], steps

    @torch.no_grad()
    def _in_parts(self, walked: "Callable[[_Walk], list[Reached]]") -> list[Reached]:
        """What `walked` gives for each part of the points, put together again."""
        most, rows = self.method.at_once(self.starts), []
        for _, _, some, x in pieces(self.tau, self.starts, max(most, self.starts.shape[1])):
            prepared = self.method.prepare(self.problem, some, x)
            columns = [walked(_Walk(self.method, prepared, part)) for part in x.split(most, 1)]
            rows.append([_joined(each, 1) for each in zip(*columns)])
        return [_joined(each, 0) for each in zip(*rows)]


def _joined(parts: Sequence[Reached], dim: int) -> Reached:
    x, *others = zip(*parts)
    joined = (None if each[0] is None else torch.cat(each, dim) for each in others)
    return Reached(torch.cat(x, dim), *joined)


def now(device: torch.device) -> float:
    """The time in seconds, once the device has done all that it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


class _Walk:
    """Some of the points on their way."""

    def __init__(self, method: Method, prepared: Any, x: Points):
        self.method, self.prepared, self.points = method, prepared, x[..., 0].numel()
        self.state = method.init(prepared, x.clone(memory_format=torch.contiguous_format))
        self.moving = self.replay = None
        if method.moving(self.state) is not None:
            self.moving = torch.ones_like(x[..., 0], dtype=torch.bool)
            self.steps = torch.zeros_like(self.moving, dtype=torch.int32)
        elif method.captures and x.is_cuda:
            self.state = _mapped(torch.clone, self.state)  # no two of them in the same place
            self.replay = captured(self._step_in_place, x.device)

    def advance(self, count: int) -> None:
        if self.moving is not None:
            for _ in range(count):
                if not self._step_what_moves(self.moving):
                    break
        elif self.replay is not None:
            for _ in range(count):
                self.replay()
        else:
            self.state = self.method.many_steps(self.prepared, self.state, count)

    def advance_for(self, seconds: float, device: torch.device) -> int:
        """Go on until the time is over; how many steps these were. The clock is looked at ever more
        rarely, since that waits for the GPU."""
        untimed = WARM_UP + 1 if device.type == "cuda" else 0  # until a graph is captured
        self.advance(untimed)
        began, timed, more = now(device), 0, 1
        while more > 0:
            self.advance(more)
            timed, spent = timed + more, now(device) - began
            more = min(timed, int(timed * (seconds - spent) / spent))
            if self.moving is not None and not self.moving.any():
                break
        return untimed + timed

    def reached(self) -> Reached:
        x = self.method.found(self.prepared, self.state).clone()
        quality = self.method.rated(self.prepared, x)
        if self.moving is None:
            return Reached(x, quality=quality)
        return Reached(x, self.steps.clone(), ~self.moving, quality)

    def _step_in_place(self) -> None:
        """A step that writes its results where the state was, as a replayed graph has to."""
        after = leaves(self.method.one_step(self.prepared, self.state))
        changed = [(own, new) for own, new in zip(leaves(self.state), after) if own is not new]
        kept = {each.untyped_storage().data_ptr() for each in leaves(self.state)}
        # What is only moved from one place to another is copied before that place is written to.
        safe = [n.clone() if n.untyped_storage().data_ptr() in kept else n for _, n in changed]
        for (own, _), new in zip(changed, safe):
            own.copy_(new)

    def _step_what_moves(self, moving: Flags) -> bool:
        """A step of the points that move, in as many columns as the busiest instance has of them;
        whether there were any."""
        busiest = int(moving.sum(1).max())
        if not busiest:
            return False
        some = first_those(moving)[:, :busiest]
        still = moving.gather(1, some)

        def taken(own: Tensor) -> Tensor:
            return own.take_along_dim(_wide(some, own), 1)

        def put_back(own: Tensor, old: Tensor, new: Tensor) -> Tensor:
            new = torch.where(_wide(still, own), new, old)
            return own.scatter(1, _wide(some, own).expand_as(new), new)

        before = _mapped(taken, self.state)
        after = self.method.one_step(self.prepared, before)
        self.state = _mapped(put_back, self.state, before, after)
        self.steps.scatter_add_(1, some, still.int())
        goes = self.method.moving(after)
        moving.scatter_(1, some, still if goes is None else goes & still)
        return True


def _mapped(function: Callable[..., Tensor], state: State, *others: State) -> State:
    """A function of every tensor of a state, and of its counterparts in others; what is no tensor,
    such as a number of steps, is as in the last of them."""

    def of_each(*each: Any) -> Any:
        return function(*each) if isinstance(each[0], Tensor) else each[-1]

    return type(state)(*tree_map(of_each, state, *others))


def _wide(each: Shaped[Tensor, "i k"], like: Tensor) -> Shaped[Tensor, "i k ..."]:
    """With as many dimensions as the tensor that it is used on."""
    return each.view(*each.shape, *[1] * (like.ndim - 2))
