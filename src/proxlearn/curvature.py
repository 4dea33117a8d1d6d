"""Estimates from the objective: how strongly it curves, and so which lam and step size suit it."""

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn import batch as batches
from proxlearn.errors import ObjectiveError
from proxlearn.problem import Problem, generator_for

SAMPLES = 4096
STEP = 1e-3  # length of the finite difference, a share of the diameter


def estimate_lam(problem: Problem, device: torch.device | str = "cpu", seed: int = 0) -> float:
    """A proximal weight: half the weak convexity constant, as far as sampling sees it.

    Above the most negative curvature the proximal step is unique (thm 3.1); half of it still
    keeps almost every basin apart and takes longer steps. An objective without negative curvature
    gets a step as long as the space.
    """
    curvature, slope = _curvatures(problem, device, seed)
    negative = -curvature.quantile(0.01).item()
    shortest = 10 * slope.median().item() / problem.space.diameter
    return max(0.5 * negative, 0.1 * shortest, 1e-6)


def estimate_rate(problem: Problem, device: torch.device | str = "cpu", seed: int = 0) -> float:
    """A step size for gradient descent: one over the curvature that few points exceed."""
    curvature, _ = _curvatures(problem, device, seed)
    return 1 / max(curvature.quantile(0.95).item(), 1e-6)


def _curvatures(
    problem: Problem, device: torch.device | str, seed: int
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Curvature along random directions, and gradient norms, at random points of random taus.

    Gradients are differenced rather than differentiated, so that kinks count too.
    """
    generator = generator_for(seed, "curvature", device)
    instances = 64
    tau = batches.move(problem.sample(instances, "train", generator), device)
    space = problem.space
    x = space.sample(instances, SAMPLES // instances, generator=generator, device=device)
    direction = torch.nn.functional.normalize(
        torch.randn(x.shape, generator=generator, device=device), dim=-1
    )
    h = STEP * space.diameter
    gpus = [device] if torch.device(device).type == "cuda" else []

    def gradient(at: Tensor) -> Tensor:
        at = at.detach().requires_grad_()
        with torch.random.fork_rng(gpus):
            torch.manual_seed(seed)  # a stochastic objective has to be the same on both sides
            return torch.autograd.grad(problem.objective(at, tau).sum(), at)[0]

    ahead, behind = gradient(x + h * direction), gradient(x - h * direction)
    if not (ahead.isfinite().all() and behind.isfinite().all()):
        raise ObjectiveError(
            f"The gradient of the objective of {problem.name!r} is NaN or infinite within {STEP:g} "
            f"of {space}: it must be finite there too, since solutions may leave the space a "
            "little; clamp what must not be negative, or shrink the space."
        )
    curvature = ((ahead - behind) * direction).sum(-1) / (2 * h)
    return curvature.flatten(), ahead.norm(dim=-1).flatten()
