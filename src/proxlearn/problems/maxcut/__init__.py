"""Max-cut: its relaxation, cuts and rounding (`cuts`), and how they are drawn (`picture`). Rests on
what `problems` does."""

from proxlearn.problems.maxcut.maxcut import Maxcut

__all__ = ["Maxcut"]
