"""How strongly an objective curves, estimated at sampled points."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn.functional import normalize

from proxlearn.calculus.derivatives import Expansion, eigh, gradient, in_double, within_bounds
from proxlearn.common import batch as batches
from proxlearn.common.batch import Batch, Device, Points, Values
from proxlearn.common.seeds import generator_for
from proxlearn.errors import ObjectiveError
from proxlearn.problems.base import Problem, sampled

INSTANCES, POINTS = 64, 64  # taus, and points of each
FEW = (16, 16)  # the same, where each is costly
STEP = 1e-3  # length of the finite difference, a share of the diameter
PRODUCTS = 16  # of Hessian and vector for one point: exact up to so many dimensions
WORST, AROUND = 32, 32  # points that the search for the worst goes on from, and trials around each
RADII = [0.2 * 0.75**k for k in range(20)]  # of the search, shares of the diameter
KINK = 2.0  # so many times the curvature of any Hessian between two points: the gradient jumps


@dataclass(frozen=True)
class Curvature:
    """How an objective curves over sampled points and taus. What is sampled is a lower bound."""

    weak_convexity: float  # xi: `f + xi/2 |x|^2` is convex
    lipschitz: float  # of the gradient, zeta
    slope: float  # the median length of the gradient
    kinked: bool  # does the gradient jump, so that the gradient has no Lipschitz constant?
    ridged: bool  # downwards even, so that no xi is enough?


def survey(problem: Problem, device: Device = "cpu", seed: int = 0) -> Curvature:
    """The extreme curvatures over the space and the taus: of Hessians at sampled points, searched
    on from the worst of them, and of gradients' differences, which see kinks too."""
    differences, slopes = sampled_curvatures(problem, device, seed)
    generator = generator_for(seed, "survey", device)
    tau = sampled(problem, INSTANCES, "train", generator)
    x = problem.space.sample(INSTANCES, POINTS, generator=generator, device=device)
    x, tau = in_double(problem, x, tau)
    least = -_search(problem, x, tau, lambda *at: -extreme_curvatures(*at)[0], generator)
    most = _search(problem, x, tau, lambda *at: extreme_curvatures(*at)[1], generator)
    xi, lipschitz = max(0.0, -least), max(abs(least), abs(most))
    slope = slopes.median().item()
    noise = 1e-5 * slope / (STEP * problem.space.diameter)  # differences of single precision
    down, any_way = -differences.min().item(), differences.abs().max().item()
    kinked, ridged = any_way > KINK * lipschitz + noise, down > KINK * xi + noise
    xi, lipschitz = max(xi, down - noise), max(lipschitz, any_way - noise)
    return Curvature(xi, lipschitz, slope, kinked, ridged)


def extreme_curvatures(problem: Problem, x: Points, tau: Batch) -> tuple[Values, Values]:
    """The smallest and the largest eigenvalue of the Hessian at every point, in the tangent space,
    by Lanczos' method: products of the Hessian with vectors, for all points at once."""
    basis = problem.space.tangent(x)
    around = Expansion(problem, x, tau, basis)
    if not (around.value.isfinite().all() and around.slope.isfinite().all()):
        raise ObjectiveError(
            f"The objective of {problem.name!r} or its gradient is NaN or infinite at points "
            f"sampled from {problem.space}: it must be finite on the whole space."
        )
    start = torch.randn(basis.shape[-1], generator=generator_for(0, "lanczos"))
    start = start.to(x).expand_as(around.slope)
    values, _ = eigh(_tridiagonal(around.times, start, min(PRODUCTS, basis.shape[-1])))
    return values[..., 0], values[..., -1]


def _tridiagonal(
    times: Callable[[Tensor], Tensor], start: Float[Tensor, "i n k"], steps: int
) -> Float[Tensor, "i n m m"]:
    """The Hessian in the basis of start, H start, H^2 start, ... made orthonormal. Where that ends
    early, the diagonal repeats its first entry, which lies between the extreme eigenvalues."""
    vectors = [normalize(start, dim=-1)]
    matrix = start.new_zeros(*start.shape[:-1], steps, steps)
    small = torch.finfo(start.dtype).eps ** 0.5
    for k in range(steps):
        product = times(vectors[k])
        length = product.norm(dim=-1, keepdim=True)
        inner = (vectors[k] * product).sum(-1)
        ended = vectors[k].norm(dim=-1) < 0.5
        matrix[..., k, k] = torch.where(ended, matrix[..., 0, 0], inner)
        for _ in range(2):  # twice is enough against rounding
            for vector in vectors:
                product = product - (vector * product).sum(-1, keepdim=True) * vector
        rest = product.norm(dim=-1, keepdim=True)
        goes_on = rest > small * length
        vectors.append(torch.where(goes_on, product / rest, 0.0))
        if k + 1 < steps:
            link = torch.where(goes_on, rest, 0.0)[..., 0]
            matrix[..., k, k + 1] = matrix[..., k + 1, k] = link
    return matrix


def _search(
    problem: Problem, x: Tensor, tau: Batch, score: Callable[..., Tensor], generator: Generator
) -> float:
    """The largest `score(problem, x, tau)`, (i n): among the points, then nearer and nearer around
    the best of them, with taus that change along where they are vectors."""
    scores = score(problem, x, tau).flatten()
    best, index = scores.topk(min(WORST, len(scores)))
    tau, x = batches.select(tau, index // x.shape[1]), x.flatten(0, 1)[index, None]
    space, range_ = problem.space, problem.parameters
    for k, radius in enumerate(RADII):
        noise = x.new_empty(len(x), AROUND, x.shape[-1]).normal_(generator=generator)
        near = space.project(x + radius * space.diameter * noise)
        other = tau
        if range_ is not None and k % 2:
            noise = torch.empty_like(tau).normal_(generator=generator)
            other = range_.project(tau + radius * range_.diameter * noise)
        found, which = score(problem, near, other).max(1, keepdim=True)
        better = found[:, 0] > best
        best = torch.where(better, found[:, 0], best)
        x = torch.where(better[:, None, None], near.take_along_dim(which[..., None], 1), x)
        tau = other if other is tau else torch.where(better[:, None], other, tau)
    return best.max().item()


def sampled_curvatures(problem: Problem, device: Device, seed: int) -> tuple[Tensor, Tensor]:
    """Curvature (n) along random directions, and gradient norms (n), at random points of random
    taus. Gradients are differenced rather than differentiated, so that kinks count too."""
    generator, space = generator_for(seed, "curvature", device), problem.space
    instances, points = FEW if problem.costly else (INSTANCES, POINTS)
    tau = sampled(problem, instances, "train", generator)
    x = space.sample(instances, points, generator=generator, device=device)
    noise, basis = torch.randn(x.shape, generator=generator, device=device), space.tangent(x)
    direction = normalize((basis @ (basis.mT @ noise[..., None]))[..., 0], dim=-1)
    h = STEP * space.diameter
    beside = within_bounds(space, x, h)  # so that nothing outside is looked at
    (_, ahead), (_, behind) = (gradient(problem, beside + s * h * direction, tau) for s in (1, -1))
    if not (ahead.isfinite().all() and behind.isfinite().all()):
        raise ObjectiveError(
            f"The gradient of the objective of {problem.name!r} is NaN or infinite at points in or "
            f"just beside {space}: it must be finite there; clamp what must not be negative, or "
            "shrink the space."
        )
    curvature = ((ahead - behind) * direction).sum(-1) / (2 * h)
    return curvature.flatten(), ahead.norm(dim=-1).flatten()
