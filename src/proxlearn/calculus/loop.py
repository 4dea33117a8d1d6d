"""One loop around every method that goes step by step: solutions, curves over steps, races in equal
time and progress bars come from here.

The loop splits instances and points into parts of a bounded size, and takes each part through all
its steps before the next. Points that have stopped cost nothing more, where a method can tell;
on a GPU a step is replayed as one graph, where it can be captured.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from proxlearn.common.batch import Batch, leaves, tree_map
from proxlearn.common.splitting import pieces
from proxlearn.errors import InputError
from proxlearn.gpu.capture import WARM_UP, captured
from proxlearn.problems.base import Problem

ON_CPU, ON_GPU = 1 << 17, 1 << 20  # points at once; fewer cost more calls, more cost memory
TICKS = 100  # of a progress bar

State = Any  # a named tuple of tensors; its `x` (i n d) is where the points are
Show = Callable[[int, int], None]  # called with how much is done, and of how much


class Method(ABC):
    """How points are taken to solutions, step by step: a value that holds settings alone. All that
    changes on the way is in a state, which is passed in and returned."""

    captures: ClassVar[bool] = False  # whether a step never waits for a GPU, so can be captured

    def prepare(self, problem: Any, tau: Batch, starts: Float[Tensor, "i n d"]) -> Any:
        """What the steps need of these instances, computed once; by default the problem and tau.
        These are all the starts of an instance; `init` gets a part of them at a time."""
        return problem, tau

    @abstractmethod
    def init(self, prepared: Any, x: Float[Tensor, "i n d"]) -> State:
        """The state of points that have not moved yet; x is a copy that may be changed."""

    @abstractmethod
    def one_step(self, prepared: Any, state: State) -> State:
        """The state after one more step; it may be the one given, changed in place."""

    def many_steps(self, prepared: Any, state: State, count: int) -> State:
        """The same for several steps in a row, for methods that do these faster than one by one."""
        for _ in range(count):
            state = self.one_step(prepared, state)
        return state

    def moving(self, state: State) -> Bool[Tensor, "i n"] | None:
        """Which points go on after a step; None where a method cannot tell. Where it can, every
        tensor of the state is (i n ...), and steps are given only some columns of it."""
        return None

    def found(self, prepared: Any, state: State) -> Float[Tensor, "i n d"]:
        """The solutions so far: where the points are, unless a method remembers better places."""
        return state.x

    def at_once(self, x: Float[Tensor, "i n d"]) -> int:
        """How many points go through the loop at once."""
        return ON_GPU if x.is_cuda else ON_CPU


class Reached(NamedTuple):
    """Where the points are after some steps. The rest is None where a method cannot tell."""

    x: Float[Tensor, "i n d"]
    steps: Int[Tensor, "i n"] | None = None  # that each point made
    arrived: Bool[Tensor, "i n"] | None = None  # whether it stopped by itself


def run(
    method: Method,
    problem: Problem | None,
    tau: Batch,
    starts: Float[Tensor, "i n d"],
    steps: int,
    show: Show | None = None,
) -> Reached:
    """Where every point is after so many steps, or when it stopped before; arguments as for
    `trace`."""
    return trace(method, problem, tau, starts, (steps,), show)[0]


@torch.no_grad()
def trace(
    method: Method,
    problem: Problem | None,
    tau: Batch,
    starts: Float[Tensor, "i n d"],
    at: Sequence[int],
    show: Show | None = None,
) -> list[Reached]:
    """Where every point is after each of several numbers of steps, in one pass.

    method: what takes the points on.
    problem: of which family the instances are; None for methods that need no objective.
    tau: the instances, as a batch.
    starts: where the points begin, (instances, points, dim).
    at: numbers of steps, in ascending order; 0 is the starts themselves.
    show: called now and then with how many steps of points are done, and of how many.
    """
    if not at or list(at) != sorted(at) or at[0] < 0:
        raise InputError(f"at= must be numbers of steps, 0 or more, in ascending order, not {at}.")
    ticks = range(0, at[-1], max(1, at[-1] // TICKS)) if show else ()
    done, total = 0, at[-1] * starts.shape[0] * starts.shape[1]

    def along(walk: _Walk) -> list[Reached]:
        nonlocal done
        reached = {}
        for before, k in pairwise((0, *sorted({*at, *ticks}))):
            walk.advance(k - before)
            done += (k - before) * walk.size
            if show:
                show(done, total)
            if k in at:
                reached[k] = walk.reached()
        return [reached[k] for k in at]

    return _in_parts(method, problem, tau, starts, along)


@torch.no_grad()
def run_for(
    method: Method,
    problem: Problem | None,
    tau: Batch,
    starts: Float[Tensor, "i n d"],
    seconds: float,
) -> tuple[Reached, int]:
    """Where every point is after as many steps as fit into so many seconds, at least one, and how
    many these are. What a method does once, to begin with, is not timed.

    The first part of the points sets the number of steps, in its share of the time.
    """
    steps = 0

    def within(walk: _Walk) -> list[Reached]:
        nonlocal steps
        if steps:
            walk.advance(steps)
        else:
            share = walk.size / (starts.shape[0] * starts.shape[1])
            steps = _steps_within(walk, share * seconds, starts.device)
        return [walk.reached()]

    return _in_parts(method, problem, tau, starts, within)[0], steps


def _steps_within(walk: "_Walk", seconds: float, device: torch.device) -> int:
    """Walk until the time is over: how many steps that were. The clock is looked at ever more
    rarely, since to look is to wait for a GPU."""
    untimed = WARM_UP + 1 if device.type == "cuda" else 0  # until a graph is captured
    walk.advance(untimed)
    began, timed, more = now(device), 0, 1
    while more > 0:
        walk.advance(more)
        timed, spent = timed + more, now(device) - began
        more = min(timed, int(timed * (seconds - spent) / spent)) if walk.goes_on else 0
    return untimed + timed


def now(device: torch.device) -> float:
    """The time in seconds when the device has done all that it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _in_parts(
    method: Method,
    problem: Problem | None,
    tau: Batch,
    starts: Float[Tensor, "i n d"],
    walked: Callable[["_Walk"], list[Reached]],
) -> list[Reached]:
    """What `walked` gives for every part of the points, put together."""
    most, rows = method.at_once(starts), []
    for _, _, some, x in pieces(tau, starts, max(most, starts.shape[1])):
        prepared = method.prepare(problem, some, x)
        columns = [walked(_Walk(method, prepared, part)) for part in x.split(most, 1)]
        rows.append([_joined(each, 1) for each in zip(*columns)])
    return [_joined(each, 0) for each in zip(*rows)]


def _joined(parts: Sequence[Reached], dim: int) -> Reached:
    x, *others = zip(*parts)
    return Reached(
        torch.cat(x, dim), *(None if each[0] is None else torch.cat(each, dim) for each in others)
    )


class _Walk:
    """Some points of some instances on their way."""

    def __init__(self, method: Method, prepared: Any, x: Float[Tensor, "i n d"]):
        self.method, self.prepared, self.size = method, prepared, x.shape[0] * x.shape[1]
        self.state = method.init(prepared, x.clone(memory_format=torch.contiguous_format))
        self.moving = self.replay = None
        if method.moving(self.state) is not None:
            self.moving = torch.ones_like(x[..., 0], dtype=torch.bool)
            self.steps = torch.zeros_like(self.moving, dtype=torch.int32)
        elif method.captures and x.is_cuda:
            self.state = _mapped(torch.clone, self.state)  # no two of them in the same place
            self.replay = captured(self._step_in_place, x.device)

    @property
    def goes_on(self) -> bool:
        return self.moving is None or bool(self.moving.any())

    def advance(self, count: int) -> None:
        if self.moving is None and self.replay is None:
            self.state = self.method.many_steps(self.prepared, self.state, count)
            return
        step = self.replay or self._step_what_moves
        for _ in range(count):
            if step() is False:
                break

    def reached(self) -> Reached:
        x = self.method.found(self.prepared, self.state).clone()
        return Reached(x) if self.moving is None else Reached(x, self.steps.clone(), ~self.moving)

    def _step_in_place(self) -> None:
        """A step whose results are where the state was, as a graph that is replayed needs it."""
        after = leaves(self.method.one_step(self.prepared, self.state))
        state = leaves(self.state)
        kept = {each.untyped_storage().data_ptr() for each in state}
        changed = [(own, new) for own, new in zip(state, after) if own is not new]
        # What was passed on from one place to another is read before anything is written there.
        safe = [n.clone() if n.untyped_storage().data_ptr() in kept else n for _, n in changed]
        for (own, _), new in zip(changed, safe):
            own.copy_(new)

    def _step_what_moves(self) -> bool:
        """A step of the points that move, in columns as many as move in the busiest instance;
        whether there were any."""
        assert self.moving is not None
        busiest = int(self.moving.sum(1).max())
        if not busiest:
            return False
        some = self.moving.int().argsort(dim=1, descending=True, stable=True)[:, :busiest]
        before, still = _mapped(lambda t: _take(t, some), self.state), self.moving.gather(1, some)
        after = self.method.one_step(self.prepared, before)

        def put(own: Tensor, old: Tensor, new: Tensor) -> Tensor:
            wide = still.view(*still.shape, *[1] * (own.ndim - 2))
            return own.scatter(1, _wide(some, own), torch.where(wide, new, old))

        self.state = _mapped(put, self.state, before, after)
        self.steps.scatter_add_(1, some, still.int())
        goes = self.method.moving(after)
        assert goes is not None
        self.moving.scatter_(1, some, goes & still)
        return True


def _mapped(function: Callable[..., Tensor], state: State, *others: State) -> State:
    """A function of every tensor of a state, and of its counterparts in others; what is no tensor,
    such as a number of steps, is as in the last of them."""

    def of_each(*each: Any) -> Any:
        return function(*each) if isinstance(each[0], Tensor) else each[-1]

    return type(state)(*tree_map(of_each, state, *others))


def _take(each: Shaped[Tensor, "i n ..."], places: Int[Tensor, "i k"]) -> Shaped[Tensor, "i k ..."]:
    return each.gather(1, _wide(places, each))


def _wide(places: Int[Tensor, "i k"], each: Shaped[Tensor, "i n ..."]) -> Int[Tensor, "i k ..."]:
    """The places, for every number that is kept of a point."""
    return places.view(*places.shape, *[1] * (each.ndim - 2)).expand(-1, -1, *each.shape[2:])
