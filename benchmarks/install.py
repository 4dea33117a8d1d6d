"""From the wheel alone to a picture: a new environment, then `proxlearn solve conic --plot`.

python benchmarks/install.py
"""

import resource
import tempfile
import time
from pathlib import Path

from _shared import Benchmark, options, show
from _wheel import built, installed, run

TAU = "0.3,0,0.5,0,0,-1"
TIMES = 3  # the first after the install, and again


def main(arguments: list[str] | None = None) -> None:
    bench = Benchmark("install", options(__doc__, on_cpu=True).parse_args(arguments))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        _, wheel = built(folder / "dist")
        command = [str(installed(wheel, folder / "new") / "proxlearn"), "solve", "conic"]
        command += ["--tau", TAU, "--plot", "out.png"]
        for attempt in range(1, 2 if bench.quick else 1 + TIMES):
            began, before = time.perf_counter(), of_processor()
            run(command, cwd=folder)
            seconds, used = time.perf_counter() - began, of_processor() - before
            assert (folder / "out.png").stat().st_size > 10_000
            about = {"processor_seconds": used, "wheel_megabytes": wheel.stat().st_size / 1e6}
            bench.add(run=attempt, seconds=seconds, **about)
    names = ("run", "seconds", "processor_seconds", "wheel_megabytes")
    lines = [[row[name] for name in names] for row in bench.rows]
    show("After an install, to a picture", [name.replace("_", " ") for name in names], lines)
    bench.save()


def of_processor() -> float:
    """Seconds that processes begun here have computed for: on a busy machine they wait, too."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
