"""`proxlearn bring`: an operator that is not shipped, for a built-in problem."""

from typing import Annotated

from typer import Argument, Option

from proxlearn.operators.card import card_of
from proxlearn.operators.shipped import bring, pretrained
from proxlearn.show import terminal

EXAMPLES = (
    "proxlearn bring runs/sparse-general",
    "proxlearn bring https://example.org/detection.safetensors --hash HASH",
)


def run(
    source: Annotated[
        str, Argument(metavar="FILE", help="an operator's file, a training's folder, or an address")
    ],
    digest: Annotated[
        str | None, Option("--hash", help="the SHA-256 it must have; needed for an address")
    ] = None,
) -> None:
    """Bring in an operator for a built-in problem for which none is shipped.

    The file is copied into the folder ~/.proxlearn (or $PROXLEARN_HOME), where every command and
    px.pretrained find it. Its hash is kept beside it and checked whenever it is loaded.
    """
    name, file, found = bring(source, digest)
    terminal.card_table({name: card_of(pretrained(name, "cpu"))})
    terminal.say(f"The operator for {name!r} is {file}, SHA-256 {found}.")
