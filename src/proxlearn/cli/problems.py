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
        terminal.say(_how_to_have_one(without))


def _how_to_have_one(names: list[str]) -> str:
    """What to do for problems without an operator, and what can be had meanwhile."""
    unseen = [name for name in names if problem(name).observes_part]
    but = (
        f" all but {', '.join(unseen)}, whose objective is unknown when you solve" if unseen else ""
    )
    return (
        f"No operator is shipped for {', '.join(names)}. To have one, train it, such as by "
        f"`proxlearn train {names[-1]} --out runs/{names[-1]}`, or install a file of one by "
        f"`proxlearn bring FILE`. Without one, L-BFGS solves{but or ' them'}."
    )
