"""Training in one process and in two, by the size of a step: where does the second one pay?

    python benchmarks/processes.py

Each size is trained for some seconds by torchrun, with the cores shared out among the processes.
One process alone chooses the number of threads itself; of several, each has its share of the cores.
"""

import json
import os
import subprocess
import sys
from typing import NamedTuple

from _shared import Benchmark, options, show

import proxlearn as px
from proxlearn.gpu.parallel import this_process
from proxlearn.training.session import Report


class Sizes(NamedTuple):
    taus: tuple[int, ...] = (66, 252, 1_020, 4_092, 16_380)  # of a step, 16 points each
    processes: tuple[int, ...] = (1, 2)
    seconds: float = 8.0


POINTS = 16
QUICK = Sizes((12,), (1, 2), 1.0)


def train(taus: int, seconds: float) -> None:
    """One process of a training: steps a second, after the first second."""
    seen: list[Report] = []
    how = {"seconds": seconds, "applications": 1, "progress": False, "device": "cpu"}
    px.learn(
        px.problem("conic"),
        instances=taus,
        points=POINTS,
        watch=lambda report, _: seen.append(report),
        **how,  # pyright: ignore[reportArgumentType]
    )
    last, first = seen[-1], seen[0] if len(seen) > 1 else Report(0, 0.0, 0.0, {})
    if this_process().first:
        print(json.dumps((last.step - first.step) / (last.seconds - first.seconds)))


def launched(taus: int, processes: int, seconds: float) -> float:
    """Steps a second of so many processes."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    if processes == 1:
        launch = []
    threads = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // processes))}
    command = [sys.executable, *launch, __file__, "--train", str(taus), "--seconds", str(seconds)]
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | threads)
    if ran.returncode:
        raise SystemExit(ran.stderr[-2000:])
    return json.loads(ran.stdout.strip().splitlines()[-1])


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--train", type=int, help="be one of the processes, for so many taus")
    parser.add_argument("--seconds", type=float, help="of each training")
    asked = parser.parse_args(arguments)
    sizes = QUICK if asked.quick else Sizes()
    seconds = asked.seconds or sizes.seconds
    if asked.train:
        train(asked.train, seconds)
        return
    run = Benchmark("processes", asked)
    for taus in sizes.taus:
        alone = 0.0
        for processes in sizes.processes:
            speed = launched(taus, processes, seconds)
            alone = alone or speed
            ratio = {"speedup": speed / alone, "ms": 1e3 / speed}
            run.add(points=taus * POINTS, taus=taus, processes=processes, **ratio)
    keys = ("points", "processes", "ms", "speedup")
    show("A step, by processes", keys, [[each[key] for key in keys] for each in run.rows])
    run.save()


if __name__ == "__main__":
    main()
