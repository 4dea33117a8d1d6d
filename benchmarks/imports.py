"""How long `import proxlearn` takes, against `import torch`, each in a fresh process.

python benchmarks/imports.py
"""

import subprocess
import sys
from functools import partial

from _shared import Benchmark, options, show
from _timing import interleaved

MODULES = ("torch", "proxlearn")


def fresh(module: str) -> None:
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)


def main(arguments: list[str] | None = None) -> None:
    run = Benchmark("imports", options(__doc__, on_cpu=True).parse_args(arguments))
    calls = {module: partial(fresh, module) for module in MODULES}
    timings = interleaved(calls, run.device, rounds=1 if run.quick else 15, seconds=0.0)
    for module, timing in timings.items():
        ratio = timing.over(timings["torch"])
        run.add(module=module, **timing.fields(), times_torch=ratio)
    lines = [(row["module"], row["seconds"], row["times_torch"]) for row in run.rows]
    show("Importing", ("module", "seconds", "times torch"), lines)
    run.save()


if __name__ == "__main__":
    main()
