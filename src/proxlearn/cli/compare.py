"""`proxlearn compare`: several methods side by side, as a table and a figure."""

from pathlib import Path
from typing import Annotated

import typer

from proxlearn.cli.options import (
    LEARNED,
    Device,
    Instances,
    Name,
    OperatorFile,
    Reference,
    Seed,
    Tau,
    Witnesses,
    instances_for,
    settings_for,
    show_and_keep,
)
from proxlearn.show import screen

EXAMPLES = (
    "proxlearn compare springs --methods descent,lbfgs,multistart",
    "proxlearn compare conic --tau 0.3,0,0.5,0,0,-1 --starts 1024",
)


def run(
    name: Name,
    tau: Tau = None,
    operator: OperatorFile = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="separated by commas (default: operator if there is one, descent, lbfgs)"
        ),
    ] = None,
    instances: Instances = 4,
    starts: Annotated[
        int, typer.Option(help="starts for each instance, the same for every method")
    ] = 256,
    witnesses: Witnesses = 256,
    reference: Reference = "descent",
    seed: Seed = 0,
    device: Device = "auto",
    out: Annotated[
        Path | None, typer.Option(help="folder to write to (default: runs/PROBLEM-compare)")
    ] = None,
) -> None:
    """Run several solvers from the same starts: one table and one figure."""
    from proxlearn.common.files import writable_folder
    from proxlearn.figures import draw
    from proxlearn.measure import evaluate as evaluation
    from proxlearn.operators.shipped import shipped
    from proxlearn.problems import problem

    chosen = problem(name)
    folder = writable_folder(out or Path("runs") / f"{chosen.name}-compare")
    ready = ["operator"] if operator or chosen.name in shipped() else []
    asked = methods.split(",") if methods else [*ready, "descent", "lbfgs"]
    candidates = []
    for method in map(str.strip, asked):
        file = operator if method in LEARNED else None
        candidates.append((method, method, settings_for(name, chosen, method, file, device)))
    instance = instances_for(chosen, tau, seed, instances)
    comparison = evaluation.compare(
        chosen,
        candidates,
        tau=instance,
        reference=(reference, {}),
        starts=starts,
        witnesses=witnesses,
        seed=seed,
        device=device,
    )
    show_and_keep(comparison.rows, folder)
    found = {each.candidate.label: each.solutions for each in comparison.solved}
    screen.say(f"Figure: {draw.compare(chosen, instance, found, folder / 'compare.png')}")
