"""Sparse recovery: its problems, the penalties' proximal operators (`thresholds`), and what all of
them share (`recovery`). Rests on what `problems` does."""

from proxlearn.problems.sparse.sparse import Sparse

__all__ = ["Sparse"]
