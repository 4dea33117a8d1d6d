"""Find all the optima of a parametric family of objectives, with a learned proximal operator."""

from proxlearn.answers import metrics
from proxlearn.answers.solutions import Optima, Solutions
from proxlearn.answers.unseen import unseen
from proxlearn.branches.answer import Branch, Branches, Event
from proxlearn.branches.trace import trace
from proxlearn.calculus.certify import certify
from proxlearn.calculus.implicit import differentiable
from proxlearn.calculus.polish import polish
from proxlearn.detections.answer import Detections
from proxlearn.detections.detect import detect
from proxlearn.errors import (
    FileError,
    InputError,
    LeftOutWarning,
    NotFiniteWarning,
    ObjectiveError,
    OutsideWarning,
    PoorOperatorWarning,
    ProcessError,
    ProxlearnError,
    RangeWarning,
    SpeedWarning,
    TrainingError,
    UnknownNameError,
)
from proxlearn.operators.load import load
from proxlearn.operators.operator import Operator
from proxlearn.operators.shipped import pretrained
from proxlearn.problems import problem
from proxlearn.problems.base import Problem
from proxlearn.shapes.answer import Symmetries
from proxlearn.shapes.symmetries import symmetries
from proxlearn.solvers.solve import solve
from proxlearn.spaces import Box, Circles, Lines, Planes, Product, Space, Sphere
from proxlearn.training.learn import learn
from proxlearn.version import __version__

__all__ = [
    "Branch",
    "Branches",
    "Detections",
    "Event",
    "Operator",
    "Optima",
    "Problem",
    "Solutions",
    "Symmetries",
]
__all__ += ["__version__", "detect", "metrics"]
__all__ += ["Box", "Circles", "Lines", "Planes", "Product", "Space", "Sphere"]
__all__ += [
    "certify",
    "differentiable",
    "learn",
    "load",
    "polish",
    "pretrained",
    "problem",
    "solve",
]
__all__ += ["symmetries", "trace", "unseen"]
__all__ += ["FileError", "InputError", "ObjectiveError", "ProcessError", "ProxlearnError"]
__all__ += ["TrainingError", "UnknownNameError"]
__all__ += ["LeftOutWarning", "NotFiniteWarning", "OutsideWarning", "PoorOperatorWarning"]
__all__ += ["RangeWarning", "SpeedWarning"]
