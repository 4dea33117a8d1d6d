"""The problem, a chain of springs, and its `picture`. Rests on what `problems` does."""

from proxlearn.problems.springs.springs import Springs

__all__ = ["Springs"]
