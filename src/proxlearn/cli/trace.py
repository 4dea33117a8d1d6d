"""`proxlearn trace`: the optima along a path of taus, and where they appear, merge and vanish."""

import time
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from proxlearn.branches.trace import SAMPLES, STARTS, trace
from proxlearn.cli import options
from proxlearn.figures.draw import check_format
from proxlearn.problems import problem
from proxlearn.show import terminal

EXAMPLES = (
    "proxlearn trace springs --from 0.6,0.9,0.5,0.7 --to 0.9,0.6,0.7,0.5 --out branches.png",
    "proxlearn trace peaks --from begin.json --to end.json --out branches.png --json branches.json",
)


def run(
    name: options.Name,
    begin: Annotated[
        str | None, Option("--from", help="the tau at the beginning of the path, as in solve --tau")
    ] = None,
    end: Annotated[str | None, Option("--to", help="the tau at its end (default: random)")] = None,
    method: Annotated[
        str | None,
        Option(help="that solves along the path (default: the operator, and L-BFGS as well)"),
    ] = None,
    operator: options.OperatorFile = None,
    samples: Annotated[int, Option(min=2, help="at how many taus it is solved")] = SAMPLES,
    starts: Annotated[int, Option(min=1, help="points to start from at each")] = STARTS,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    out: Annotated[Path | None, Option(help="draw a picture: png, svg or pdf")] = None,
    json_file: options.JsonFile = None,
) -> None:
    """Follow every optimum along a path from one tau to another.

    It lists where optima appear, merge and vanish; s goes from 0 at the beginning of the path to 1
    at its end. A fold is where an optimum meets a saddle, a pitchfork where several become one; an
    optimum ends suddenly where the objective jumps or has a kink.
    """
    chosen = problem(name)
    for file in (out, json_file):
        options.check_file(file)
    if out:
        check_format(out)
    ends = [
        options.instances_for(chosen, tau, number, 1, option)
        for option, tau, number in (("--from", begin, seed), ("--to", end, seed + 1))
    ]
    settings: dict[str, Any] = {"samples": samples, "starts": starts, "seed": seed}
    if operator:
        settings["operator"] = options.operator_for(name, chosen, operator, device)
    started = time.perf_counter()
    found = trace(chosen, *ends, method=method, device=device, **settings)
    seconds = time.perf_counter() - started
    if found.events and json_file != "-":
        terminal.show(found.table())
    terminal.say(f"{found.summary()} {seconds:.3g} s by {' and '.join(found.methods)}.")
    for sentence in found.doubts:
        terminal.say(sentence, "yellow")
    if json_file:
        options.write_json(json_file, found.to_json())
    if out:
        terminal.say(f"Picture: {found.plot(out)}")
