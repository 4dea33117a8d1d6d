"""Importance sampling: which points an operator is trained on (paper, app. C).

Both forms draw x from the same mixture, the mean of the laws of `Phi^k(uniform)` for k = 0..depth,
so that an operator also learns to refine points that have almost arrived.
"""

import torch
from torch import Generator, Tensor

from proxlearn import batch as batches
from proxlearn.operator import Operator
from proxlearn.problem import Problem
from proxlearn.rules import Rule, Terms


class Unfold:
    """The paper's form: every training step applies the operator depth + 1 times in a row."""

    def __init__(
        self, problem: Problem, instances: int, points: int, depth: int, generator: Generator
    ):
        self.problem, self.instances, self.points = problem, instances, points
        self.depth, self.generator = depth, generator

    def losses(self, rule: Rule, operator: Operator) -> Terms:
        """The rule's loss, averaged over k = 0..depth."""
        tau = batches.move(
            self.problem.sample(self.instances, "train", self.generator), self.generator.device
        )
        code = operator.encode(self.problem.observe(tau))
        x = _uniform(self.problem, self.instances, self.points, self.generator)
        every: list[Terms] = []
        for _ in range(self.depth + 1):
            x, terms = rule.apply(operator, self.problem, x, tau, code)
            x = x.detach()
            every.append(terms)
        return {name: torch.stack([terms[name] for terms in every]).mean() for name in every[0]}

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
        self, problem: Problem, instances: int, points: int, depth: int, generator: Generator
    ):
        groups = depth + 1
        self.group = max(1, instances // groups)  # taus in a group
        self.batch, self.groups = self.group * groups, groups
        self.problem, self.generator = problem, generator
        slots, device = self.chunks * self.batch, generator.device
        drawn = batches.move(problem.sample(slots, "train", generator), device)
        self.tau = batches.tree_map(lambda t: t.clone(), drawn)  # ours to write into
        self.x = _uniform(problem, slots, points, generator)
        self.turn = torch.zeros((), dtype=torch.long, device=device)  # on the device: no sync

    def losses(self, rule: Rule, operator: Operator) -> Terms:
        """The rule's loss on the next batch of the pool."""
        problem, device = self.problem, self.generator.device
        first = self.turn % self.chunks * self.batch
        rows = first + torch.arange(self.batch, device=device)
        fresh = (
            first
            + self.turn // self.chunks % self.groups * self.group
            + torch.arange(self.group, device=device)
        )
        drawn = batches.move(problem.sample(self.group, "train", self.generator), device)
        batches.tree_map(lambda old, new: old.index_copy_(0, fresh, new), self.tau, drawn)
        points = self.x.shape[1]
        self.x.index_copy_(0, fresh, _uniform(problem, self.group, points, self.generator))

        tau, x = batches.select(self.tau, rows), self.x[rows]
        code = operator.encode(problem.observe(tau))
        y, terms = rule.apply(operator, problem, x, tau, code)
        y = y.detach()
        stay = problem.space.contains(y)[..., None]
        uniform = _uniform(problem, self.batch, points, self.generator)
        self.x.index_copy_(0, rows, torch.where(stay, y, uniform))
        self.turn += 1
        return terms

    def state(self) -> dict[str, object]:
        """What a checkpoint has to hold."""
        return {"tau": self.tau, "x": self.x, "turn": self.turn}

    def restore(self, state: dict[str, object]) -> None:
        batches.tree_map(lambda own, saved: own.copy_(saved), self.state(), state)


SAMPLINGS = {"pool": Pool, "unfold": Unfold}


def _uniform(problem: Problem, instances: int, points: int, generator: Generator) -> Tensor:
    return problem.space.sample(instances, points, generator=generator, device=generator.device)
