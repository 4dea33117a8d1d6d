"""Importance sampling: which points an operator is trained on (paper, app. C).

Fresh points are uniform, except for a share `near` of them that begins near known solutions. Both
forms draw x from the same mixture, the mean of the laws of `Phi^k(fresh)` for k = 0..depth, so that
an operator also learns to refine points that have almost arrived. The loss gets to see where an
application leads even if that is beyond bounds that bind; the next begins on the edge.

Of several processes, each draws the whole step, as one process would, and keeps its part of it.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch, Points
from proxlearn.common.seeds import generator_for
from proxlearn.gpu.parallel import ALONE, Part, Process
from proxlearn.networks.base import Code, Lams, Prepared
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import Problem, drawn
from proxlearn.training.instances import Drawn, Fed
from proxlearn.training.loss import Terms, of_ratings

Loss = Callable[..., tuple[Terms, Tensor]]  # of (y, x, tau, lam), see loss.py
Applied = list[tuple[Tensor, Tensor]]  # what the operator gives, and the loss's gradient in it
# Known solutions of taus, and which of them are real.
Known = tuple[Float[Tensor, "i k d"], Bool[Tensor, "i k"]] | None


class Sampler:
    """What both forms share: a step is `groups` groups of taus, of which each process has its part
    and for which every process draws the same numbers."""

    def __init__(
        self,
        problem: Problem,
        instances: int,
        points: int,
        depth: int,
        lams: Lams,
        seed: int,
        device: torch.device,
        process: Process = ALONE,
        near: float = 0.0,
    ):
        self.problem, self.points, self.depth, self.lams = problem, points, depth, lams
        self.near = near
        self.opened = problem.space.opened
        self.generator = generator_for(seed, "train", device)
        self.noise = generator_for(seed, f"refresh {process.rank}", device)
        self.group = math.ceil(instances / self.groups)  # taus in a group, and new ones in a step
        self.batch = self.group * self.groups
        self.part = Part(process, self.group, self.groups)
        if problem.sampled_on == "cpu":
            self.source = Fed(problem, self.group, seed, device, self._own)
        else:
            self.source = Drawn(problem, self.group, self.generator, self._own)

    @property
    def groups(self) -> int:
        return 1

    def _own(self, whole: Batch) -> Batch:
        """This process's part of taus of the whole step."""
        return batches.tree_map(self.part.of, whole)

    def _lams(self, count: int) -> Float[Tensor, " i"]:
        """One for each tau of this process."""
        low, high = self.lams
        if low == high:
            return self.part.of(torch.full((count,), low, device=self.generator.device))
        return self.part.of(random_lams(self.lams, count, self.generator))

    def _instances(self, taken: Batch) -> Batch:
        """The instances that were drawn, what is random in them drawn anew."""
        return self.problem.refresh(self.problem.look_up(taken), self.noise)

    def _known(self, tau: Batch) -> Known:
        """The known solutions of taus, where points begin near them."""
        return self.problem.known(tau) if self.near else None

    def _fresh(self, count: int, known: Known) -> Points:
        """Fresh points for so many taus of the whole step, uniform but for those that begin near
        known solutions, where a tau has any."""
        own: dict[str, Any] = {"generator": self.generator, "device": self.generator.device}
        uniform = self.problem.space.sample(count, self.points, **own)
        if known is None:
            return self.part.of(uniform)
        draw = torch.rand(count, self.points, 3, **own)
        noise = torch.randn(uniform.shape, **own)
        uniform, draw, noise = (self.part.of(each) for each in (uniform, draw, noise))
        chance, which, far = draw.unbind(-1)
        solutions, real = known
        some = real.sum(1, keepdim=True)
        at = batches.first_those(real).gather(1, (which * some).long())
        chosen = solutions.gather(1, at[..., None].expand_as(uniform))
        begun = self.problem.around(chosen, noise, far)
        return torch.where(((chance < self.near) & (some > 0))[..., None], begun, uniform)

    def _applied(
        self,
        operator: Operator,
        loss: Loss,
        x: Points,
        prepared: Prepared,
        tau: Batch,
        lam: Float[Tensor, " i"],
    ) -> tuple[Points, Applied, Terms]:
        """One application: where it leads, what is to be learned from that, and its loss."""
        y, ratings = operator.rated_step(x, prepared, self.opened)
        terms, slope = loss(y, x, tau, lam)
        if ratings is None:
            return y, [(y, slope)], terms
        off, slope_of_ratings = of_ratings(self.problem, ratings, x, tau, self.part)
        terms = terms | {"loss": terms["loss"] + off, "quality": off}
        return y, [(y, slope), (ratings, slope_of_ratings)], terms

    def _next(self, y: Points) -> Points:
        """Where the next application begins: on the edge, where y lies beyond bounds that bind."""
        space = self.problem.space
        return space.retract(y.detach()) if space.closed else y.detach()

    def refill(self) -> None:
        """Make ready for the next step; nothing of this one has to wait for it."""

    def under_way(self, instances: int, points: int) -> tuple[Points, Batch] | None:
        """Some of the points that are trained on now, with their instances; None where none stay
        from step to step."""
        return None

    def state(self) -> dict[str, object]:
        """What a checkpoint has to hold, of all processes together, besides the generators."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from such a state."""


class Unfold(Sampler):
    """The paper's form: every training step applies the operator depth + 1 times in a row."""

    def apply(self, operator: Operator, loss: Loss) -> tuple[Applied, Terms]:
        """depth + 1 applications, and their loss on average."""
        tau, lam = self._instances(self.source.take()), self._lams(self.group)
        prepared = operator.prepare(operator.encode(self.problem.observe(tau)), lam)
        x = self._fresh(self.batch, self._known(tau))
        applied: Applied = []
        every: list[Terms] = []
        for _ in range(self.depth + 1):
            y, learned, terms = self._applied(operator, loss, x, prepared, tau, lam)
            x = self._next(y)
            applied += [(given, slope / (self.depth + 1)) for given, slope in learned]
            every.append(terms)
        mean = {name: torch.stack([terms[name] for terms in every]).mean() for name in every[0]}
        return applied, mean


class Pool(Sampler):
    """A persistent pool of particles: one application per training step, the output written back.

    The pool is `chunks` batches that take turns. A batch is made of depth + 1 groups of taus; at
    each visit one group starts afresh, so that the ages in a batch are exactly k = 0..depth and
    the law of x is the paper's mixture at a sixth of the cost (for depth 5). Points that left the
    space start afresh as well.

    Every tau of a batch is encoded anew, since the encoder learns too. Where that is too costly,
    `encodes` says how many are (in whole groups, those that start afresh among them); the others
    have the codes of when they last were.
    """

    chunks = 8

    def __init__(self, *arguments: Any, encodes: int | None = None, **more: Any):
        super().__init__(*arguments, **more)
        slots, device = self.chunks * self.batch, self.generator.device
        whole = drawn(self.problem, slots, "train", self.generator)
        self.drawn = batches.tree_map(torch.clone, self._own(whole))  # ours to write into
        self.lam = self._lams(slots)
        self.turn = torch.zeros(1, dtype=torch.long, device=device)  # on the device: no sync
        taken = torch.arange(len(self.lam), device=device).view(self.chunks, self.groups, -1)
        self.fresh = taken.transpose(0, 1).flatten(0, 1)  # the slots that start afresh, by turn
        self.rows = taken.flatten(1).repeat(self.groups, 1)  # the slots of the batch, by turn
        self.x = self._fresh(slots, self._all_known())
        self.codes: Code | None = None  # of every slot, where not all are encoded in a step
        some = self.groups if encodes is None else min(self.groups, -(-encodes // self.group))
        each = torch.arange(self.groups, device=device)
        which = (each[:, None] + each[:some]) % self.groups  # the groups to encode, by fresh group
        places = torch.arange(taken[0].numel(), device=device).view(self.groups, -1)
        self.encoded = places[which].flatten(1).repeat_interleave(self.chunks, 0)
        # Slots of this step, their outputs, and the solutions that are known of their taus.
        self.applied: tuple[Tensor, Points, Known] | None = None

    @property
    def groups(self) -> int:
        return self.depth + 1

    def apply(self, operator: Operator, loss: Loss) -> tuple[Applied, Terms]:
        """One application to the next batch of the pool, and its loss."""
        rows = self.rows.index_select(0, self.turn)[0]
        tau = self._instances(batches.select(self.drawn, rows))
        x, lam = self.x[rows], self.lam[rows]
        prepared = operator.prepare(self._code(operator, tau, rows), lam)
        y, learned, terms = self._applied(operator, loss, x, prepared, tau, lam)
        self.applied = rows, y.detach(), self._known(tau)
        return learned, terms

    def refill(self) -> None:
        """Write the outputs back, and let the group whose turn is next start afresh."""
        assert self.applied is not None
        rows, y, known = self.applied
        x = self._next(y)
        stay = self.problem.space.contains(x)[..., None]
        self.x.index_copy_(0, rows, torch.where(stay, x, self._fresh(self.batch, known)))
        self.turn += 1
        self.turn %= len(self.rows)
        fresh, new = self.fresh.index_select(0, self.turn)[0], self.source.take()
        batches.tree_map(lambda old, new: old.index_copy_(0, fresh, new), self.drawn, new)
        self.lam.index_copy_(0, fresh, self._lams(self.group))
        known = self._known(self.problem.look_up(new)) if self.near else None
        self.x.index_copy_(0, fresh, self._fresh(self.group, known))

    def _code(self, operator: Operator, tau: Batch, rows: Tensor) -> Code:
        """The codes of a batch: of all of it, or new ones of some and those kept of the others."""
        observed = self.problem.observe(tau)
        if self.encoded.shape[1] == len(rows):
            return operator.encode(observed)
        if self.codes is None:
            self.codes = self._all_codes(operator)
        some = self.encoded.index_select(0, self.turn)[0]
        new = operator.encode(batches.select(observed, some))

        def merged(kept: Tensor, new: Tensor) -> Tensor:
            kept.index_copy_(0, rows[some], new.detach())
            return kept[rows].index_copy(0, some, new)

        return batches.tree_map(merged, self.codes, new)

    def under_way(self, instances, points):
        some = slice(0, instances)
        return self.x[some, :points].clone(), self.problem.look_up(batches.select(self.drawn, some))

    def _all_known(self) -> Known:
        """Of every slot, a batch at a time, as taus may be large."""
        if not self.near:
            return None
        every = (self.problem.look_up(batches.select(self.drawn, k)) for k in self._in_order)
        return batches.tree_map(lambda *each: torch.cat(each), *map(self._known, every))

    @property
    def _in_order(self) -> Tensor:
        """The slots of every batch, from the first to the last."""
        return self.rows[: self.chunks]

    @torch.no_grad()
    def _all_codes(self, operator: Operator) -> Code:
        """Of every slot, a batch at a time, before the first step."""
        every = (self._instances(batches.select(self.drawn, k)) for k in self._in_order)
        found = [operator.encode(self.problem.observe(tau)) for tau in every]
        return batches.tree_map(lambda *each: torch.cat(each), *found)

    def state(self) -> dict[str, object]:
        codes = () if self.codes is None else self.codes
        own = {"drawn": self.drawn, "lam": self.lam, "x": self.x, "codes": codes}
        return {**batches.tree_map(self.part.whole, own), "turn": self.turn}

    def restore(self, state: dict[str, Any]) -> None:
        own = (self.drawn, self.lam, self.x)
        saved = (state["drawn"], state["lam"], state["x"])
        batches.tree_map(lambda mine, old: mine.copy_(self.part.of(old)), own, saved)
        self.codes = self._own(state["codes"]) if batches.leaves(state["codes"]) else None
        self.turn.copy_(state["turn"])


def random_lams(lams: Lams, count: int, generator: torch.Generator) -> Float[Tensor, " i"]:
    """So many of a range, in which every order of magnitude is as likely."""
    low, high = lams
    return low * (high / low) ** torch.rand(count, generator=generator, device=generator.device)


SAMPLINGS = {"pool": Pool, "unfold": Unfold}
