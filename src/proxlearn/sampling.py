"""Importance sampling: which points an operator is trained on (paper, app. C).

Both forms draw x from the same mixture, the mean of the laws of `Phi^k(uniform)` for k = 0..depth,
so that an operator also learns to refine points that have almost arrived.

Of several processes, each draws the whole step, as one process would, and keeps its part of it.
"""

import math
from typing import Any

import torch
from torch import Generator, Tensor

from proxlearn import batch as batches
from proxlearn.batch import Batch
from proxlearn.operator import Operator
from proxlearn.parallel import ALONE, Part, Process
from proxlearn.problem import Problem
from proxlearn.rules import Judge, Terms

Applied = list[tuple[Tensor, Tensor]]  # outputs of the operator, and the loss's gradients in them


class Unfold:
    """The paper's form: every training step applies the operator depth + 1 times in a row."""

    def __init__(
        self,
        problem: Problem,
        instances: int,
        points: int,
        depth: int,
        generator: Generator,
        process: Process = ALONE,
    ):
        self.problem, self.instances, self.points = problem, instances, points
        self.depth, self.generator = depth, generator
        self.part = Part(process, instances)

    def apply(self, operator: Operator, judge: Judge) -> tuple[Applied, Terms]:
        """depth + 1 applications, and their loss on average."""
        tau = _taus(self.problem, self.instances, self.generator, self.part)
        code = operator.encode(self.problem.observe(tau))
        x = _uniform(self.problem, self.instances, self.points, self.generator, self.part)
        applied: Applied = []
        every: list[Terms] = []
        for _ in range(self.depth + 1):
            y = operator(x, operator.prepare(code))
            terms, slope = judge(y, x, tau)
            x = y.detach()
            applied.append((y, slope / (self.depth + 1)))
            every.append(terms)
        mean = {name: torch.stack([terms[name] for terms in every]).mean() for name in every[0]}
        return applied, mean

    def state(self) -> dict[str, object]:
        return {}

    def restore(self, state: dict[str, object]) -> None:
        pass


class Pool:
    """A persistent pool of particles: one application per training step, the output written back.

    The pool is `chunks` batches that take turns. A batch is made of depth + 1 groups of taus; at
    each visit one group starts afresh, so that the ages in a batch are exactly k = 0..depth and
    the law of x is the paper's mixture at a sixth of the cost (for depth 5). Points that left the
    space start afresh as well.
    """

    chunks = 8

    def __init__(
        self,
        problem: Problem,
        instances: int,
        points: int,
        depth: int,
        generator: Generator,
        process: Process = ALONE,
    ):
        groups = depth + 1
        self.group = math.ceil(instances / groups)  # taus in a group
        self.batch, self.groups = self.group * groups, groups
        self.problem, self.generator = problem, generator
        self.part = Part(process, self.group, groups)
        slots, device = self.chunks * self.batch, generator.device
        drawn = _taus(problem, slots, generator, self.part)
        self.tau = batches.tree_map(lambda t: t.clone(), drawn)  # ours to write into
        self.x = _uniform(problem, slots, points, generator, self.part)
        self.turn = torch.zeros(1, dtype=torch.long, device=device)  # on the device: no sync
        taken = torch.arange(len(self.x), device=device).view(self.chunks, groups, -1)
        self.fresh = taken.transpose(0, 1).flatten(0, 1)  # the slots that start afresh, by turn
        self.rows = taken.flatten(1).repeat(groups, 1)  # the slots of the batch, by turn

    def apply(self, operator: Operator, judge: Judge) -> tuple[Applied, Terms]:
        """One application to the next batch of the pool, and its loss."""
        problem, points, drawing = self.problem, self.x.shape[1], (self.generator, self.part)
        rows, fresh = (each.index_select(0, self.turn)[0] for each in (self.rows, self.fresh))
        drawn = _taus(problem, self.group, *drawing)
        batches.tree_map(lambda old, new: old.index_copy_(0, fresh, new), self.tau, drawn)
        self.x.index_copy_(0, fresh, _uniform(problem, self.group, points, *drawing))

        tau, x = batches.select(self.tau, rows), self.x[rows]
        code = operator.encode(problem.observe(tau))
        y = operator(x, operator.prepare(code))
        terms, slope = judge(y, x, tau)
        stay = problem.space.contains(y.detach())[..., None]
        uniform = _uniform(problem, self.batch, points, *drawing)
        self.x.index_copy_(0, rows, torch.where(stay, y.detach(), uniform))
        self.turn += 1
        self.turn %= len(self.rows)
        return [(y, slope)], terms

    def state(self) -> dict[str, object]:
        """What a checkpoint has to hold: the pool of all processes together."""
        tau = batches.tree_map(self.part.whole, self.tau)
        return {"tau": tau, "x": self.part.whole(self.x), "turn": self.turn}

    def restore(self, state: dict[str, Any]) -> None:
        tau, x = self.tau, self.x
        batches.tree_map(
            lambda own, saved: own.copy_(self.part.of(saved)), (tau, x), (state["tau"], state["x"])
        )
        self.turn.copy_(state["turn"])


SAMPLINGS = {"pool": Pool, "unfold": Unfold}


def _taus(problem: Problem, count: int, generator: Generator, part: Part) -> Batch:
    drawn = batches.tree_map(part.of, problem.sample(count, "train", generator))
    return batches.move(drawn, generator.device)


def _uniform(
    problem: Problem, instances: int, points: int, generator: Generator, part: Part
) -> Tensor:
    device = generator.device
    return part.of(problem.space.sample(instances, points, generator=generator, device=device))
