"""What it costs to see that nothing in an operator's file is damaged: loading it with all checks,
and without any.

    python benchmarks/loading.py

The shipped operators are loaded both ways, in turn, on a CPU.
"""

import json
from functools import partial
from pathlib import Path

import torch
from _shared import Benchmark, options, show
from _timing import interleaved
from safetensors import safe_open

from proxlearn.operators.load import load, rebuilt
from proxlearn.operators.operator import Operator
from proxlearn.operators.shipped import shipped


def unchecked(path: Path) -> Operator:
    """The operator of a file that is trusted: checksum, header and numbers are not looked at."""
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["header"])
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    operator = rebuilt(header, {})
    operator.load_state_dict(weights)
    return operator.eval()


def main(arguments: list[str] | None = None) -> None:
    run = Benchmark("loading", options(__doc__, on_cpu=True).parse_args(arguments))
    torch.set_num_threads(1)
    rounds = 2 if run.quick else 15
    for name, path in shipped().items():
        ways = {"checked": partial(load, path, "cpu"), "unchecked": partial(unchecked, path)}
        times = interleaved(ways, run.device, rounds, seconds=0.0)  # one call each time
        for way, timing in times.items():
            ratio = timing.over(times["unchecked"])
            run.add(
                operator=name, way=way, bytes=path.stat().st_size, over=ratio, **timing.fields()
            )
    lines = [
        [each[k] for k in ("operator", "way", "bytes", "seconds", "over")] for each in run.rows
    ]
    show("Loading an operator", ("operator", "way", "bytes", "seconds", "times unchecked"), lines)
    run.save()


if __name__ == "__main__":
    main()
