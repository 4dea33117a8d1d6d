"""Max-cut: its relaxation, `cuts` and rounding, its `picture`. Rests on what `problems` does."""

from proxlearn.problems.maxcut.maxcut import Maxcut

__all__ = ["Maxcut"]
