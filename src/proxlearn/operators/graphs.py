"""What of an operator is exported: functions of named tensors, for runtimes without proxlearn.

    prepare    what is worked out once per tau, `prepared_...`, from tau (and lam, of a range)
    apply      one application: y, where the points x go
    arrival    after each application: which points go on, and the best place of each so far; only
               of an operator that knows when a point has arrived
    objective  the values of points; only where there is an objective that an operator could see

Each takes whatever of the others' results has the names of its inputs; what `arrival` gives as
`next_...` it takes the next time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from proxlearn.common.batch import Batch, tree_map
from proxlearn.instances import Vectors
from proxlearn.instances.cloud import Clouds
from proxlearn.instances.image import Images
from proxlearn.networks.arrival import told_of
from proxlearn.operators.applying import Arriving, OnTheWay
from proxlearn.operators.bound_operator import Bound
from proxlearn.spaces import Space

Named = dict[str, Tensor]
POINTS = 5  # of each instance, in an example
UNSEEN = -1.0  # `waited`, of a point that has not been judged yet


@dataclass(frozen=True)
class Function:
    """One graph to be: what it computes, and an example of what it takes."""

    compute: Callable[[Named], Named]
    example: Named


class Functions:
    """The functions of an operator for instances like those that it is bound to."""

    def __init__(self, bound: Bound):
        self.bound, self.operator = bound, bound.operator
        count, self.parts = len(bound), self.operator.instances.parts(bound.observed)
        self.x = bound.space.sample(count, POINTS, generator=torch.Generator().manual_seed(0))
        self.tau = named("tau", bound.observed)
        if self.operator.lams:
            self.tau["lam"] = torch.full((count,), self.operator.lam)
        self.prepared = self.operator.prepare(self.operator.encode(bound.observed))

    @property
    def known(self) -> dict[str, list[int | str]]:
        """The sizes that are known of what the functions take; a word where they may vary."""
        width = self.x.shape[-1] if self.parts is None else "numbers"
        known: dict[str, list[int | str]] = {
            name: ["instances", "points", width] for name in ("x", "y", "best")
        }
        if isinstance(self.operator.instances, Vectors | Clouds | Images):
            known["tau"] = ["instances", *self.tau["tau"].shape[1:]]
        return known

    def each(self) -> Iterator[tuple[str, Function]]:
        """By name, `prepare` first."""
        yield "prepare", Function(self.prepare, self.tau)
        known = named("prepared", self.prepared)
        yield "apply", Function(self.apply, {"x": self.x} | known)
        if self.operator.arrival is not None:
            known = self.prepare(self.tau)
            yield "arrival", Function(self.arrive, beginning(self.x) | {"y": self.x} | known)
        problem, tau = self.bound.problem, self.bound.tau
        if problem is not None and tau is not None and not problem.observes_part:
            yield "objective", Function(self.value, {"x": self.x} | named("tau", tau))

    def prepare(self, given: Named) -> Named:
        observed = unnamed("tau", given, self.bound.observed)
        code = self.operator.encode(observed)
        prepared = self.operator.prepare(code, given.get("lam"))
        result = named("prepared", prepared)
        if self.operator.arrival is not None:
            result["arrival"] = self.operator.arrival.prepare(prepared["code"])
        return result

    def apply(self, given: Named) -> Named:
        prepared = unnamed("prepared", given, self.prepared)
        y, rating = self.operator.rated_step(given["x"], prepared, self._space(given["x"]))
        return {"y": y} if rating is None else {"y": y, "quality": rating.sigmoid()}

    def arrive(self, given: Named) -> Named:
        """One more step of `Arriving`, of the points that still go on."""
        operator, (x, y) = self.operator, (given["x"], given["y"])
        space = self._space(x)
        assert operator.arrival is not None
        told = told_of(space.to_unit(x), space.to_unit(y))
        level, log_error = operator.arrival(told, given["arrival"])
        method = Arriving(operator, space)

        def judged(_: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return y, level, log_error.exp()

        first, waited, goes = given["waited"] < 0, given["waited"], given["goes"]
        begun = method.init(judged, x)
        on = method.one_step(
            judged, OnTheWay(given["best"], given["level"], x, waited, ~goes, goes)
        )
        new = OnTheWay(*(_where(first, a, b) for a, b in zip(begun, on)))
        old = OnTheWay(given["best"], given["level"], x, waited, given["left"], goes)
        state = OnTheWay(*(_where(goes, a, b) for a, b in zip(new, old)))
        after = {f"next_{name}": each for name, each in state._asdict().items()}
        return after | {"found": method.found(judged, state)}

    def value(self, given: Named) -> Named:
        problem, tau = self.bound.problem, unnamed("tau", given, self.bound.tau)
        assert problem is not None
        return {"value": problem.sized(tau).objective(given["x"], tau).float()}

    def _space(self, x: Tensor) -> Space:
        """That of these points, where instances are of any size."""
        own = self.bound.space
        return own if self.parts is None else own.with_size(x.shape[-1] * self.parts // own.dim)


def beginning(x: Tensor) -> Named:
    """What `arrival` takes of points before they have been judged."""
    none, no = torch.zeros_like(x[..., 0]), torch.zeros_like(x[..., 0], dtype=torch.bool)
    return OnTheWay(x, none, x, none + UNSEEN, no, ~no)._asdict()


def _where(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    if a.dtype == torch.bool:  # of which onnxruntime has no `where`
        return (condition & a) | (~condition & b)
    return torch.where(condition[..., None] if a.ndim > condition.ndim else condition, a, b)


def named(name: str, batch: Batch) -> Named:
    """The tensors of a batch, by where they are in it: `tau`, or `prepared_looks_0`."""
    if isinstance(batch, dict):
        return {k: v for key, e in batch.items() for k, v in named(f"{name}_{key}", e).items()}
    if isinstance(batch, (list, tuple)):
        return {k: v for n, each in enumerate(batch) for k, v in named(f"{name}_{n}", each).items()}
    return {name: batch}


def unnamed(name: str, given: Named, like: Batch) -> Batch:
    """A batch that is nested like another, of tensors with these names."""
    every = iter(named(name, like))
    return tree_map(lambda _: given[next(every)], like)
