"""Add skglm's rows to a finished sparse recovery experiment, on a machine that has skglm (extra
`sparse`): the same instances from the same starts, one after the other on the CPU.

    python benchmarks/sparse_skglm.py results/sparse
"""

import argparse
from dataclasses import replace
from pathlib import Path

from proxlearn.common.files import read_rows
from proxlearn.experiments import base as experiments
from proxlearn.experiments import sparse
from proxlearn.experiments._shared import Folder


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", type=Path, help="of `proxlearn reproduce sparse`")
    folder = parser.parse_args(arguments).folder
    rows = [
        each
        for each in read_rows(folder / "rows.jsonl")
        if not str(each["label"]).startswith("skglm")
    ]
    measured = next(each for each in rows if each["measure"] == "objective")
    sizes = replace(sparse.FULL, instances=measured["instances"], starts=measured["starts"])
    rows += sparse.skglm_rows(sizes, Folder(folder))
    print(experiments.write("sparse", folder, rows, sparse.table(rows), measured["quick"]))


if __name__ == "__main__":
    main()
