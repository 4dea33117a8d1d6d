"""Importance sampling: which points an operator is trained on (paper, app. C).

Both forms draw x from the same mixture, the mean of the laws of `Phi^k(uniform)` for k = 0..depth,
so that an operator also learns to refine points that have almost arrived.

Of several processes, each draws the whole step, as one process would, and keeps its part of it.
"""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch
from proxlearn.gpu.parallel import ALONE, Part, Process
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import Problem
from proxlearn.training.rules import Judge, Terms

Lams = tuple[float, float]  # the range of the proximal weights; one number twice if there is one
Applied = list[tuple[Tensor, Tensor]]  # outputs of the operator, and the loss's gradients in them


class _Sampling:
    """What both forms share: a step is `groups` groups of taus, of which each process has its part
    and for which every process draws the same numbers."""

    def __init__(
        self,
        problem: Problem,
        instances: int,
        points: int,
        depth: int,
        lams: Lams,
        generator: Generator,
        process: Process = ALONE,
    ):
        self.problem, self.points, self.depth = problem, points, depth
        self.lams, self.generator = lams, generator
        self.group = math.ceil(instances / self.groups)  # taus in a group
        self.batch = self.group * self.groups
        self.part = Part(process, self.group, self.groups)

    @property
    def groups(self) -> int:
        return 1

    def _instances(self, count: int) -> tuple[Batch, Float[Tensor, " i"]]:
        """Taus, and for each a lam: every order of magnitude in the range is as likely."""
        drawn = self.problem.sample(count, "train", self.generator)
        device, (low, high) = self.generator.device, self.lams
        lam = torch.full((count,), low, device=device)
        if high > low:
            lam = low * (high / low) ** torch.rand(count, generator=self.generator, device=device)
        return batches.move(batches.tree_map(self.part.of, drawn), device), self.part.of(lam)

    def _uniform(self, count: int) -> Float[Tensor, "i n d"]:
        """Fresh points for so many taus."""
        device, space = self.generator.device, self.problem.space
        drawn = space.sample(count, self.points, generator=self.generator, device=device)
        return self.part.of(drawn)


class Unfold(_Sampling):
    """The paper's form: every training step applies the operator depth + 1 times in a row."""

    def apply(self, operator: Operator, judge: Judge) -> tuple[Applied, Terms]:
        """depth + 1 applications, and their loss on average."""
        tau, lam = self._instances(self.batch)
        prepared = operator.prepare(operator.encode(self.problem.observe(tau)), lam)
        x = self._uniform(self.batch)
        applied: Applied = []
        every: list[Terms] = []
        for _ in range(self.depth + 1):
            y = operator(x, prepared)
            terms, slope = judge(y, x, tau, lam)
            x = y.detach()
            applied.append((y, slope / (self.depth + 1)))
            every.append(terms)
        mean = {name: torch.stack([terms[name] for terms in every]).mean() for name in every[0]}
        return applied, mean

    def state(self) -> dict[str, object]:
        return {}

    def restore(self, state: dict[str, object]) -> None:
        pass


class Pool(_Sampling):
    """A persistent pool of particles: one application per training step, the output written back.

    The pool is `chunks` batches that take turns. A batch is made of depth + 1 groups of taus; at
    each visit one group starts afresh, so that the ages in a batch are exactly k = 0..depth and
    the law of x is the paper's mixture at a sixth of the cost (for depth 5). Points that left the
    space start afresh as well.
    """

    chunks = 8

    def __init__(self, *arguments: Any, **more: Any):
        super().__init__(*arguments, **more)
        slots, device = self.chunks * self.batch, self.generator.device
        drawn = self._instances(slots)
        self.instances = batches.tree_map(lambda t: t.clone(), drawn)  # ours to write into
        self.x = self._uniform(slots)
        self.turn = torch.zeros(1, dtype=torch.long, device=device)  # on the device: no sync
        taken = torch.arange(len(self.x), device=device).view(self.chunks, self.groups, -1)
        self.fresh = taken.transpose(0, 1).flatten(0, 1)  # the slots that start afresh, by turn
        self.rows = taken.flatten(1).repeat(self.groups, 1)  # the slots of the batch, by turn

    @property
    def groups(self) -> int:
        return self.depth + 1

    def apply(self, operator: Operator, judge: Judge) -> tuple[Applied, Terms]:
        """One application to the next batch of the pool, and its loss."""
        problem = self.problem
        rows, fresh = (each.index_select(0, self.turn)[0] for each in (self.rows, self.fresh))
        drawn = self._instances(self.group)
        batches.tree_map(lambda old, new: old.index_copy_(0, fresh, new), self.instances, drawn)
        self.x.index_copy_(0, fresh, self._uniform(self.group))

        (tau, lam), x = batches.select(self.instances, rows), self.x[rows]
        y = operator(x, operator.prepare(operator.encode(problem.observe(tau)), lam))
        terms, slope = judge(y, x, tau, lam)
        stay = problem.space.contains(y.detach())[..., None]
        self.x.index_copy_(0, rows, torch.where(stay, y.detach(), self._uniform(self.batch)))
        self.turn += 1
        self.turn %= len(self.rows)
        return [(y, slope)], terms

    def state(self) -> dict[str, object]:
        """What a checkpoint has to hold: the pool of all processes together."""
        instances = batches.tree_map(self.part.whole, self.instances)
        return {"instances": instances, "x": self.part.whole(self.x), "turn": self.turn}

    def restore(self, state: dict[str, Any]) -> None:
        own, saved = (self.instances, self.x), (state["instances"], state["x"])
        batches.tree_map(lambda mine, old: mine.copy_(self.part.of(old)), own, saved)
        self.turn.copy_(state["turn"])


SAMPLINGS = {"pool": Pool, "unfold": Unfold}
