"""An operator before and after it was trained anew: two files of one problem, the same starts.

    python benchmarks/before_after.py maxcut old.safetensors new.safetensors --threshold 0.995 \\
        --relative --deltas 0.1,0.3714 --out results/maxcut/before.jsonl

L-BFGS is the truth, and measured against itself from other starts the best there is.
"""

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

from proxlearn.common.files import write_rows
from proxlearn.measure.evaluate import evaluate
from proxlearn.operators.load import load
from proxlearn.problems import problem

BEST = "L-BFGS, other starts"


def main(arguments: list[str] | None = None) -> None:
    asked = parser().parse_args(arguments)
    deltas = [float(each) for each in asked.deltas.split(",")]
    files = {"before": asked.before, "after": asked.after}
    operators = {name: load(file, asked.device) for name, file in files.items()}
    candidates = [
        (name, "operator", {"operator": each, "steps": each.applications})
        for name, each in operators.items()
    ]
    rows = evaluate(
        problem(asked.problem),
        [*candidates, (BEST, "lbfgs", {})],
        reference=("lbfgs", {}),
        instances=asked.instances,
        starts=asked.starts,
        witnesses=asked.starts,
        trials=3,
        thresholds=(asked.threshold,),
        relative=asked.relative,
        deltas=deltas,
        device=asked.device,
    )
    print(write_rows(asked.out, [{"benchmark": "before_after"} | each for each in rows]))
    columns = ["wd", *(f"wp@{delta:.4g}" for delta in deltas)]
    table = Table("operator", "applications", *columns, box=None)
    for each in rows:
        applied = str(each["applications"] or "")
        table.add_row(each["label"], applied, *(f"{each[name]:.3f}" for name in columns))
    Console().print(table)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("problem", help="a built-in problem")
    made.add_argument("before", type=Path, help="an operator's file")
    made.add_argument("after", type=Path, help="another")
    made.add_argument("--threshold", type=float, help="only solutions of at most this value count")
    made.add_argument("--relative", action="store_true", help="times the best value of the truth")
    made.add_argument("--deltas", default="0.05,0.1,0.2", help="of the witnessed precision")
    made.add_argument("--instances", type=int, default=64)
    made.add_argument("--starts", type=int, default=1024)
    made.add_argument("--device", default="auto", help="auto, cpu or cuda")
    made.add_argument("--out", type=Path, default=Path("runs/before_after.jsonl"))
    return made


if __name__ == "__main__":
    main()
