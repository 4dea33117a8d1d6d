"""The figures of the shipped operators, on the protocols of the paper: are they what they were?

    python benchmarks/shipped.py

Conics: witnessed precision at 0.05 against L-BFGS, after some applications and where the operator
stops by itself, after at most so many. Max-cut: of all maximum cuts of graphs with 8 vertices and
weights 0 and 1, the share that is found after 100 applications.
"""

from typing import Any

from _shared import Benchmark, options, show

import proxlearn as px
from proxlearn.measure.evaluate import evaluate
from proxlearn.problems.base import held_out
from proxlearn.problems.maxcut import Maxcut
from proxlearn.problems.maxcut.cuts import EXACT, cut_values, enumerated

APPLICATIONS, AT_MOST = (3, 5, 10, 20), (5, 10, 20, 50, 100)
SEED = 11  # of the graphs of results/maxcut


def conics(run: Benchmark) -> None:
    """Rows of the conic operator."""
    few: dict[str, Any] = {"instances": 4, "starts": 64, "witnesses": 64, "trials": 1}
    many: dict[str, Any] = {"instances": 256, "starts": 1024, "witnesses": 1024, "trials": 3}
    rows = evaluate(
        px.problem("conic"),
        [
            *((f"{k} applications", "operator", {"steps": k}) for k in APPLICATIONS),
            *((f"arrival, at most {k}", "arriving", {"steps": k}) for k in AT_MOST),
            ("L-BFGS, other starts", "lbfgs", {}),
        ],
        reference=("lbfgs", {}),
        thresholds=(0.05,),
        deltas=(0.05,),
        device=run.device.type,
        **(few if run.quick else many),
    )
    for each in rows:
        run.add(operator="conic", figure=each["label"], value=each["wp@0.05"], wd=each["wd"])


def cuts(run: Benchmark) -> None:
    """A row of the max-cut operator."""
    problem, starts = Maxcut(), 32 if run.quick else 1024
    weights = held_out(problem, 8 if run.quick else 1024, SEED, run.device)
    how = {"starts": starts, "device": run.device.type, "steps": 100}
    found = px.solve(problem, weights, "operator", **how)[::2].rounded().cpu()
    weights, shares = weights[::2], []  # every other graph has weights 0 and 1
    for k, best in enumerate(enumerated(weights)):
        most = cut_values(best[None], weights[k : k + 1]).max().item()
        values = found[k].unique(smallest_share=0.0).values
        assert values is not None
        shares.append(int((values <= -most + EXACT * abs(most)).sum()) / len(best))
    run.add(operator="maxcut", figure="maximum cuts", value=sum(shares) / len(shares))


def main(arguments: list[str] | None = None) -> None:
    run = Benchmark("shipped", options(__doc__).parse_args(arguments))
    conics(run)
    cuts(run)
    lines = [(each["operator"], each["figure"], each["value"]) for each in run.rows]
    show("Shipped operators", ("operator", "figure", "value"), lines)
    run.save()


if __name__ == "__main__":
    main()
