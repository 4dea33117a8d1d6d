"""`proxlearn play`: the page in which operators run, for a person to play with."""

import webbrowser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from typer import Argument, Option

from proxlearn.operators.load import load
from proxlearn.playground.folder import write
from proxlearn.playground.serve import address, serving
from proxlearn.playground.shown import built_in, own
from proxlearn.show import terminal

EXAMPLES = (
    "proxlearn play",
    "proxlearn play mine.safetensors",
    "proxlearn play --out playground",
)


def run(
    operator: Annotated[
        Path | None,
        Argument(help="an operator of your own: its file, or the folder of its training"),
    ] = None,
    out: Annotated[
        Path | None,
        Option(help="write the page into this folder, to open or to publish; no server"),
    ] = None,
    port: Annotated[int, Option(help="of the server; 0: a free one")] = 0,
    browser: Annotated[bool, Option(help="open a browser")] = True,
) -> None:
    """Open a page on which you move parameters, and watch starts flow to all the optima.

    Operators run in the page itself. The folder that --out writes needs no server, no Python and no
    network: open its index.html, or publish it as it is.
    """
    shown = built_in()
    if operator is not None:
        shown.insert(0, own(load(operator, "cpu"), Path(operator).stem))
    if out is not None:
        terminal.say(f"Playground: {write(out, shown, terminal.say).resolve().as_uri()}")
        return
    with TemporaryDirectory() as folder, serving(Path(folder), shown, port) as running:
        terminal.say(f"Playground: {address(running)} (Ctrl+C ends it)")
        if browser:
            webbrowser.open(address(running))
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            terminal.say("")
