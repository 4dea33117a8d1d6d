"""Provoke every fault that a user, a disk or a network could, and count how each case ends.

    python benchmarks/fuzz.py                      # all of it, about an hour on two cores
    python benchmarks/fuzz.py operator_files --share 0.01

Cases are drawn with fixed seeds, each in a process of its own with 10 s and 2 GiB. The rows say how
many ended in a sentence, went well, or went well with a warning; and how many in a raw error, a
wrong answer said with certainty, too long, too large, or a crash: those have to be none, and are
listed in `faults.jsonl`.
"""

import argparse
import importlib
import os
import pkgutil
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a process that was forked could not use it
os.environ["OMP_NUM_THREADS"] = "1"

import fuzzing
import torch
from _shared import show
from fuzzing import frame
from rich.progress import track

from proxlearn.common.files import read_rows, write_rows
from proxlearn.common.provenance import row

OUT = Path("results/fuzz")
COMMAND = "python benchmarks/fuzz.py"


def kinds() -> dict[str, ModuleType]:
    """Every kind of fault there is."""
    names = [each.name for each in pkgutil.iter_modules(fuzzing.__path__)]
    modules = {name: importlib.import_module(f"fuzzing.{name}") for name in names}
    return {name: each for name, each in modules.items() if hasattr(each, "WHAT")}


def provoke(
    kind: ModuleType, share: float, seed: int, jobs: int
) -> tuple[dict[str, object], list[frame.Outcome]]:
    """The row of a kind of fault, and its cases that ended badly."""
    cases = range(max(1, round(share * kind.CASES)))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        every = frame.outcomes(kind, cases, seed, Path(folder), jobs)
        ended = list(track(every, kind.WHAT, total=len(cases)))
    seconds = round(time.monotonic() - began, 1)
    about = {"what": kind.WHAT, "cases": len(cases), **frame.counts(ended)}
    made = row(**about, seconds=seconds, seed=seed, command=COMMAND)
    return made, [each for each in ended if each.kind in frame.BAD]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(kinds())} (default: all)")
    parser.add_argument("--share", type=float, default=1.0, help="of the cases (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time")
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder of the rows ({OUT})")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows = read_rows(asked.out / "rows.jsonl") if (asked.out / "rows.jsonl").is_file() else []
    for name in asked.kinds or kinds():
        made, bad = provoke(kinds()[name], asked.share, asked.seed, asked.jobs)
        rows = [each for each in rows if each["what"] != made["what"]] + [made]
        write_rows(asked.out / "rows.jsonl", rows)
        write_rows(asked.out / f"faults-{name}.jsonl", map(asdict, bad))
    columns = ("what", "cases", *frame.GOOD, *frame.BAD)
    show("How the cases ended", columns, [[each[name] for name in columns] for each in rows])


if __name__ == "__main__":
    main()
