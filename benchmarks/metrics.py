"""The witnessed metrics against loops that read like their definition (paper, section 4).

    python benchmarks/metrics.py

Both are given the same solutions of the shipped operator, the same truth and the same witnesses,
and must agree.
"""

from typing import NamedTuple

import torch
from _shared import Benchmark, options, show
from _timing import interleaved, peak_memory
from jaxtyping import Float
from torch import Tensor

import proxlearn as px
from proxlearn.common.seeds import generator_for
from proxlearn.problems.base import held_out

THRESHOLD, DELTA = 0.05, 0.05
LITERAL, BATCHED, ALL = "one witness at a time", "px.metrics", "px.metrics, all conics"
AGREE = 0.01  # of WD and WP: which of two equally near points is nearest is a matter of rounding


class Sizes(NamedTuple):
    instances: int = 8  # for the literal loops
    all: int = 256  # the paper's protocol
    starts: int = 1024
    witnesses: int = 1024


def literal(
    found: px.Solutions, truth: px.Solutions, witnesses: Float[Tensor, "w d"]
) -> tuple[Float[Tensor, " i"], Float[Tensor, " i"]]:
    """WD and WP of every instance, one witness at a time, as eq. (6) and (7) read."""
    divergence, precision = [], []
    for i in range(len(found)):
        a, b = kept(found[i]), kept(truth[i])
        gap = torch.stack([difference(a, b, w, found.space.diameter) for w in witnesses])
        divergence.append(gap.mean())
        precision.append((gap < DELTA).float().mean())
    return torch.stack(divergence), torch.stack(precision)


def kept(solutions: px.Solutions) -> Float[Tensor, "n d"]:
    """The points of one instance inside the space with values of at most the threshold."""
    assert solutions.values is not None
    return solutions.points[solutions.inside & (solutions.values <= THRESHOLD)]


def difference(
    a: Float[Tensor, "n d"], b: Float[Tensor, "m d"], witness: Float[Tensor, " d"], diameter: float
) -> Float[Tensor, ""]:
    """D_t of one witness: 0 between empty sets, the diameter if one of them is empty."""
    if not len(a) or not len(b):
        return witness.new_full((), diameter if len(a) or len(b) else 0.0)
    on_a, on_b = projection(a, witness), projection(b, witness)
    forth = torch.linalg.vector_norm(on_a - projection(b, on_a))
    back = torch.linalg.vector_norm(on_b - projection(a, on_b))
    return forth / 2 + back / 2


def projection(points: Float[Tensor, "n d"], x: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
    """The nearest of the points."""
    return points[torch.linalg.vector_norm(points - x, dim=-1).argmin()]


def batched(
    found: px.Solutions, truth: px.Solutions, witnesses: Float[Tensor, "w d"]
) -> tuple[Float[Tensor, " i"], Float[Tensor, " i"]]:
    """The same by px.metrics."""
    seen = px.metrics.witnessed(found, truth, witnesses, (DELTA,), THRESHOLD)
    return seen.divergence, seen.precision[:, 0]


def sets(run: Benchmark, sizes: Sizes) -> tuple[px.Solutions, px.Solutions, Tensor]:
    """What the operator finds on test conics, the truth, and the witnesses."""
    conic, device = px.problem("conic"), str(run.device)
    tau = held_out(conic, sizes.all)
    found = px.solve(conic, tau, "operator", sizes.starts, 0, device)
    truth = px.solve(conic, tau, "lbfgs", sizes.starts, 1, device, steps=20)
    witnesses = conic.space.sample(sizes.witnesses, generator=generator_for(0, "witnesses"))
    return found, truth, witnesses.to(run.device)


def main(arguments: list[str] | None = None) -> None:
    run = Benchmark("metrics", options(__doc__).parse_args(arguments))
    sizes = Sizes(2, 4, 32, 16) if run.quick else Sizes()
    found, truth, witnesses = sets(run, sizes)
    few = found[: sizes.instances], truth[: sizes.instances], witnesses
    calls = {
        LITERAL: lambda: literal(*few),
        BATCHED: lambda: batched(*few),
        ALL: lambda: batched(found, truth, witnesses),
    }
    pairs = zip(literal(*few), batched(*few))
    differ = max(float((one - other).abs().max()) for one, other in pairs)
    if differ > AGREE:
        raise SystemExit(f"The two differ by {differ}: one of them is wrong.")
    timings = interleaved(calls, run.device, 5, 0.0 if run.quick else 0.2)
    for name, timing in timings.items():
        instances = sizes.all if name == ALL else sizes.instances
        with peak_memory(run.device) as peak:
            calls[name]()
        run.add(
            variant=name,
            instances=instances,
            starts=sizes.starts,
            witnesses=sizes.witnesses,
            **timing.fields(),
            instances_per_second=instances / timing.median,
            times_literal=timings[LITERAL].over(timing) * instances / sizes.instances,
            largest_difference=differ,
            peak_mib=peak.mib,
        )
    keys = ("variant", "instances", "seconds", "instances_per_second", "times_literal")
    header = ("variant", "conics", "seconds", "conics/s", "times literal")
    show("Witnessed metrics", header, [[each[key] for key in keys] for each in run.rows])
    run.save()


if __name__ == "__main__":
    main()
