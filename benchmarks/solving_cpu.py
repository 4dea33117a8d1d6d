"""Solving on a CPU: the networks as they are written, all cores in every operation, against what
`solve` does: pieces that fit into a core's cache, each on one core, and settled points left out.

    python benchmarks/solving_cpu.py

Max-cut: one graph with 8 vertices, the usual number of applications. Conics: 5 applications, where
those before the last are in 16 bits if the processor has instructions for that. Both begin at the
same starts. Quality is the share of all maximum cuts that is found, and the witnessed precision of
the conics' solutions.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from _shared import Benchmark, options, show
from _timing import interleaved
from torch import Tensor

import proxlearn as px
from proxlearn.common.batch import pieces
from proxlearn.problems.base import held_out
from proxlearn.problems.maxcut.cuts import EXACT, cut_values, enumerated

AT_ONCE = 1 << 12  # points that go through a network together where it is not told how


class Case(NamedTuple):
    """What is solved, and how good a result is."""

    problem: str
    steps: int
    instances: int
    starts: int
    quality: Callable[[px.Solutions, Tensor], float]


def cuts_found(found: px.Solutions, weights: Tensor) -> float:
    """The share of all maximum cuts."""
    hits = known = 0
    for k, best in enumerate(enumerated(weights)):
        most = cut_values(best[None], weights[k : k + 1]).max().item()
        values = found.rounded()[k].unique(smallest_share=0.0).values
        assert values is not None
        hits, known = hits + int((values <= -most + EXACT * abs(most)).sum()), known + len(best)
    return hits / known


def precision(found: px.Solutions, tau: Tensor) -> float:
    """The witnessed precision at 0.05 of values below 0.05."""
    conic, generator = px.problem("conic"), torch.Generator().manual_seed(1)
    truth = px.solve(conic, tau, "lbfgs", found.points.shape[1], 1, "cpu", steps=30)
    witnesses = conic.space.sample(1024, generator=generator)
    seen = px.metrics.witnessed(found, truth, witnesses, deltas=(0.05,), threshold=0.05)
    return seen.precision.mean().item()


def as_written(operator: px.Operator, tau: Tensor, starts: Tensor, steps: int) -> px.Solutions:
    """The network's own forward pass, which training uses, on some points after the others."""
    bound = operator.bind(tau)

    @torch.enable_grad()  # the weights ask for none
    def run(starts: Tensor) -> px.Solutions:
        reached = torch.empty_like(starts)
        for rows, columns, some, x in pieces(bound.observed, starts, AT_ONCE):
            prepared = operator.prepare(operator.encode(some))
            for _ in range(steps):
                x = operator.step(x, prepared, bound.space)
            reached[rows, columns] = x
        return px.Solutions.of(bound.space, reached, starts, steps)

    return bound.answer(run, starts)


def measured(run: Benchmark, case: Case) -> None:
    """Two rows: before and after."""
    operator = px.pretrained(case.problem, "cpu").requires_grad_(False)
    tau = held_out(px.problem(case.problem), case.instances)
    space = operator.bind(tau).space
    starts = space.sample(case.instances, case.starts, generator=torch.Generator().manual_seed(0))
    calls: dict[str, Callable[[], px.Solutions]] = {
        "as written": lambda: as_written(operator, tau, starts, case.steps),
        "solve": lambda: operator.solve(tau, starts, case.steps),
    }
    rounds, seconds = (2, 0.0) if run.quick else (5, 0.5)
    timings = interleaved(calls, run.device, rounds, seconds)
    for label, call in calls.items():
        timing, sizes = timings[label], case._asdict()
        fields: dict[str, Any] = {k: v for k, v in sizes.items() if k != "quality"}
        run.add(
            variant=label,
            **fields,
            **timing.fields(),
            solutions_per_second=case.instances * case.starts / timing.median,
            times_as_written=timings["as written"].over(timing),
            quality=case.quality(call(), tau),
        )


def main(arguments: list[str] | None = None) -> None:
    run = Benchmark("solving_cpu", options(__doc__, on_cpu=True).parse_args(arguments))
    few = run.quick
    measured(run, Case("maxcut", 5 if few else 100, 1, 64 if few else 1024, cuts_found))
    measured(run, Case("conic", 5, *((2, 32) if few else (64, 1024)), precision))
    keys = ("problem", "variant", "seconds", "solutions_per_second", "times_as_written", "quality")
    show("Solving on a CPU", keys, [[each[key] for key in keys] for each in run.rows])
    run.save()


if __name__ == "__main__":
    main()
