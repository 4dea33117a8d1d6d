"""What comes out of a solver: every start's solution, and the distinct optima among them."""

import html
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from rich.table import Table
from torch import Tensor

from proxlearn.answers.clusters import TOLERANCE
from proxlearn.answers.distinct import distinct_optima
from proxlearn.answers.frames import as_array, coordinates, frame_of
from proxlearn.answers.notices import warn_where_some_have_no_value
from proxlearn.answers.optima import Optima
from proxlearn.answers.solution_files import read_arrays, write_arrays
from proxlearn.answers.table import SHOWN, html_table
from proxlearn.calculus.certify import CERTIFICATES, certify
from proxlearn.calculus.derivatives import gradient, instances_of
from proxlearn.calculus.polish import polish
from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch, Counts, Flags, Points, Values, pieces
from proxlearn.common.checks import at_least_zero, flag, said
from proxlearn.common.contents import brief
from proxlearn.errors import FileError, InputError, RangeWarning
from proxlearn.problems.base import Problem
from proxlearn.problems.objectives import values_of
from proxlearn.spaces import Space, space_from

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from scipy.optimize import OptimizeResult

VALUED_AT_ONCE = 1 << 19  # points, with their gradients
# The fields that a file holds, and what they are read back as.
PER_POINT = dict.fromkeys(
    ("points", "starts", "values", "gradient_norms", "quality"), torch.float32
)
PER_POINT |= {"applications": torch.int32, "certificates": torch.int8}
PER_POINT |= dict.fromkeys(("inside", "arrived"), torch.bool)
FIELDS = PER_POINT | {"doubts": torch.int8}
DOUBTS = ("none", "outside the trained range", "steps do not lower the objective")
HEADINGS = ("starts", "inside", "best value", "median", "median gradient")
COLUMNS = {"inside": "inside", "values": "value", "gradient_norms": "gradient_norm"}
COLUMNS |= {"applications": "applications", "arrived": "arrived", "quality": "quality"}
LOWERED = 0.75  # of the starts of an instance should end no higher than they began


@dataclass(frozen=True, repr=False)
class Solutions:
    """The solutions of a batch of instances, one for each start."""

    space: Space
    points: Points
    starts: Points
    inside: Flags
    values: Values | None = None  # None where there is no objective
    gradient_norms: Values | None = None  # along the manifold where there is one
    applications: Counts | None = None  # or steps, where they are counted
    certificates: Counts | None = None  # which of CERTIFICATES
    arrived: Flags | None = None  # by what an operator knows of it
    doubts: Int[Tensor, " i"] | None = None  # which of DOUBTS, about an operator's instances
    quality: Values | None = None  # from 0 to 1, as an operator that rates points predicts it
    problem: Problem | None = None
    tau: Batch | None = None
    method: str | None = None  # that found them, where it is known

    @staticmethod
    def of(
        space: Space, points: Points, starts: Points, applications: Counts | int | None = None
    ) -> "Solutions":
        """Solutions without values yet, which took so many applications, each or all alike."""
        inside = space.contains(points) & points.isfinite().all(-1)
        if isinstance(applications, int):
            applications = torch.full_like(inside, applications, dtype=torch.int32)
        return Solutions(space, points, starts, inside, applications=applications)

    def valued(self, problem: Problem, tau: Any) -> "Solutions":
        """The same with objective values and norms of gradients; tau as a user gives it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RangeWarning)  # said where the tau was given
            valued = self.with_values(problem, instances_of(problem, self.points, tau))
        return warn_where_some_have_no_value(valued)

    def with_values(self, problem: Problem, tau: Batch) -> "Solutions":
        """The same for a batch that is checked and beside the points, some points at a time."""
        values, norms = torch.empty_like(self.points[..., 0]), torch.empty_like(self.points[..., 0])
        for rows, columns, some, x in pieces(tau, self.points, VALUED_AT_ONCE):
            values[rows, columns], slope = gradient(problem, x, some)
            norms[rows, columns] = slope.norm(dim=-1)
        return replace(self, values=values, gradient_norms=norms, problem=problem, tau=tau)

    def doubted(self, known: Bool[Tensor, " i"]) -> "Solutions":
        """The same, an operator's, with reasons not to trust it: an instance that it does not know,
        or values (where there are any) that did not fall."""
        doubts = torch.where(known, 0, 1).to(torch.int8)
        if self.values is not None:
            problem, tau = self._known()
            begun = torch.empty_like(self.values)
            with torch.no_grad():
                for rows, columns, some, x in pieces(tau, self.starts, VALUED_AT_ONCE):
                    begun[rows, columns] = values_of(problem, x, some)
            least = self.values.amin(1, keepdim=True)  # a start may be an optimum already
            slack = 1e-3 * (begun.mean(1, keepdim=True) - least) + 1e-6 * least.abs().clamp(min=1)
            fell = (self.values <= begun + slack).float().mean(1) >= LOWERED
            doubts = torch.where(fell | ~known, doubts, 2)
        return replace(self, doubts=doubts.to(torch.int8))

    @property
    def doubt(self) -> str | None:
        """Why an instance of these is not to be trusted, in words; None where nothing says so."""
        codes = [] if self.doubts is None else self.doubts[self.doubts > 0].tolist()
        return DOUBTS[codes[0]] if codes else None

    def __len__(self) -> int:
        """How many instances."""
        return len(self.points)

    def __iter__(self) -> "Iterator[Solutions]":
        """One instance after the other, each as solutions."""
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index: Any) -> "Solutions":
        """Some of the instances: one, a slice, or those of a tensor of booleans or of numbers."""
        keep = _instances(index, len(self), self.points.device)
        return self._map(lambda field: field[keep])

    def cpu(self) -> "Solutions":
        """The same on the CPU."""
        return self._map(lambda field: field.cpu())

    def _map(self, function: Callable[[Tensor], Tensor]) -> "Solutions":
        """The same function of every field, and of tau."""
        given = {name: getattr(self, name) for name in ("tau", *FIELDS)}
        there = {name: each for name, each in given.items() if each is not None}
        return replace(self, **batches.tree_map(function, there))

    def __repr__(self) -> str:
        i, n, d = self.points.shape
        known = self.values is not None and self.inside.any()
        best = f", best value {self.lowest().min():.4g}" if known else ""
        inside = f"{self.inside.float().mean():.1%} inside"
        doubts = 0 if self.doubts is None else int((self.doubts > 0).sum())
        doubtful = f", {doubts} doubtful" if doubts else ""
        several, by = "s" * (i != 1), f" by {self.method}" if self.method else ""
        size = f"{i} instance{several} x {n} points in {d}-D{by}"
        return f"Solutions({size}, {inside}{best}{doubtful})"

    def __rich__(self) -> Table:
        """A line for each of the first instances."""
        table = Table(box=None)
        for heading in ("instance", *HEADINGS):
            table.add_column(heading, justify="right")
        for k, line in enumerate(self._lines()):
            table.add_row(str(k), *line.values())
        return table

    def _repr_html_(self) -> str:
        """The same in a notebook."""
        more = f"<p>... and {len(self) - SHOWN} more</p>" if len(self) > SHOWN else ""
        return f"<p>{html.escape(repr(self))}</p>\n{html_table(self._lines())}{more}"

    def _lines(self) -> list[dict[str, str]]:
        """Cells by their headings, for each of the first instances."""
        lines, shown = [], self[:SHOWN]
        for k in range(len(shown)):
            inside = f"{shown.inside[k].float().mean():.1%}"
            numbers = ["", "", ""]
            if shown.values is not None and shown.gradient_norms is not None:
                medians = shown.values[k].median(), shown.gradient_norms[k].median()
                best = f"{shown.lowest()[k]:.4g}" if shown.inside[k].any() else "none inside"
                numbers = [best, *(f"{each:.4g}" for each in medians)]
            lines.append(dict(zip(HEADINGS, (f"{shown.points.shape[1]:,}", inside, *numbers))))
        return lines

    @property
    def best(self) -> "OptimizeResult":
        """The best of one instance's distinct optima as SciPy has results (of a relaxation, of what
        they stand for): `x`, `fun`, `success`, `status`, `message`."""
        if len(self) != 1:
            raise InputError(
                f"best is of one instance, not of {len(self)}: use solutions[0].best, or "
                "[each.best for each in solutions]."
            )
        return self.rounded().unique().best

    def to_frame(self) -> "DataFrame":
        """A DataFrame of pandas: a row for each start of each instance, with the coordinates of its
        solution as x1, x2, ... and what else is known of it."""
        i, n, _ = self.points.shape
        columns: dict[str, Any] = {
            "instance": torch.arange(i).repeat_interleave(n),
            "start": torch.arange(n).repeat(i),
            **coordinates(self.points.flatten(0, 1)),
            **coordinates(self.starts.flatten(0, 1), "start_x"),
        }
        for name, column in COLUMNS.items():
            if (each := getattr(self, name)) is not None:
                columns[column] = each.flatten()
        if self.certificates is not None:
            columns["certificate"] = [CERTIFICATES[k] for k in self.certificates.flatten().tolist()]
        return frame_of(columns)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """The points (i, n, d), for NumPy."""
        return as_array(self.points, dtype, copy)

    def lowest(self) -> Float[Tensor, " i"]:
        """The lowest value inside the space, of every instance."""
        assert self.values is not None
        values = self.values.masked_fill(~self.inside, torch.inf)
        return values.nan_to_num(torch.inf, torch.inf).amin(1)

    def save(self, path: str | Path) -> Path:
        """Write a file that `Solutions.load` and others can read; its ending is the format: .npz,
        .safetensors or .json. The problem's code is not part of it, a vector tau is."""
        arrays = {name: getattr(self, name) for name in FIELDS}
        arrays["tau"] = self.tau if isinstance(self.tau, Tensor) else None
        given = {k: v.cpu().numpy() for k, v in arrays.items() if v is not None}
        return write_arrays(path, given, {"space": self.space.describe()})

    @staticmethod
    def load(path: str | Path, space: Any = None) -> "Solutions":
        """Read solutions that `save` or `proxlearn solve --taus` wrote; `space` is one's own, or
        its class, where they live on such. `valued(problem, tau)` then gives them their problem
        back, where a plot or its symmetries are wanted."""
        arrays, about = read_arrays(path)
        kinds = FIELDS | {"tau": torch.float32}
        try:
            fields: dict[str, Any] = {
                name: torch.as_tensor(arrays[name]).to(kind)
                for name, kind in kinds.items()
                if name in arrays  # files of other versions may hold others
            }
            if fields["starts"].ndim == 2:  # the same ones for every instance
                fields["starts"] = fields["starts"].expand_as(fields["points"])
            made = space_from(about["space"], space)
            _check_shapes(fields, made)
            return Solutions(made, **fields)
        except (LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise FileError(
                f"{brief(path)} holds no solutions of proxlearn: {brief(error)}."
            ) from None

    def polished(self) -> "Solutions":
        """The same with every point moved downhill to the optimum beside it (`px.polish`), and told
        what it then is (`px.certify`). Needs the objective."""
        problem, tau = self._known()
        points = polish(problem, tau, self.points)
        moved = Solutions.of(self.space, points, self.starts, self.applications)
        known = {name: getattr(self, name) for name in ("doubts", "method")}
        codes = certify(problem, tau, points)
        found = replace(moved.with_values(problem, tau), certificates=codes, **known)
        return warn_where_some_have_no_value(found)

    def rounded(self) -> "Solutions":
        """What the solutions of a relaxation stand for, such as cuts of a graph, with their values;
        the same solutions where the problem is no relaxation."""
        if self.tau is None:
            return self
        relaxed, tau = self._known()
        meant = relaxed.rounded(self.points, tau)
        if meant is None:
            return self
        problem, points = meant
        same = problem.space == self.space  # then what was known of the points still holds
        if problem is relaxed and torch.equal(points, self.points):
            return self
        starts = self.starts if same else points
        found = Solutions.of(problem.space, points, starts).with_values(problem, tau)
        known = (
            "doubts",
            "method",
            "applications",
            *(("certificates", "arrived", "quality") if same else ()),
        )
        return replace(found, **{name: getattr(self, name) for name in known})

    def _known(self) -> tuple[Problem, Batch]:
        if self.problem is not None and self.tau is None:
            raise InputError(
                f"These solutions have no values: the objective of {self.problem.name!r} needs "
                f"more than {self.problem.instances.words}, which is all that was given. Solve "
                "whole instances, as problem.sample draws them, to polish and certify them."
            )
        if self.problem is None or self.tau is None:
            raise InputError(
                "These solutions do not know their problem: first attach the problem, as in "
                "solutions.valued(problem, tau).polished()."
            )
        return self.problem, self.tau

    def plot(self, path: str | Path | None = None, optima: Optima | None = None) -> "Path | Figure":
        """Draw every instance, into a file (png, svg or pdf) or as a figure of matplotlib.
        `optima`: the distinct ones of a single instance, in place of `rounded().unique()`."""
        from proxlearn.figures import draw as plots

        if optima is not None and not isinstance(optima, Optima):
            raise InputError(f"optima= are those of solutions.unique(), not {said(optima)}.")
        problem = self.problem or self._known()[0]  # an error where it has none
        figure = plots.figure(problem, self.tau, self, optima=optima)
        return figure if path is None else plots.save(figure, path)

    def unique(
        self,
        tolerance: float | None = None,
        value_tolerance: float | None = None,
        smallest_share: float | None = None,
        verify: bool = True,
    ) -> Optima:
        """The distinct optima of one instance, among the solutions inside the space.

        Solutions along one curve or surface are one optimum, too, a "continuum". Polished solutions
        count if they are certified as optima. Of others, where the objective is at hand, some of
        every place are polished to see to which optimum they lead. Starts that ended at no optimum
        are counted as `unconverged`.

        Args:
            tolerance: solutions nearer than this are one optimum, in the space's distance up to the
                problem's symmetries (default: 0.5% of the diameter)
            value_tolerance: solutions whose values differ by more are kept apart (default: none is)
            smallest_share: what fewer of the starts reached is left out (default: nothing, and 0.1%
                where nothing can be verified)
            verify: whether to use the objective to see what is an optimum
        """
        if len(self) != 1:
            raise InputError(f"unique() is of one instance, not of {len(self)}: use solutions[0].")
        if value_tolerance is not None and self.values is None:
            raise InputError("value_tolerance= needs values, and these solutions have none.")
        limits = {"tolerance": tolerance, "value_tolerance": value_tolerance}
        limits |= {"smallest_share": smallest_share}
        for name, given in limits.items():
            limits[name] = None if given is None else at_least_zero(f"{name}=", given)
        near = limits.pop("tolerance")
        widest = self.space.diameter  # what is as near as that is one optimum already
        near = TOLERANCE * widest if near is None else min(near, 2 * widest)
        return distinct_optima(self.cpu(), near, **limits, verify=flag("verify", verify))


def _check_shapes(fields: dict[str, Tensor], space: Space) -> None:
    """A ValueError where the fields of a file are not those of the same points of a space."""
    i, n, d = fields["points"].shape
    shapes = dict.fromkeys(PER_POINT, (i, n)) | dict.fromkeys(("points", "starts"), (i, n, d))
    for name, field in fields.items():
        shape = tuple(field.shape)
        fits = shape == shapes[name] if name in shapes else shape[:1] == (i,)
        if not fits or (name == "doubts" and field.ndim > 1):
            raise ValueError(f"{name} has shape {shape}, and there are {i} x {n} points in {d}-D")
    if d != space.dim:
        raise ValueError(f"there are points in {d}-D, and the space has dimension {space.dim}")
    if (fields["inside"] & ~fields["points"].isfinite().all(-1)).any():
        raise ValueError("there are points inside the space that are NaN or infinite")
    for name, words in (("doubts", DOUBTS), ("certificates", CERTIFICATES)):
        if name in fields and not ((fields[name] >= 0) & (fields[name] < len(words))).all():
            raise ValueError(f"there are {name} that nobody knows")


def _instances(index: Any, count: int, device: torch.device) -> slice | Tensor:
    """An index of instances that keeps the dimension, checked."""
    if isinstance(index, slice):
        return index
    try:
        given = index.cpu().numpy() if isinstance(index, Tensor) else index
        numbers = np.arange(count)[given if np.size(given) else []]
        if numbers.ndim == 0:
            return slice(int(numbers), int(numbers) + 1)
        if numbers.ndim == 1:
            return torch.from_numpy(numbers).to(device)
    except (IndexError, ValueError, OverflowError):
        pass
    raise IndexError(
        f"There are {count} instances; an index {said(index)} must be a whole number from {-count} "
        f"to {count - 1}, a slice, or a list or tensor of such numbers or of {count} booleans."
    )
