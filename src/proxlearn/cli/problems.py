"""`proxlearn problems`: what can be solved without writing a problem of one's own."""

import sys

from rich.markup import escape
from rich.table import Table

from proxlearn.operators.shipped import shipped
from proxlearn.problems import names, problem
from proxlearn.show import terminal

EXAMPLES = ("proxlearn problems",)


def run() -> None:
    """List the built-in problems."""
    table = Table("name", "what it is", "space", "size of tau", "pretrained", box=None)
    for name in names():
        each = problem(name)
        about = (sys.modules[type(each).__module__].__doc__ or "").strip().splitlines()[0]
        pretrained = "yes" if name in shipped() else "no"
        space, size = terminal.space_words(each.space), terminal.tau_size(each)
        table.add_row(name, escape(about), escape(space), size, pretrained)
    terminal.show(table)
