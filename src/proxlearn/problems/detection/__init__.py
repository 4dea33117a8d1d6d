"""All boxes around the things in an image. Rests on what `problems` does."""

from proxlearn.problems.detection.detection import Detection

__all__ = ["Detection"]
