"""A problem: a family `{f_tau}` of objectives over one space. It is a value that knows its space,
its instances, its objective and what network suits it, and nothing of solvers, plots or devices.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from proxlearn.common.batch import (
    Batch,
    Device,
    Flags,
    Points,
    Values,
    leaves,
    move,
    stack,
    structure,
)
from proxlearn.common.checks import said
from proxlearn.common.differences import Range, by_differences
from proxlearn.common.memory import afford
from proxlearn.common.seeds import generator_for
from proxlearn.errors import InputError, ObjectiveError
from proxlearn.instances import Instances, Vectors
from proxlearn.networks.base import Architecture
from proxlearn.networks.encoders import Encoder, encoders
from proxlearn.spaces import Box, Space

Split = Literal["train", "test"]
MANY = 1000  # instances, of which it is asked whether there is memory for them
WIDE = 1000  # points that show how wide a space is in each coordinate


class Problem:
    """A family of objectives. To make one, write a subclass with `space`, `objective`, and either
    `parameters` (tau is a vector) or `instances` and `sample` (tau is anything else), and `observe`
    if the objective knows more of a tau than an operator gets to see. Or use `from_function`.

    A batch of instances is what `collate` makes: a tensor (i, p) for vectors, a dict of tensors for
    structured ones, instances first.
    """

    name: str = "unnamed"
    space: Space
    parameters: Box | None = None  # where a vector tau lives; None: a single objective
    lam: float | None = None  # a proximal weight known to suit; None: estimated from the objective
    architecture: "str | Architecture | None" = None  # that suits; None: the default one
    near: float = 0.0  # the share of a training's fresh points that begin near known solutions
    discrete: bool = False  # whether points are apart, such as cuts, so that none leads to another
    costly: bool = False  # whether even a few values take long on a CPU
    by_differences: bool = False  # whether NumPy computes it, and gradients are differences
    sampled_on: Literal["device", "cpu"] = "device"  # cpu: `sample` reads files, ahead of the steps

    if TYPE_CHECKING:
        instances: Instances  # what a tau is, as an operator sees it
    else:

        @cached_property
        def instances(self):
            return Vectors.over(self.parameters)

    def __repr__(self) -> str:
        of_tau = f", parameters={self.parameters}" if self.parameters is not None else ""
        return f"Problem({self.name!r}, space={getattr(self, 'space', None)}{of_tau})"

    def objective(self, x: Points, tau: Batch) -> Values:
        """`f_tau(x)` for n points of each of i instances, differentiable in x."""
        raise ObjectiveError(f"Problem {self.name!r} has no objective: define objective(x, tau).")

    def sample(self, count: int, split: Split, generator: Generator) -> Batch:
        """`count` random instances of `split` ("train" or "test"), drawn with nothing but
        `generator`, on its device; or what stands for them until `look_up`. By default vectors,
        uniformly from `parameters`."""
        if self.parameters is None:
            return torch.zeros(count, 0, device=generator.device)
        return self.parameters.sample(count, generator=generator, device=generator.device)

    def look_up(self, drawn: Batch) -> Batch:
        """The instances that `sample` drew. Where they are large, it may draw indices into a store
        on the device, and how to change each picture, say, that wait to be looked up."""
        return drawn

    def refresh(self, tau: Batch, generator: Generator) -> Batch:
        """The same instances with all that is random in them drawn anew, such as the points of a
        surface that stand for it: once in every step of training. The objective draws nothing."""
        return tau

    def collate(self, instances: Sequence[Batch]) -> Batch:
        """Single instances as one batch."""
        return stack(instances)

    def batch(self, tau: Any) -> Batch:
        """One tau or many, as a user gives them, checked and as a batch: vectors as (p,) or
        (instances, p); structured ones as a list of instances or a batch that `collate` made."""
        if self.observes_part:
            return self.collate(tau) if isinstance(tau, list) else tau
        batch = self.instances.batch(tau)
        self.check(batch)
        self.instances.warn_of_unknown(batch)
        return batch

    def check(self, tau: Batch) -> None:
        """An error where a tau that is well made has no objective."""

    def observe(self, tau: Batch) -> Batch:
        """What an operator gets to see of tau: of an image with its true boxes, the image."""
        return tau

    @property
    def observes_part(self) -> bool:
        """Whether the objective knows more of tau than an operator sees."""
        return type(self).observe is not Problem.observe

    @property
    def noisy(self) -> bool:
        """Whether the slope at a point varies with what an operator cannot see: only its mean, not
        its direction at one draw, then says where to go."""
        return self.observes_part or type(self).refresh is not Problem.refresh

    def is_whole(self, tau: Any) -> bool:
        """Whether tau is made like the instances that `sample` draws, so that the objective can be
        computed; else it is only what an operator sees of one, such as the image alone."""
        if not self.observes_part:
            return True
        one = tau[0] if isinstance(tau, list) and tau else tau
        return structure(one) == structure(sampled(self, 1, "train", Generator()))

    @property
    def family(self) -> bool:
        """Whether there is a tau at all; a single objective has none."""
        return self.parameters is not None or type(self).sample is not Problem.sample

    def encoder(self) -> Encoder:
        """A fresh module that makes a code of what is observed of tau, for networks that take one;
        by default the one that suits `instances`."""
        if self.instances.encoder is None:
            raise InputError(
                f"Problem {self.name!r} has no encoder for {self.instances.words}: define "
                "encoder(), or an architecture that needs none."
            )
        kind: Any = encoders[self.instances.encoder]
        return kind(self.instances)

    def sized(self, tau: Batch) -> "Problem":
        """The problem over the space of these instances; itself unless that depends on them."""
        return self

    @property
    def drawn_from(self) -> str:
        """What the instances of a training are, in words, for the operator's card."""
        if not self.family:
            return "a single objective"
        if self.parameters is None:
            return f"{self.instances.words}, as {type(self).__name__}.sample draws them"
        low, high = ({*each} for each in (self.parameters.low, self.parameters.high))
        alike = f"[{min(low):g}, {max(high):g}]^{self.parameters.dim}"
        where = alike if len(low) == len(high) == 1 else f"a box in R^{self.parameters.dim}"
        return f"taus drawn uniformly from {where}"

    def truth(self, tau: Batch) -> list[Float[Tensor, "k d"]] | None:
        """Every minimizer of each instance, where it is known; else None."""
        return None

    def quality(self, x: Points, tau: Batch) -> Values | None:
        """How good each point is as an answer, from 0 to 1, where that can be told: of a box, its
        overlap (IoU) with the best true one."""
        return None

    def known(self, tau: Batch) -> tuple[Points, Flags] | None:
        """Solutions that are known in training (i, k, d), and which of them are real (i, k)."""
        return None

    def around(self, known: Points, noise: Points, far: Values) -> Points:
        """Points near known solutions, where a training lets some begin: `noise` is standard
        normal, `far` uniform in [0, 1]. By default 0.003 to 0.3 of the space's diameter away."""
        scale = 0.003 * 100**far * self.space.diameter / self.space.dim**0.5
        return self.space.project(known + scale[..., None] * noise)

    def canonical(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        """The one point that stands for all its equivalents under a continuous symmetry: of
        shapes that may be turned, the shape turned so that its first vertex is at angle 0."""
        return x

    def images(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "g *n d"]:
        """All equivalents of every point, itself among them, under a finite symmetry: of a vector
        whose sign says nothing, `torch.stack((x, -x))`."""
        return x[None]

    def pinned(self, x: Points, tau: Batch) -> Bool[Tensor, "i n d"] | None:
        """Coordinates that a slope too steep to leave holds where they are, as that of `|x|^p` does
        at 0: a certificate is of the others. None where no coordinate ever is."""
        return None

    def polished(self, x: Points, tau: Batch) -> Points | None:
        """The optima that points lead to, where the problem knows a better way to them than Newton
        steps, as it has to where its minima are kinks; None where it knows none."""
        return None

    def rounded(self, x: Points, tau: Batch) -> "tuple[Problem, Float[Tensor, 'i n e']] | None":
        """What points stand for where this problem relaxes or smooths another one: that problem,
        and its points; None where x is the answer itself."""
        return None

    def written(self, point: list[float], value: float | None) -> dict[str, str]:
        """How a table shows a point and its value where coordinates say little: cells by heading.
        Empty: by its coordinates."""
        return {}

    @staticmethod
    def from_function(
        function: Callable, space: Space, parameters: Box | None = None, name: str = "unnamed"
    ) -> "Problem":
        """A problem from one function.

        `function(x, tau)`: x is (instances, points, d), tau is (instances, 1, p), the result is
        (instances, points). Without `parameters` it is a single objective, `function(x)`.
        """
        if not callable(function):
            raise InputError(f"The objective must be a function, not {said(function)}.")
        if not isinstance(space, Space):
            raise InputError(
                f"space= must be a space such as px.Box(-5, 5, dim=2), not {said(space)}."
            )
        if parameters is not None and not isinstance(parameters, Box):
            raise InputError(f"parameters= must be a px.Box, not {said(parameters)}.")
        if not isinstance(name, str):
            raise InputError(f"name= must be a word or two, not {said(name)}.")
        return _FunctionProblem(function, space, parameters, name)

    @staticmethod
    def from_numpy(
        function: Callable,
        space: Space,
        parameters: Box | None = None,
        name: str = "unnamed",
        vectorized: bool = False,
    ) -> "Problem":
        """A problem from a function written with NumPy, for the classical methods: its gradients
        are finite differences, on the CPU. To train an operator, write it with torch.

        `function(x, tau)`: x is one point (d,), tau (p,), the result a number, as SciPy has it;
        `vectorized`: x is (points, d), the result (points,). Without `parameters` it is a single
        objective, `function(x)`.
        """
        Problem.from_function(function, space, parameters, name)  # for its checks
        return _NumpyProblem(function, space, parameters, name, vectorized=vectorized)


class _FunctionProblem(Problem):
    def __init__(self, function: Callable, space: Space, parameters: Box | None, name: str):
        self.function, self.space, self.parameters, self.name = function, space, parameters, name

    def objective(self, x, tau):
        return self.function(x) if self.parameters is None else self.function(x, tau[:, None])


class _NumpyProblem(_FunctionProblem):
    by_differences = True

    def __init__(self, *of_function: Any, vectorized: bool):
        super().__init__(*of_function)
        self.vectorized = vectorized

    @cached_property
    def _range(self) -> Range:
        some = self.space.sample(WIDE, generator=Generator().manual_seed(0))
        width = some.amax(0) - some.amin(0)
        return Range(*self.space.bounds, tuple(width.tolist()))

    def objective(self, x, tau):
        taus = [() if self.parameters is None else (t.double().numpy(),) for t in tau]

        def values(points: np.ndarray) -> np.ndarray:
            return np.stack([self._of_one(some, *given) for some, given in zip(points, taus)])

        return by_differences(values, x, self._range)

    def _of_one(self, x: np.ndarray, *tau: np.ndarray) -> np.ndarray:
        """The values (n,) at points (n, d) of one instance, seen to be as many."""
        found = [self.function(x, *tau)] if self.vectorized else [self.function(p, *tau) for p in x]
        try:
            return np.asarray(found, dtype=np.float64).reshape(len(x))
        except (TypeError, ValueError):
            expected = f"({len(x)},)" if self.vectorized else "a number"
            of = f"points {x.shape}" if self.vectorized else f"one point {x.shape[1:]}"
            raise ObjectiveError(
                f"The objective of {self.name!r} returned {np.shape(found[0])} for {of}; it must "
                f"return {expected}."
            ) from None


def drawn(problem: Problem, count: int, split: Split, generator: Generator) -> Batch:
    """What `sample` draws, on the generator's device. What comes from files is drawn on the CPU."""
    device = generator.device
    if problem.sampled_on == "cpu" and device.type != "cpu":
        seed = torch.randint(2**62, (), generator=generator, device=device).item()
        generator = Generator().manual_seed(int(seed))
    return move(problem.sample(count, split, generator), device)


def sampled(problem: Problem, count: int, split: Split, generator: Generator) -> Batch:
    """Instances of a problem, on the generator's device."""
    return problem.look_up(drawn(problem, count, split, generator))


def held_out(problem: Problem, count: int, seed: int = 0, device: Device = "cpu") -> Batch:
    """The test instances of a seed: drawn apart from the training ones, the same on any device."""
    if count > MANY:
        one = drawn(problem, 1, "test", Generator().manual_seed(seed))
        needed = count * sum(each.nbytes for each in leaves(one))
        afford(needed, f"{count:,} instances (taus) of {problem.name!r}", "give fewer")
    return move(sampled(problem, count, "test", generator_for(seed, "test")), device)


def check_problem(given: Any) -> None:
    """An error that says what to give where something else than a problem is given."""
    if isinstance(given, Problem):
        if not isinstance(getattr(given, "space", None), Space):
            raise InputError(f"{type(given).__name__} needs a space: space = px.Box(-5, 5, dim=2).")
        return
    if isinstance(given, str):
        what = f"the name {said(given)}: give px.problem({said(given)})"
    elif isinstance(given, type) and issubclass(given, Problem):
        what = f"the class {given.__name__}: give a problem made of it, {given.__name__}()"
    elif callable(given) and not isinstance(given, torch.nn.Module):
        what = "a function: give px.Problem.from_function(f, space=px.Box(-5, 5, dim=2))"
    else:
        what = f"{type(given).__name__}: give px.problem(name) or one of your own, a px.Problem"
    raise InputError(f"A problem is expected here, not {what}.")
