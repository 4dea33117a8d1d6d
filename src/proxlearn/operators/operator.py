"""The operator `Phi(x, tau)`: applying it once is one proximal step, iterating it finds optima."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from proxlearn.answers.notices import logged
from proxlearn.answers.solutions import Solutions
from proxlearn.answers.starts import UNSEEN_LEVEL, starting_points
from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch, Points, Values
from proxlearn.common.checks import floats, said
from proxlearn.common.module_weights import built_anew
from proxlearn.common.weight_files import write_weights
from proxlearn.common.words import counted
from proxlearn.errors import InputError, PoorOperatorWarning, RangeWarning
from proxlearn.gpu.capture import Replayed
from proxlearn.gpu.precision import cpu_has_bf16, halved, products_in
from proxlearn.instances import Instances
from proxlearn.networks import architecture_from
from proxlearn.networks.arrival import Arrival, told_of
from proxlearn.networks.base import Code, Lams, Network, Prepared
from proxlearn.operators.applying import Lam, lams_of, points_at_once
from proxlearn.operators.bound_operator import Bound
from proxlearn.operators.cores import on_cores, until_settled
from proxlearn.operators.export import export
from proxlearn.operators.stream import chunks
from proxlearn.problems.base import Problem, check_problem
from proxlearn.spaces import Space

EXACT = 1e-6  # relative, of a lam in single precision
VERSION = 4  # of its file
LARGEST_COUNT = 10_000  # the most applications that an operator may be made for


def words_of(card: dict[str, Any]) -> str:
    """A card in a line."""
    held_out = f"on {counted(card['instances'], 'held-out instance')}"
    if "rightly" in card:
        return (
            f"{card['called_good']:.0%} of the points called good, {card['rightly']:.0%} of these "
            f"rightly, {card['found']:.0%} of the optima found, {held_out}"
        )
    return (
        f"{card['at_optimum']:.0%} of the starts end at an optimum, {card['found']:.0%} of the "
        f"optima found, {card['false']:.1f} false ones an instance, {held_out}"
    )


def check_operator(given: Any) -> None:
    """An error where something other than an operator is given, such as the path of one."""
    if not isinstance(given, Operator):
        raise InputError(f"operator= must be a trained operator, px.load(path), not {said(given)}.")


class Operator(nn.Module):
    """A trained map with all it takes to use it: space, instances, network and provenance.

    `lam` is the proximal weight it was trained with, or the usual one of the range `lams`;
    `arrival` knows when a point has arrived; without it, `applications` is how often to apply it.
    """

    def __init__(
        self,
        space: Space,
        instances: Instances,
        network: Network,
        lam: float,
        lams: Lams | None = None,
        applications: int = 5,
        precision: str = "tf32",
        provenance: dict[str, Any] | None = None,
        problem: Problem | None = None,
    ):
        super().__init__()
        self.space, self.instances, self.network = space, instances, network
        self.lam, self.lams, self.applications = lam, lams, applications
        self.precision, self.provenance, self.problem = precision, provenance or {}, problem
        self.arrival: Arrival | None = None
        self.repeated = Replayed(self._repeat)

    @classmethod
    def untrained(
        cls,
        problem: Problem,
        architecture: Any = "default",
        lam: float = 1.0,
        lams: Lams | None = None,
        **more: Any,
    ) -> "Operator":
        """An operator of a problem with a fresh network; `more`: further arguments of the class."""
        sizes, space, instances = architecture_from(architecture), problem.space, problem.instances
        if reason := sizes.refuses(space, instances):
            raise InputError(f"architecture={sizes.kind!r} does not fit: {reason}.")

        def make() -> Network:
            encoder = problem.encoder() if sizes.encodes else None
            return sizes.build(space, instances, lams, encoder)

        network = built_anew(make)
        return cls(space, instances, network, lam, lams, problem=problem, **more)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def card(self) -> dict[str, Any] | None:
        """How its training judged it on held-out instances (see training/judge.py); None if it was
        not judged. Shares from 0 to 1: `at_optimum` of the starts that end at an optimum,
        `at_optimum_polished` once polished, `at_optimum_lbfgs` by multistart L-BFGS; `found` of the
        optima that L-BFGS finds; `wp`, the witnessed precision, where the problem knows its truth.
        `false` is a number: how many listed optima of an instance are none, unpolished. Where an
        operator rates its points, `called_good` of them, `rightly` of these, and `found` only
        counts points that are good."""
        return self.provenance.get("card")

    @property
    def doubtful(self) -> str | None:
        """What speaks against trusting it, a sentence; None where nothing is known to."""
        return (self.card or {}).get("doubtful")

    def __repr__(self) -> str:
        about = self.provenance.get("problem") or "an unnamed problem"
        card = self.card
        judged = "not judged" if card is None else words_of(card)
        doubt = "; do not trust it" if self.doubtful else ""
        return f"Operator(for {about}, lam {self.lam:g}, {judged}{doubt})"

    @property
    def finite(self) -> bool:
        """Whether all of its weights are finite; others would move no point."""
        return bool(get_total_norm(self.parameters()).isfinite())

    @property
    def precision(self) -> str:
        """The precision of the network's matrix products: fp32, tf32 or bf16."""
        return self.network.precision

    @precision.setter
    def precision(self, precision: str) -> None:
        self.network.precision = precision

    def encode(self, observed: Batch) -> Code:
        """What is computed of tau without lam, once per tau."""
        with products_in(self.precision), halved(self.precision, self.device):
            return self.network.encode(observed)

    def prepare(self, code: Code, lam: "float | Float[Tensor, ' i'] | None" = None) -> Prepared:
        """The rest of the work that depends on tau and lam alone."""
        if not isinstance(lam, Tensor):  # `full` does not wait for a GPU
            first = batches.leaves(code)[0]
            usual, kind = self.lam if lam is None else lam, torch.float32
            lam = torch.full(first.shape[:1], usual, dtype=kind, device=first.device)
        with halved(self.precision, self.device):
            return self.network.prepare(code, lam)

    def forward(self, x: Any, tau: Any = None) -> "Points | Float[Tensor, 'n d']":
        """One application, `Phi(x, tau)`: where points (n, d) or (instances, n, d) go, for one tau
        or several, given as to `solve`."""
        bound = self.bind(tau)
        x = floats("x", x, "points").to(self.device)
        count, dim, shape = len(bound), bound.space.dim, tuple(x.shape)
        if shape[-1:] != (dim,) or not (x.ndim == 2 or (x.ndim == 3 and len(x) == count)):
            raise InputError(
                f"x has shape {shape}; expected points (n, {dim}), or ({count}, n, {dim}) for "
                f"{count} instance{'s' * (count > 1)}."
            )
        points = x.expand(count, -1, -1) if x.ndim == 2 else x
        prepared = self.prepare(self.encode(bound.observed))
        with products_in(self.precision):
            y = self.step(points, prepared, bound.space)
        return y[0] if x.ndim == 2 and count == 1 else y

    def step(
        self,
        x: Points,
        prepared: Prepared,
        space: Space | None = None,
        precision: str | None = None,
    ) -> Points:
        """One application, given what `prepare` made of tau, which serves many of them; `space` and
        `precision` are the operator's own unless given."""
        space = space or self.space
        unit = space.to_unit(x)
        with halved(precision or self.precision, self.device):
            unit = self.network(unit, prepared)
        return space.retract(space.from_unit(unit))

    def watched_step(
        self, x: Points, prepared: Prepared, space: Space | None = None
    ) -> tuple[Points, Float[Tensor, "i n f"]]:
        """One application, and what it tells `arrival` of x."""
        space = space or self.space
        unit = space.to_unit(x)
        with halved(self.precision, self.device):
            y = self.network(unit, prepared)
        y = space.retract(space.from_unit(y))
        return y, told_of(unit, space.to_unit(y))

    def rated_step(
        self, x: Points, prepared: Prepared, space: Space | None = None
    ) -> tuple[Points, Values | None]:
        """One application, and how good each x is as an answer, the logit of a number from 0 to 1;
        None where the network does not rate points."""
        space = space or self.space
        if not self.network.rates:
            return self.step(x, prepared, space), None
        with halved(self.precision, self.device):
            unit, rating = self.network.rated(space.to_unit(x), prepared)
        return space.retract(space.from_unit(unit)), rating

    def rating(self, x: Points, prepared: Prepared, space: Space) -> Values:
        """How good points are as answers, from 0 to 1, of an operator whose network rates them."""

        def rated(x: Points, prepared: Prepared) -> Values:
            rating = self.rated_step(x, prepared, space)[1]
            assert rating is not None
            return rating.sigmoid()

        return on_cores(rated, x, prepared, self.network.widest(x.shape[-1]))

    @property
    def stops(self) -> bool:
        """Whether it knows when to stop: it was taught when a point has arrived, or it rates points
        or keeps them where it leads and was not trained to be applied a number of times."""
        asked = self.provenance.get("training", {}).get("applications")
        by_itself = self.network.rates or self.network.settles
        return self.arrival is not None or (by_itself and asked is None)

    def _repeat(self, x: Tensor, known: Prepared, steps: int, space: Space, **key: Any) -> Tensor:
        if not x.is_cuda:
            applied = partial(self._repeat_on_cpu, steps=steps, space=space)
            return on_cores(applied, x, known, self.network.widest(x.shape[-1]))
        for _ in range(steps):
            x = self.step(x, known, space)
        return x

    def _repeat_on_cpu(self, x: Points, prepared: Prepared, steps: int, space: Space) -> Points:
        """In 16 bits where that is exact enough, but for the last application, which corrects what
        the others are off by."""
        will_do = self.network.rough_at_first and self.precision == "tf32" and cpu_has_bf16()
        rough = steps - 1 if will_do else 0
        x = until_settled(
            partial(self.step, space=space, precision="bf16"), x, prepared, rough, space
        )
        return until_settled(partial(self.step, space=space), x, prepared, steps - rough, space)

    def bind(self, tau: Any = None, problem: Problem | None = None) -> Bound:
        """The operator together with the instances to solve. `tau` is one or many, whole or as the
        operator sees them; `problem` is what values come from, by default the operator's own."""
        if problem is not None:
            check_problem(problem)
        problem = self.problem if problem is None else problem
        if problem is not None and problem.observes_part and problem.is_whole(tau):
            return self.bound(problem, problem.batch(tau))
        observed = self.instances.batch(tau)
        if problem is not None and not problem.observes_part:
            problem.check(observed)
        self.instances.warn_of_unknown(observed)
        return self.seeing(observed, problem)

    def bound(self, problem: Problem, tau: Batch) -> Bound:
        """As `bind`, for a batch of whole instances that are checked."""
        tau = batches.move(tau, self.device)
        seeing = self.seeing(problem.observe(tau), problem)
        return replace(seeing, problem=problem.sized(tau), tau=tau)

    def seeing(self, observed: Batch, problem: Problem | None) -> Bound:
        """As `bind`, for a batch of what the operator observes of instances."""
        if not self.finite:
            raise InputError(
                "The weights of this operator are NaN or infinite, so that it cannot solve "
                "anything: load it again, px.load(path), or train it again, px.learn(problem)."
            )
        observed = batches.move(observed, self.device)
        parts = self.instances.parts(observed)
        space = self.space if parts is None else self.space.with_size(parts)
        if problem is not None and problem.space.opened == space.opened:
            space = problem.space  # it knows whether its bounds bind, which old files do not say
        if problem is None or problem.observes_part:
            return Bound(self, space, observed, problem)
        return Bound(self, space, observed, problem.sized(observed), observed)

    def solve(
        self,
        tau: Any = None,
        starts: int | str | Tensor = 1024,
        steps: int | None = None,
        seed: int = 0,
        lam: Lam = None,
        unseen_level: float = UNSEEN_LEVEL,
    ) -> Solutions:
        """Apply the operator from many starts for each tau.

        Args:
            tau: one instance or many, (p,) or (instances, p) for vectors; whole, or as the operator
                sees them
            starts: how many points to start from, drawn uniformly; or the points, (n, d) or
                (instances, n, d); or "auto": more and more, until another one hardly finds a new
                optimum (see `px.solve`)
            steps: how many applications; 0 gives the starts themselves (default: until every point
                has arrived, or `applications` if the operator cannot tell)
            seed: fixes the starts
            lam: for an operator trained for a range, a value of it; or several, one for each
                application, the last for all that follow
            unseen_level: with "auto", the estimated chance of a new optimum at which to stop
        """
        if self.doubtful:
            warnings.warn(f"Poor: {self.doubtful}.", PoorOperatorWarning, stacklevel=2)
        bound = self.bind(tau)
        run = partial(bound.run, steps=steps, lam=lam)
        return logged(bound.answer(run, starts, seed, unseen_level))

    def stream(
        self,
        taus: Any,
        starts: int | Tensor = 1024,
        steps: int | None = None,
        seed: int = 0,
        lam: Lam = None,
    ) -> Iterator[Solutions]:
        """Solve any number of taus in bounded memory: the `Solutions` of some at a time, in order.

        `taus` is an array (instances, ...), or anything that gives single instances; no more of
        them are read than are solved at once. The other arguments are those of `solve`. Every tau
        has the same starts, so that a solution does not depend on other taus.
        """
        points = starting_points(self.space, starts, 1, seed, self.device)

        def solved(observed: Batch) -> Solutions:
            bound, own = self.seeing(observed, self.problem), points
            if bound.space != self.space:
                own = starting_points(bound.space, starts, 1, seed, self.device)
            own = own.expand(len(bound), -1, -1)
            return bound.answer(partial(bound.run, steps=steps, lam=lam), own)

        return map(solved, chunks(self.instances, taus, points_at_once() // points.shape[1] or 1))

    def lam_of_each(self, lam: Lam, steps: int) -> list[float]:
        """The lam of each of so many applications."""
        if lam is None:
            return [self.lam] * steps
        asked = lams_of(lam)
        low, high = self.lams or (self.lam, self.lam)
        usual = all(math.isclose(each, self.lam, rel_tol=1e-3) for each in asked)
        if self.lams is None and not usual:
            raise InputError(
                f"This operator was trained for lam = {self.lam:g} alone: leave lam out, or train "
                "one for a range, px.learn(problem, lam=(low, high))."
            )
        if not all(low <= each * (1 + EXACT) and each <= high * (1 + EXACT) for each in asked):
            warnings.warn(
                f"lam = {said(lam)} is outside the trained range [{low:g}, {high:g}]: a guess.",
                RangeWarning,
                stacklevel=4,
            )
        return (asked + [asked[-1]] * steps)[:steps]

    def check_fits(self, problem: Problem) -> None:
        """An error that says why, if this operator cannot be of the problem."""
        own, other = self.instances, problem.instances
        same = self.space.opened == problem.space.opened and own.words == other.words
        if own.kind == other.kind and (same or own.any_size):
            return
        raise InputError(
            f"This operator was trained for {self.provenance.get('problem')!r} on {self.space} and "
            f"{own.words} as tau; this {problem.name!r} lives on {problem.space} with "
            f"{other.words}: give an operator trained for it."
        )

    def export(self, path: str | Path, tau: Any = None) -> Path:
        """Write its graphs for runtimes without proxlearn, and return the file that says what is
        where: `conic.onnx`, one application; beside it `conic.prepare.onnx`, what is worked out
        once per tau, `conic.arrival.onnx`, if it knows when a point has arrived, and
        `conic.objective.onnx`, if there is an objective that can be a graph.

        * `path`: ends in .onnx, or in .pt2 for what `torch.export.load` reads;
        * `tau`: an example, needed where the operator has no problem and tau is no vector."""
        return export(self, path, tau)

    def save(self, path: str | Path) -> Path:
        """Write one safetensors file: weights, and a header with everything needed to solve."""
        encoder = getattr(self.network, "encoder", None)
        header = {
            "space": self.space.describe(),
            "instances": self.instances.describe(),
            "encoder": None if encoder is None else encoder.describe(),
            "architecture": self.network.architecture.describe(),
            "lam": self.lam,
            "lams": self.lams,
            "applications": self.applications,
            "precision": self.precision,
            "arrival": None if self.arrival is None else self.arrival.describe(),
            "provenance": self.provenance,
        }
        return write_weights(path, "operator", VERSION, header, self.state_dict())
