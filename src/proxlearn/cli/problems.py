"""`proxlearn problems`: what can be solved without writing a problem of one's own."""

import sys

from rich.markup import escape
from rich.table import Table

from proxlearn.operators.card import card_of
from proxlearn.operators.shipped import available, pretrained, shipped
from proxlearn.problems import names, problem
from proxlearn.show import terminal

EXAMPLES = ("proxlearn problems",)


def run() -> None:
    """List the built-in problems, and the cards of the operators that there are for them.

    Where x lives, how many numbers tau has (or what else it is), and whether an operator is shipped
    or was brought in. A card says what the operator was trained on, for how long, from which seed,
    how good it is on instances that it had not seen, and its licence.
    """
    table = Table("name", "what it is", "space", "tau", "operator", box=None, padding=(0, 2, 0, 0))
    ours, all_there = shipped(), available()
    for name in names():
        each = problem(name)
        about = (sys.modules[type(each).__module__].__doc__ or "").strip().splitlines()[0]
        operator = "shipped" if name in ours else "brought in" if name in all_there else "none"
        space, size = terminal.space_words(each.space), terminal.tau_size(each)
        table.add_row(name, escape(about), escape(space), size, operator)
    terminal.show(table)
    terminal.card_table({name: card_of(pretrained(name, "cpu")) for name in all_there})
    if without := [name for name in names() if name not in all_there]:
        terminal.say(
            f"No operator is shipped for {', '.join(without)}: L-BFGS solves them without one, "
            f"`proxlearn train {without[-1]} --out runs/{without[-1]}` trains one, and `proxlearn "
            "bring FILE` brings in the file of one."
        )
