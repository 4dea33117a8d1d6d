"""`proxlearn problems`: what can be solved without writing a problem of one's own."""

import sys

from rich.markup import escape
from rich.table import Table

from proxlearn.operators.shipped import shipped
from proxlearn.problems import names, problem
from proxlearn.show import terminal

EXAMPLES = ("proxlearn problems",)


def run() -> None:
    """List the built-in problems: what they are, where x lives, how many numbers tau has (or what
    else it is), and for which an operator is shipped."""
    table = Table("name", "what it is", "space", "tau", "operator", box=None, padding=(0, 2, 0, 0))
    for name in names():
        each = problem(name)
        about = (sys.modules[type(each).__module__].__doc__ or "").strip().splitlines()[0]
        pretrained = "shipped" if name in shipped() else ""
        space, size = terminal.space_words(each.space), terminal.tau_size(each)
        table.add_row(name, escape(about), escape(space), size, pretrained)
    terminal.show(table)
