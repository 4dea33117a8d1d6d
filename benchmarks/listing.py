"""How long `px.symmetries` takes for one part, once everything is loaded, and where the time goes.

    python benchmarks/listing.py [--parts 16] [--rounds 5]

Generated parts, two of each kind, as exact meshes and as clouds of 2,048 points without normals;
256 starts. "planes" is `px.symmetries(part, axes=False)`, "everything" is with axes. What of the
planes' time is of the target (cleaning, points, noise), of the operator and of the listing is
measured in calls of their own. Times are medians over the parts of the median of several rounds,
on a GPU after others that warm up: a graph is captured when it is needed for the third time. On a
CPU, seconds are those that it computes, of all threads together, so that a busy machine counts like
an idle one.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _shared import Benchmark, options, show

import proxlearn as px
from proxlearn.calculus.loop import now
from proxlearn.common.seeds import generator_for
from proxlearn.meshes.mesh import Cloud, Mesh, sampled
from proxlearn.meshes.parts import KINDS, Part, part
from proxlearn.shapes.detect import ends_of_planes
from proxlearn.shapes.given import shape_from
from proxlearn.shapes.search import found_among
from proxlearn.shapes.symmetries import STARTS, TOLERANCE, shipped_operator
from proxlearn.shapes.target import target_of

WARM_UP = 3  # rounds over all parts, on a GPU


def as_cloud(one: Part) -> Cloud:
    return Cloud(sampled(one.mesh, 2048, generator_for(0, "cloud")).points, None)


GIVEN: dict[str, Callable[[Part], Mesh | Cloud]] = {
    "mesh": lambda one: one.mesh,
    "cloud": as_cloud,
}


def stages(shape: Mesh | Cloud, operator: px.Operator, starts: int) -> dict[str, float]:
    """The seconds of each stage, and of everything."""
    device, marks, names = operator.device, [], []

    def mark(name: str) -> None:
        marks.append(now(device) if device.type == "cuda" else time.process_time())
        names.append(name)

    mark("")
    generator = generator_for(0, "shape")
    target = target_of(shape_from(shape), generator, device)
    mark("target")
    ends = ends_of_planes(operator, target, starts, 0)
    mark("operator")
    found_among(ends, target, TOLERANCE, generator)
    mark("listing")
    px.symmetries(shape, operator, starts, axes=False)
    mark("planes")
    px.symmetries(shape, operator, starts)
    mark("everything")
    return dict(zip(names[1:], np.diff(marks).tolist()))


def measured(run: Benchmark, operator: px.Operator, parts: list[Part], rounds: int) -> None:
    """A row for each stage, of meshes and of clouds."""
    starts = 16 if run.quick else STARTS
    for name, given in GIVEN.items():
        shapes = [given(one) for one in parts]
        for _ in range(WARM_UP if run.device.type == "cuda" and not run.quick else 0):
            for shape in shapes:
                stages(shape, operator, starts)
        taken = [[stages(shape, operator, starts) for _ in range(rounds)] for shape in shapes]
        for stage in taken[0][0]:
            each = np.median([[one[stage] for one in some] for some in taken], axis=1)
            low, middle, high = np.quantile(each, (0.25, 0.5, 0.75)).tolist()
            quartiles: dict[str, Any] = {"seconds_low": low, "seconds_high": high}
            run.add(
                given=name,
                stage=stage,
                parts=len(parts),
                starts=starts,
                rounds=rounds,
                seconds=middle,
                slowest=float(each.max()),
                **quartiles,
            )


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--parts", type=int, default=16, help="generated parts, all kinds in turn")
    parser.add_argument("--rounds", type=int, default=5, help="of every part")
    run = Benchmark("listing", parser.parse_args(arguments))
    count, rounds = (1, 1) if run.quick else (run.asked.parts, run.asked.rounds)
    generator, kinds = generator_for(200, "listing"), list(KINDS)
    parts = [part(kinds[k % len(kinds)], generator) for k in range(count)]
    began = time.perf_counter()
    operator = shipped_operator(str(run.device))
    px.symmetries(parts[0].mesh, operator)  # what is done once
    loading = time.perf_counter() - began
    measured(run, operator, parts, rounds)
    lines = [
        (r["given"], r["stage"], *(1e3 * r[key] for key in ("seconds", "slowest")))
        for r in run.rows
    ]
    title = f"One part, in ms (loading and a first part took {loading:.1f} s)"
    show(title, ("given", "stage", "median part", "slowest part"), lines)
    run.save()


if __name__ == "__main__":
    main()
