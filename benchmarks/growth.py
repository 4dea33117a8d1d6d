"""How time and memory grow: a training step with points, width and instances; solving with taus.

    python benchmarks/growth.py

Memory is what was allocated on the GPU; on a CPU, the most that the process held until then.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from _shared import Benchmark, options, show
from _timing import Call, interleaved, peak_memory
from step import ours

import proxlearn as px
from proxlearn.problems.base import held_out


class Sizes(NamedTuple):
    points: Sequence[int] = (512, 2048, 8192, 32_768, 65_536)  # of a step
    widths: Sequence[int] = (32, 64, 128, 256)
    instances: Sequence[int] = (6, 24, 96, 384, 1020)  # at about `fixed` points a step
    fixed: int = 8192
    taus: Sequence[int] = (10, 100, 1000, 10_000, 100_000)
    starts: int = 256
    rounds: int = 5
    seconds: float = 0.1


QUICK = Sizes((24, 48), (8, 16), (6, 12), 48, (2, 4), 8, 2, 0.0)
SOLVE_ROUNDS = 3  # the largest takes seconds


def shapes(sizes: Sizes) -> dict[str, dict[int, dict[str, Any]]]:
    """For every axis and size along it, the settings of the training."""
    fixed = batch(sizes.fixed)
    return {
        "points": {n: batch(n) for n in sizes.points},
        "width": {
            w: {**fixed, "architecture": {"width": w, "shared": 2 * w}} for w in sizes.widths
        },
        "instances": {i: batch(sizes.fixed, i) for i in sizes.instances},
    }


def batch(total: int, instances: int | None = None) -> dict[str, Any]:
    """So many points in all; by default about 64 for each instance, and instances in sixes, since
    the pool takes whole groups."""
    instances = instances or 6 * max(1, total // 384)
    return {"instances": instances, "points": total // instances}


def grow_step(run: Benchmark, axis: str, settings: dict[int, dict[str, Any]], sizes: Sizes) -> None:
    """A training step at every size along an axis."""
    conic = px.problem("conic")
    every = {str(size): ours(conic, each, run.device) for size, each in settings.items()}
    calls = {size: each.step for size, each in every.items()}
    timings = interleaved(calls, run.device, sizes.rounds, sizes.seconds)
    for size, timing in timings.items():
        points, peak = every[size].points, every[size].peak_mib
        about = {"axis": axis, "size": int(size), "points": points}
        run.add(**about, **timing.fields(), peak_mib=peak)


def grow_solving(run: Benchmark, sizes: Sizes) -> None:
    """Solving more and more taus as a stream."""
    operator = px.pretrained("conic", str(run.device))
    calls: dict[str, Call] = {}
    peaks = {}
    for count in sizes.taus:
        tau = held_out(px.problem("conic"), count)

        def solve(tau=tau) -> None:
            for _ in operator.stream(tau, starts=sizes.starts, steps=5):
                pass

        with peak_memory(run.device) as peak:
            solve()
        calls[str(count)], peaks[str(count)] = solve, peak.mib
    timings = interleaved(calls, run.device, SOLVE_ROUNDS, sizes.seconds, warm_up=0)
    for count, timing in timings.items():
        about = {"axis": "taus", "size": int(count), "points": int(count) * sizes.starts}
        run.add(**about, **timing.fields(), peak_mib=peaks[count])


def main(arguments: list[str] | None = None) -> None:
    run = Benchmark("growth", options(__doc__).parse_args(arguments))
    sizes = QUICK if run.quick else Sizes()
    for axis, settings in shapes(sizes).items():
        grow_step(run, axis, settings, sizes)
    grow_solving(run, sizes)
    keys = ("axis", "size", "points", "seconds", "peak_mib")
    lines = [[each[key] for key in keys] for each in run.rows]
    show("Growth", ("axis", "size", "points", "seconds", "peak MiB"), lines)
    run.save()


if __name__ == "__main__":
    main()
