"""`proxlearn evaluate`: how good an operator is, measured on test instances."""

from pathlib import Path
from typing import Annotated

import typer

from proxlearn.cli.options import (
    Device,
    Instances,
    Name,
    OperatorFile,
    Reference,
    Seed,
    Witnesses,
    numbers,
    operator_for,
    show_and_keep,
    whole_numbers,
)
from proxlearn.show import screen

EXAMPLES = (
    "proxlearn evaluate conic --steps 3,5,10,20 --thresholds 0.05,0.1",
    "The paper's protocol:",
    "proxlearn evaluate conic --instances 256 --starts 1024 --witnesses 1024 --trials 10 "
    "--thresholds 0.05,0.1,0.2",
)


def run(
    name: Name,
    operator: OperatorFile = None,
    steps: Annotated[
        str | None,
        typer.Option(
            help="how often to apply it, several numbers with commas (default: as trained)"
        ),
    ] = None,
    instances: Instances = 32,
    starts: Annotated[int, typer.Option(help="starts for each instance")] = 256,
    witnesses: Witnesses = 256,
    trials: Annotated[int, typer.Option(min=1, help="how often to draw witnesses anew")] = 3,
    thresholds: Annotated[
        str | None,
        typer.Option(help="only solutions with at most this value count; several with commas"),
    ] = None,
    deltas: Annotated[
        str, typer.Option(help="distances at which the witnessed precision is measured")
    ] = "0.05,0.1,0.2",
    reference: Reference = "descent",
    seed: Seed = 0,
    device: Device = "auto",
    out: Annotated[
        Path | None, typer.Option(help="folder to write to (default: runs/PROBLEM-evaluate)")
    ] = None,
) -> None:
    """Measure an operator against a reference solver: witnessed divergence and precision.

    The last line measures the reference against itself, from other starts: no method can be
    expected to do better.
    """
    from proxlearn.common.files import writable_folder
    from proxlearn.measure.evaluate import evaluate
    from proxlearn.problems import problem

    chosen = problem(name)
    folder = writable_folder(out or Path("runs") / f"{chosen.name}-evaluate")
    trained = operator_for(name, chosen, operator, device)
    applied = whole_numbers("--steps", steps) or [trained.applications]
    candidates = [
        (f"operator x{k}", "operator", {"operator": trained, "steps": k}) for k in applied
    ]
    rows = evaluate(
        chosen,
        [*candidates, (reference, reference, {})],
        reference=(reference, {}),
        instances=instances,
        starts=starts,
        witnesses=witnesses,
        trials=trials,
        thresholds=numbers("--thresholds", thresholds) or [None],
        deltas=numbers("--deltas", deltas),
        seed=seed,
        device=device,
    )
    show_and_keep(rows, folder)
    screen.say(
        f"From {starts:,} starts per instance. With few starts even two runs of the reference "
        "differ, as the last line shows; --help has the numbers that the paper used."
    )
