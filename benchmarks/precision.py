"""What the precision of the network's products does to quality: conics, trained for as many steps
in each precision, then solved in each.

    python benchmarks/precision.py

Quality is WP^0.05 and WD at t = 0.05 by the paper's protocol, after 5 applications.
"""

import copy
import time
from typing import Any

import torch
from _shared import Benchmark, options, show

import proxlearn as px
from proxlearn.measure.evaluate import evaluate

PRECISIONS = {"cuda": ("fp32", "tf32", "bf16"), "cpu": ("fp32", "bf16")}  # that differ there
STEPS = 5  # applications
FULL: dict[str, Any] = {"instances": 256, "starts": 1024, "witnesses": 1024, "trials": 3}
QUICK: dict[str, Any] = {"instances": 2, "starts": 16, "witnesses": 16, "trials": 1}
TINY: dict[str, Any] = {"steps": 5, "instances": 6, "points": 4}
TINY |= {"architecture": {"width": 16, "shared": 16}}


def trained(precision: str, device: torch.device, settings: dict[str, Any]) -> px.Operator:
    conic = px.problem("conic")
    return px.learn(conic, precision=precision, applications=STEPS, device=str(device), **settings)


def solving_in(precision: str, operator: px.Operator) -> px.Operator:
    """The same operator, with its products in another precision."""
    other = copy.deepcopy(operator)
    other.precision = precision
    return other


def main(arguments: list[str] | None = None) -> None:
    run = Benchmark("precision", options(__doc__).parse_args(arguments))
    training = TINY if run.quick else {"steps": 12_000}
    descent = {"steps": 20} if run.quick else {"steps": 50_000, "rate": 1e-3}
    known, conic = PRECISIONS[run.device.type], px.problem("conic")
    candidates: list[tuple[str, str, dict[str, Any]]] = []
    seconds: dict[str, float] = {}
    for precision in known:
        began = time.perf_counter()
        operator = trained(precision, run.device, training)
        seconds[precision] = time.perf_counter() - began
        for solved in known:
            how = {"operator": solving_in(solved, operator), "steps": STEPS}
            candidates.append((f"{precision}, {solved}", "operator", how))
    rows = evaluate(
        conic,
        candidates,
        reference=("descent", descent),
        thresholds=[0.05],
        deltas=[0.05],
        device=str(run.device),
        **(QUICK if run.quick else FULL),
    )
    for row in rows:
        precision, solved = row["label"].split(", ")
        quality = {"seconds": seconds[precision], "wp": row["wp@0.05"], "wd": row["wd"]}
        run.add(trained_in=precision, solved_in=solved, **training, **quality)
    keys = ("trained_in", "solved_in", "seconds", "wp", "wd")
    lines = [tuple(row[key] for key in keys) for row in run.rows]
    show("Precision", ("trained in", "solved in", "seconds", "WP at 0.05", "WD"), lines)
    run.save()


if __name__ == "__main__":
    main()
