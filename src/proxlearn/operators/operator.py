"""The operator `Phi(x, tau)`: applying it once is one proximal step, iterating it finds optima."""

import math
import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import groupby
from numbers import Real
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from proxlearn.answers.solutions import Solutions
from proxlearn.answers.starts import UNSEEN_LEVEL, from_starts, starting_points
from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch
from proxlearn.common.checks import check_steps
from proxlearn.common.devices import pick_device
from proxlearn.common.files import read_weights, write_weights
from proxlearn.common.precision import halved, products_in
from proxlearn.common.splitting import pieces
from proxlearn.errors import FileError, InputError, RangeWarning
from proxlearn.gpu.capture import Replayed
from proxlearn.networks.arrival import DOWN, Arrival, Judged, one_more
from proxlearn.networks.coupling import (
    Architecture,
    Coupling,
    Prepared,
    architecture_from,
    describe,
)
from proxlearn.networks.cut_circles import GraphNetwork
from proxlearn.networks.encoders import Encoder, encoder_from
from proxlearn.operators.stopping import until_arrived
from proxlearn.operators.stream import chunks
from proxlearn.problems.base import Problem
from proxlearn.spaces import Circles, Space, space_from

VERSION = 2  # of its file
MAX_POINTS = 1 << 19  # points in flight at once while solving: about 1 GiB at width 128
USUAL = 16  # coordinates of a point; of points with more there are fewer at once
IN_CACHE = 1 << 12  # of them at once through the network on a CPU, so that layers stay in cache
MOST = 100  # applications, where an operator knows when a point has arrived


class Operator(nn.Module):
    """A trained map with all it takes to use it: space, encoder, network and provenance.

    `lam` is the proximal weight it was trained with, or the usual one of the range `lams`;
    `arrival` knows when a point has arrived; where there is none, `applications` is how often to
    apply it unless told otherwise. `precision` is that of its matrix products.
    """

    def __init__(
        self,
        space: Space,
        encoder: Encoder,
        architecture: Architecture,
        lam: float,
        applications: int = 5,
        precision: str = "tf32",
        lams: tuple[float, float] | None = None,
        provenance: dict[str, Any] | None = None,
        problem: Problem | None = None,
    ):
        super().__init__()
        self.space, self.encoder, self.lam = space, encoder, lam
        self.applications, self.precision = applications, precision
        self.provenance, self.problem = provenance or {}, problem
        self.lams = lams
        if encoder.any_size and architecture.kind != "graph":
            raise InputError(
                f"A {architecture.kind} network is of one size; graphs of any size need "
                "architecture='graph'."
            )
        if architecture.kind == "graph" and not (
            isinstance(space, Circles) and encoder.kind == "graph"
        ):
            raise InputError(
                f"architecture='graph' is for graphs, with a circle for every vertex; this problem "
                f"lives on {space} with {encoder.words} as tau: leave architecture out."
            )
        network = GraphNetwork if architecture.kind == "graph" else Coupling
        self.network = network(space.dim, self.code_size, architecture)
        self.arrival: Arrival | None = None
        self.repeated = Replayed(self._repeat)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def code_size(self) -> int:
        """How many numbers the network sees of tau, and of lam where there is a range."""
        return self.encoder.size + (1 if self.lams else 0)

    def sized(self, observed: Batch) -> "Operator":
        """The same operator over the space of these instances, where they may be of any size."""
        space = self.encoder.space(observed)
        if space is None:
            return self
        problem = self.problem and self.problem.sized(observed)
        same = space == self.space and problem is self.problem
        return self if same else self.over(space, problem)

    def over(self, space: Space, problem: Problem | None) -> "Operator":
        """The same operator, with the same weights and graphs on a GPU, over another space."""
        other = copy(self)
        other.space, other.problem = space, problem
        other.repeated = self.repeated.of(other._repeat)
        return other

    def encode(self, observed: Batch) -> Float[Tensor, "i c"]:
        """Tau's code: the work of the encoder, done once per tau."""
        with halved(self.precision, self.device):
            return self.encoder(observed).float()

    def prepare(
        self, code: Float[Tensor, "i c"], lam: "float | Float[Tensor, ' i'] | None" = None
    ) -> Prepared:
        """The rest of the work that depends on tau alone, and on lam where there is a range."""
        with halved(self.precision, self.device):
            return self.network.prepare(self.with_lam(code, lam))

    def with_lam(
        self, code: Float[Tensor, "i c"], lam: "float | Float[Tensor, ' i'] | None" = None
    ) -> Float[Tensor, "i e"]:
        """The code with lam appended, where there is a range: its place in it, -1 to 1."""
        if not self.lams:
            return code
        low, high = map(math.log, self.lams)
        lam = torch.as_tensor(self.lam if lam is None else lam, device=code.device)
        unit = (2 * lam.log() - (low + high)) / (high - low)
        return torch.cat((code, unit.expand(len(code))[:, None]), -1)

    def forward(self, x: Float[Tensor, "i n d"], prepared: Prepared) -> Float[Tensor, "i n d"]:
        """One application: `Phi(x, tau)`."""
        unit = self.space.to_unit(x)
        with halved(self.precision, self.device):
            unit = self.network(unit, prepared)
        return self.space.retract(self.space.from_unit(unit))

    def solve(
        self,
        tau: Any = None,
        starts: int | str | Tensor = 1024,
        steps: int | None = None,
        seed: int = 0,
        lam: float | Sequence[float] | None = None,
        unseen_level: float = UNSEEN_LEVEL,
    ) -> Solutions:
        """Apply the operator `steps` times from many starts for each tau.

        `tau`: one instance or many, in the form its encoder takes ((p,) or (instances, p) for
        vectors); `starts`: how many uniform ones, the points themselves, (n, d) or
        (instances, n, d), or "auto": as many as it takes until the chance that one more would find
        a new optimum is estimated to be at most `unseen_level`, where there is an objective
        polished, as are the solutions then; `steps`: how many applications, 0
        is the starts themselves, None is until every point has arrived; `lam`: one of the range it
        was trained for, or several: one for each application, the last for the rest.
        """
        observed = batches.move(self.encoder.batch(tau), self.device)
        self = self.sized(observed)
        run, count = partial(self._solve, observed, steps=steps, lam=lam), batches.size(observed)
        return from_starts(run, self.space, count, starts, seed, self.device, unseen_level)

    def stream(
        self,
        taus: Any,
        starts: int | Tensor = 1024,
        steps: int | None = None,
        seed: int = 0,
        lam: float | Sequence[float] | None = None,
    ) -> Iterator[Solutions]:
        """Solve any number of taus in bounded memory: the `Solutions` of consecutive taus, some at
        a time (`at_once`), the last ones maybe fewer.

        `taus`: an array (instances, ...), or anything that gives single instances in the form the
        encoder takes; no more are drawn from it than are solved at once. Every tau has the same
        starts, drawn once (those of `solve` for one tau) or given as (n, d), so that a solution
        does not depend on which taus are solved with it.
        """
        points = starting_points(self.space, starts, 1, seed, self.device)
        batched = chunks(self.encoder, taus, at_once(points.shape[1]))
        moved = (batches.move(observed, self.device) for observed in batched)

        def solved(observed: Batch) -> Solutions:
            sized, own = self.sized(observed), points
            if sized is not self:
                own = starting_points(sized.space, starts, 1, seed, self.device)
            return sized._solve(observed, own.expand(batches.size(observed), -1, -1), steps, lam)

        return map(solved, moved)

    def _solve(
        self,
        observed: Batch,
        points: Float[Tensor, "i n d"],
        steps: int | None,
        lam: float | Sequence[float] | None,
    ) -> Solutions:
        """The solutions of a batch, with values where the objective is at hand."""
        solutions = self.run(observed, points, steps, lam)
        if self.problem is not None and self.problem.observes_part:
            solutions = replace(solutions, problem=self.problem)  # for its symmetries
        elif self.problem is not None:
            solutions = solutions.valued(self.problem, observed)
        return solutions.doubted(self.encoder.knows(observed))

    def run(
        self,
        observed: Batch,
        points: Float[Tensor, "i n d"],
        steps: int | None,
        lam: float | Sequence[float] | None,
    ) -> Solutions:
        """The solutions without values: so many steps, or until every point has arrived."""
        if steps is None and self.arrival is not None and not isinstance(lam, Sequence):
            return self.arrive(observed, points, MOST, lam)
        steps = self.applications if steps is None else steps
        found = self.iterate(observed, points, steps, lam)
        return Solutions.of(self.space, found, points, applications=steps)

    @torch.no_grad()
    def arrive(
        self,
        observed: Batch,
        x: Float[Tensor, "i n d"],
        steps: int,
        lam: float | Sequence[float] | None = None,
    ) -> Solutions:
        """Apply the operator to every point until it has arrived, at most `steps` times; some
        points at a time. One that left the space has not arrived and is where it went."""
        if isinstance(lam, Sequence):
            raise InputError("Points arrive with one lam, not with a schedule of several.")
        check_steps(steps)
        self.schedule(lam, steps)  # for its checks
        most = MAX_POINTS if x.is_cuda else IN_CACHE
        found, used = x.clone(), torch.empty_like(x[..., 0], dtype=torch.int32)
        arrived = torch.empty_like(used, dtype=torch.bool)
        for rows, columns, some, at in pieces(observed, x, most):
            judged = self._judged(some, lam)
            with products_in(self.precision):
                y, level, error = judged(at)
                best, waited = found[rows, columns], torch.zeros_like(level)
                state = (best, level, error, y, y - at, level.clone(), waited)
                done = until_arrived(state, steps, partial(one_more, judged, self.space))
            best, level, _, last, *_ = state
            left = (done[0] > 0) & (level > DOWN) & ~self.space.contains(last)
            found[rows, columns] = torch.where(left[..., None], last, best)
            used[rows, columns], arrived[rows, columns] = done[0], done[1] & ~left
        return replace(Solutions.of(self.space, found, x, used), arrived=arrived)

    def _judged(self, observed: Batch, lam: float | None) -> Judged:
        """Where points of these instances go next, their levels and the errors of these."""
        arrival, code, to_unit = self.arrival, self.encode(observed), self.space.to_unit
        if arrival is None:
            raise InputError(
                "This operator does not know when a point has arrived: use the method 'operator', "
                "which applies it a number of times, or train one without applications=."
            )
        prepared, known = self.prepare(code, lam), arrival.prepare(self.with_lam(code, lam))

        def judged(x: Float[Tensor, "i n d"]) -> tuple[Tensor, Tensor, Tensor]:
            y = self(x, prepared)
            level, log_error = arrival(to_unit(x), to_unit(y), known)
            return y, level, log_error.exp()

        return judged

    @torch.no_grad()
    def iterate(
        self,
        observed: Batch,
        x: Float[Tensor, "i n d"],
        steps: int,
        lam: float | Sequence[float] | None = None,
    ) -> Tensor:
        """`Phi^steps(x)`, a bounded number of points at a time."""
        check_steps(steps)
        self = self.sized(observed)
        schedule = self.schedule(lam, steps)
        most = MAX_POINTS if x.is_cuda else IN_CACHE
        most = max(1, most * USUAL // max(USUAL, x.shape[-1]))
        where = next(self.parameters()).data_ptr()  # a graph reads the weights from there
        some, done = max(1, most // x.shape[1]), []
        for first in range(0, len(x), some):
            chunk = slice(first, first + some)
            with products_in(self.precision):
                code = self.encode(batches.select(observed, chunk))
                pieces = list(x[chunk].split(most, 1))
                for lam, count in schedule:
                    prepared = self.prepare(code, lam)
                    how = {"steps": count, "precision": self.precision, "weights": where}
                    how["space"] = self.space
                    pieces = [self.repeated(y, prepared, **how) for y in pieces]
            done.append(torch.cat(pieces, 1))
        return torch.cat(done)

    def schedule(self, lam: float | Sequence[float] | None, steps: int) -> list[tuple[float, int]]:
        """For how many applications in a row there is which lam."""
        if lam is None:
            return [(self.lam, steps)]
        asked = list(lam) if isinstance(lam, Sequence) else [lam]
        low, high = self.lams or (self.lam, self.lam)
        if not asked or not all(isinstance(each, Real) and each > 0 for each in asked):
            raise InputError(f"lam must be a positive number, or several, not {lam!r}.")
        if self.lams is None and not all(
            math.isclose(each, self.lam, rel_tol=1e-3) for each in asked
        ):
            raise InputError(
                f"This operator was trained for lam = {self.lam:g} alone: leave lam out, or train "
                "one for a range, px.learn(problem, lam=(low, high))."
            )
        if not all(low <= each <= high for each in asked):
            warnings.warn(
                f"lam = {lam} is outside the trained range [{low:g}, {high:g}]: a guess.",
                RangeWarning,
                stacklevel=4,
            )
        every = (asked + [asked[-1]] * steps)[:steps]
        return [(each, len(list(group))) for each, group in groupby(every)]

    def _repeat(self, x: Tensor, prepared: Prepared, steps: int, **key: Any) -> Tensor:
        for _ in range(steps):
            x = self(x, prepared)
        return x

    def check_fits(self, problem: Problem) -> None:
        """An error that says why, if this operator cannot be of the problem."""
        own, other = self.encoder, problem.encoder()
        same = self.space == problem.space and own.size == other.size
        if own.kind == other.kind and (same or own.any_size):
            return
        raise InputError(
            f"This operator was trained for {self.provenance.get('problem')!r} on {self.space} and "
            f"{own.words} as tau; this {problem.name!r} lives on {problem.space} with "
            f"{other.words}: give an operator trained for it."
        )

    def save(self, path: str | Path) -> Path:
        """Write one safetensors file: weights, and a header with everything needed to solve."""
        header = {
            "space": self.space.describe(),
            "encoder": self.encoder.describe(),
            "architecture": describe(self.network.architecture),
            "lam": self.lam,
            "applications": self.applications,
            "precision": self.precision,
            "lams": self.lams,
            "arrival": None if self.arrival is None else self.arrival.describe(),
            "provenance": self.provenance,
        }
        return write_weights(path, "operator", VERSION, header, self.state_dict())


def at_once(points: int) -> int:
    """How many instances are solved at once, with so many points each."""
    return max(1, MAX_POINTS // points)


def load(path: str | Path, device: str = "auto", encoder: Encoder | None = None) -> Operator:
    """Read an operator that `Operator.save` wrote. Needs no problem code and unpickles nothing."""
    header, weights = read_weights(path, "operator", VERSION)
    try:
        operator = _rebuild(header, encoder)
    except (LookupError, TypeError, ValueError) as error:
        raise FileError(f"The header of {path} cannot be read: {error!r}.") from None
    try:
        operator.load_state_dict(weights)
    except RuntimeError as error:
        raise FileError(f"The weights in {path} do not fit its header: {error}") from None
    return operator.eval().to(pick_device(device))


def _rebuild(header: dict[str, Any], encoder: Encoder | None) -> Operator:
    """The operator that a file's header describes, without its weights."""
    operator = Operator(
        space_from(header["space"]),
        encoder_from(header["encoder"], encoder),
        architecture_from(header["architecture"]),
        header["lam"],
        header["applications"],
        header.get("precision", "tf32"),
        tuple(header["lams"]) if header.get("lams") else None,
        header["provenance"],
    )
    if header.get("arrival"):
        sizes = architecture_from(header["arrival"])
        operator.arrival = Arrival(operator.space.dim, operator.code_size, sizes)
    return operator
