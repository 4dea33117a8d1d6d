"""Sparse recovery from measurements never seen: one operator for every A and y.

Beyond the paper, whose operators are each of one A and one y. Methods, budgets and rows are those
of `reproduce sparse`; every test instance has measurements of its own.
"""

from dataclasses import replace

from proxlearn.common.provenance import Row
from proxlearn.experiments import sparse
from proxlearn.experiments._shared import Folder
from proxlearn.experiments._sparse_figures import draw_histograms
from proxlearn.experiments.sparse import Sizes

SETS = ("sparse-general",)
LONG = {"steps": 20_000, "depth": 10, "applications": 20}
SHORT = sparse.QUICK.training | {"seconds": 60.0}
FULL = replace(sparse.FULL, sets=SETS, training=LONG, descent=5_000, instances=64, starts=512)
QUICK = replace(sparse.QUICK, sets=SETS, training=SHORT, lam=None)
LEFT_OUT = (
    "It trains a small network for 60 seconds instead of the usual one for 20,000 steps, and "
    "solves 8 instances from 256 starts instead of 64 from 512; POL is far from trained."
)


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    (name,) = sizes.sets
    rows, shown = sparse.solved(name, sparse.train(name, sizes, folder), sizes, folder)
    draw_histograms(shown, folder, "histograms.png")
    return rows, sparse.table(rows)
