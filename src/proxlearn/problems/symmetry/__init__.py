"""Symmetries of shapes: planes that reflect a surface onto itself, and what they share with axes of
rotation. Rests on what `problems` does."""

from proxlearn.problems.symmetry.symmetry import Symmetry

__all__ = ["Symmetry"]
