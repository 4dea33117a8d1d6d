"""`proxlearn compare`: several methods side by side, as a table and a figure."""

from typing import Annotated, Any

from typer import Option

from proxlearn.cli import options
from proxlearn.common.files import usual_folder, writable_folder
from proxlearn.figures import draw
from proxlearn.measure import evaluate as evaluation
from proxlearn.operators.shipped import available
from proxlearn.problems import problem
from proxlearn.show import terminal

EXAMPLES = (
    "proxlearn compare springs --methods descent,lbfgs,multistart",
    "proxlearn compare conic --tau 0.3,0,0.5,0,0,-1 --starts 1024",
)


def run(
    name: options.Name,
    tau: options.Tau = None,
    operator: options.OperatorFile = None,
    methods: Annotated[
        str | None, Option(help="separated by commas (default: operator if any, descent, lbfgs)")
    ] = None,
    instances: options.Instances = 4,
    starts: Annotated[int, Option(help="starts for each instance, the same for all")] = 256,
    witnesses: options.Witnesses = 256,
    reference: options.Reference = "descent",
    seed: options.Seed = 0,
    device: options.Device = "auto",
    out: options.Out = None,
) -> None:
    """Run several solvers from the same starts: one table and one figure."""
    chosen = problem(name)
    folder = writable_folder(out or usual_folder(f"{chosen.name}-compare"))
    ready = ["operator"] if operator or chosen.name in available() else []
    asked = methods.split(",") if methods is not None else [*ready, "descent", "lbfgs"]
    candidates = []
    for method in map(str.strip, asked):
        file = operator if options.learned(method) else None
        settings = options.settings_for(name, chosen, method, file, device)
        candidates.append((method, method, settings))
    instance = options.instances_for(chosen, tau, seed, instances)
    how: dict[str, Any] = {"reference": (reference, {}), "seed": seed, "device": device}
    how |= {"tau": instance, "starts": starts, "witnesses": witnesses}
    rows, solved = evaluation.compare(chosen, candidates, **how)
    options.show_and_keep(rows, folder)
    found = {each.candidate.label: each.solutions for each in solved}
    terminal.say(f"Figure: {draw.compare(chosen, instance, found, folder / 'compare.png')}")
