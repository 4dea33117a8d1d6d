"""Mirror symmetries of shapes: planes that reflect a surface onto itself. Rests on what `problems`
does."""

from proxlearn.problems.symmetry.symmetry import Symmetry

__all__ = ["Symmetry"]
