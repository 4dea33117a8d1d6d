"""`proxlearn problems`: what can be solved without writing a problem of one's own."""

import sys

from rich.markup import escape
from rich.table import Table

from proxlearn.operators.shipped import pretrained, shipped
from proxlearn.problems import names, problem
from proxlearn.show import terminal

EXAMPLES = ("proxlearn problems",)


def run() -> None:
    """List the built-in problems.

    Where x lives, how many numbers tau has (or what else it is), and for which an operator is
    shipped, with the share of starts that it leads to an optimum where that is known.
    """
    table = Table("name", "what it is", "space", "tau", "operator", box=None, padding=(0, 2, 0, 0))
    for name in names():
        each = problem(name)
        about = (sys.modules[type(each).__module__].__doc__ or "").strip().splitlines()[0]
        operator = _quality(name) if name in shipped() else ""
        space, size = terminal.space_words(each.space), terminal.tau_size(each)
        table.add_row(name, escape(about), escape(space), size, operator)
    terminal.show(table)


def _quality(name: str) -> str:
    """What is known of a shipped operator: the share of starts that it leads to an optimum."""
    card = getattr(pretrained(name, "cpu"), "card", None)
    return "shipped" if card is None else f"shipped, {card['at_optimum']:.0%}"
