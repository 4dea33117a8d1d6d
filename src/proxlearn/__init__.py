"""Find all the optima of a parametric family of objectives, with a learned proximal operator."""

from proxlearn import metrics
from proxlearn.certify import certify
from proxlearn.errors import (
    FileError,
    InputError,
    ObjectiveError,
    ProcessError,
    ProxlearnError,
    RangeWarning,
    TrainingError,
    UnknownNameError,
)
from proxlearn.missed import unseen
from proxlearn.operator import Operator, load
from proxlearn.polish import polish
from proxlearn.pretrained import pretrained
from proxlearn.problem import Problem
from proxlearn.problems import problem
from proxlearn.solutions import Optima, Solutions
from proxlearn.solvers import solve
from proxlearn.spaces import Box, Circles, Planes, Product, Space, Sphere
from proxlearn.train import learn

__all__ = [
    "Box",
    "Circles",
    "FileError",
    "InputError",
    "ObjectiveError",
    "Operator",
    "Optima",
    "Planes",
    "Problem",
    "ProcessError",
    "Product",
    "ProxlearnError",
    "RangeWarning",
    "Solutions",
    "Space",
    "Sphere",
    "TrainingError",
    "UnknownNameError",
    "certify",
    "learn",
    "load",
    "metrics",
    "polish",
    "pretrained",
    "problem",
    "solve",
    "unseen",
]
