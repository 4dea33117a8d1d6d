"""`proxlearn evaluate`: how good an operator is, measured on test instances."""

from typing import Annotated, Any

from typer import Option

from proxlearn.cli import options
from proxlearn.common.files import usual_folder, writable_folder
from proxlearn.measure.evaluate import evaluate
from proxlearn.problems import problem
from proxlearn.show import terminal

EXAMPLES = (
    "proxlearn evaluate conic --steps 3,5,10,20 --thresholds 0.05,0.1",
    "The paper's protocol:",
    "proxlearn evaluate conic --instances 256 --starts 1024 --witnesses 1024 --trials 10 "
    "--thresholds 0.05,0.1,0.2",
)


def run(
    name: options.Name,
    operator: options.OperatorFile = None,
    steps: Annotated[
        str | None, Option(help="how often to apply it; several: 3,5,10 (default: as trained)")
    ] = None,
    instances: options.Instances = 32,
    starts: Annotated[int, Option(help="starts for each instance")] = 256,
    witnesses: options.Witnesses = 256,
    trials: Annotated[int, Option(min=1, help="how often to draw witnesses anew")] = 3,
    thresholds: Annotated[
        str | None, Option(help="only solutions of at most this value count; several: 0.05,0.1")
    ] = None,
    deltas: Annotated[str, Option(help="tolerances of the witnessed precision")] = "0.05,0.1,0.2",
    reference: options.Reference = "descent",
    seed: options.Seed = 0,
    device: options.Device = "auto",
    out: options.Out = None,
) -> None:
    """Measure an operator against a reference solver: witnessed divergence and precision.

    The last line measures the reference against itself, from other starts: no method can be
    expected to do better.
    """
    chosen = problem(name)
    folder = writable_folder(out or usual_folder(f"{chosen.name}-evaluate"))
    trained = options.operator_for(name, chosen, operator, device)
    applied = options.whole_numbers("--steps", steps) or [trained.applications]
    own = {"operator": trained}
    candidates = [(f"operator x{k}", "operator", own | {"steps": k}) for k in applied]
    candidates.append((reference, reference, {}))
    counts = {"instances": instances, "starts": starts, "witnesses": witnesses, "trials": trials}
    how: dict[str, Any] = {"reference": (reference, {}), "seed": seed, "device": device}
    how["thresholds"] = options.numbers("--thresholds", thresholds) or [None]
    how["deltas"] = options.numbers("--deltas", deltas)
    rows = evaluate(chosen, candidates, **counts, **how)
    options.show_and_keep(rows, folder)
    terminal.say(
        f"From {starts:,} starts per instance. With few starts even two runs of the reference "
        "differ, as the last line shows; --help has the numbers that the paper used."
    )
