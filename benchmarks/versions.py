"""Training speed before and after a change: two versions of the package, in turns, in one run.

    python benchmarks/versions.py --before ../older/src

Each training is a process of its own, since a process has one proxlearn; the steps of its last
seconds are counted, when everything is compiled and captured.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from _shared import Benchmark, options, show

TRAININGS = {  # of px.learn, long enough to compile the objective where it says so
    "conic": ("conic", {"seconds": 10.0}),
    "conic, compiled": ("conic", {"seconds": 130.0}),
    "maxcut": ("maxcut", {"seconds": 10.0}),
}
ONCE = """
import json, sys
import proxlearn as px
name, settings, device, count = json.loads(sys.argv[1])
seen = []

def watch(report, operator):
    seen.append((report.step, report.seconds))
    if len(seen) == count:
        raise KeyboardInterrupt

problem = px.problem(name)
px.learn(problem, device=device, progress=False, applications=5, watch=watch, **settings)
(a, s), (b, t) = seen[len(seen) // 2], seen[-1]
print(json.dumps((b - a) / (t - s)))
"""
REPORTS = 12  # half a second apart; the first half of them is not counted, nor what comes after


def steps_per_second(source: Path, name: str, settings: dict, device: str, reports: int) -> float:
    """Of one training by the package in `source`."""
    given = json.dumps((name, settings, device, reports))
    environment = os.environ | {"PYTHONPATH": str(source.resolve())}
    ran = subprocess.run(
        [sys.executable, "-c", ONCE, given], env=environment, capture_output=True, text=True
    )
    if ran.returncode:
        raise SystemExit(ran.stderr)
    return json.loads(ran.stdout.splitlines()[-1])


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--before", type=Path, required=True, help="the src/ of another version")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(arguments)
    run = Benchmark("versions", asked)
    sources = {"before": asked.before, "after": Path(__file__).parent.parent / "src"}
    chosen = dict(list(TRAININGS.items())[:1]) if run.quick else TRAININGS
    if run.device.type == "cpu":
        chosen = {name: how for name, how in chosen.items() if "compiled" not in name}
    for label, (name, settings) in chosen.items():
        speeds: dict[str, list[float]] = {version: [] for version in sources}
        for _ in range(1 if run.quick else asked.rounds):
            for version, source in sources.items():
                count = 4 if run.quick else REPORTS
                how = name, settings, run.device.type, count
                speeds[version].append(steps_per_second(source, *how))
        medians = {version: statistics.median(each) for version, each in speeds.items()}
        run.add(training=label, **medians, ratio=medians["after"] / medians["before"])
    lines = [(each["training"], each["before"], each["after"], each["ratio"]) for each in run.rows]
    show("Training, steps a second", ("training", "before", "after", "ratio"), lines)
    run.save()


if __name__ == "__main__":
    main()
