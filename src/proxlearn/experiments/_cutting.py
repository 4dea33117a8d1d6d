"""What several methods cut of the same graphs in the same time."""

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.provenance import Row
from proxlearn.common.seeds import generator_for
from proxlearn.gpu.capture import WARM_UP
from proxlearn.gpu.devices import pick_device
from proxlearn.operators.operator import Operator
from proxlearn.problems.maxcut.cuts import Sides, Weights, cut_values, one_exchange
from proxlearn.problems.maxcut.maxcut import Maxcut
from proxlearn.solvers.solve import solve
from proxlearn.spaces import Signs


def race(
    operator: Operator, weights: Weights, starts: int, applications: int, device: str = "auto"
) -> list[Row]:
    """The best cut of every graph, its mean over the graphs, by each method. The operator sets the
    time; the others begin anew as long as one more run fits."""
    weights = weights.to(pick_device(device))
    problem = Maxcut(weights.shape[-1])

    def relaxed(method: str, seed: int, **settings: Any) -> Sides:
        found = solve(problem, weights, method, starts, seed, device, **settings)
        return found.rounded().points

    def learned(seed: int) -> Sides:
        return relaxed("operator", seed, operator=operator, steps=applications)

    for _ in range(WARM_UP if weights.is_cuda else 0):
        learned(0)  # from then on it is replayed
    raced = {"operator": _best(weights, learned)}
    others: dict[str, Callable[[int], Sides]] = {
        "operator, then one-exchange": lambda seed: one_exchange(learned(seed), weights),
        "descent": lambda seed: relaxed("descent", seed, steps=300, rate=0.05),
        "one-exchange": lambda seed: one_exchange(any_sides(weights, starts, seed), weights),
    }
    if find_spec("networkx") and weights.shape[-1] <= 50:  # plain Python takes minutes beyond
        others["one-exchange of networkx"] = _networkx(weights)
    limit, _ = raced["operator"]
    raced |= {name: _best(weights, once, limit) for name, once in others.items()}
    top = torch.stack([best for _, best in raced.values()]).amax(0)
    about = {"vertices": weights.shape[-1], "instances": len(weights)}
    about |= {"starts": starts, "applications": applications}
    return [
        {"label": name, **about, "cut": best.mean().item(), "of_best": (best / top).mean().item()}
        | {"wins": int((best >= top - 1e-5 * top.abs()).sum()), "seconds": seconds}
        for name, (seconds, best) in raced.items()
    ]


def any_sides(weights: Weights, count: int, seed: int) -> Sides:
    """So many random cuts of each graph."""
    signs, generator = Signs(weights.shape[-1]), generator_for(seed, "sides")
    return signs.sample(len(weights), count, generator=generator).to(weights)


def _best(
    weights: Weights, once: Callable[[int], Sides], seconds: float = 0.0
) -> tuple[float, Float[Tensor, " i"]]:
    """When the last of as many runs as fit (at least one) ended, and each graph's best cut."""
    once(0)  # what is done once is not timed
    best = weights.new_full((len(weights),), -torch.inf)
    started, took, runs = time.perf_counter(), 0.0, 0
    while not runs or took * (runs + 1) / runs <= seconds:
        best = torch.maximum(best, cut_values(once(runs), weights).amax(1))
        best.sum().item()  # waits for the device
        runs += 1
        took = time.perf_counter() - started
    return took, best


def _networkx(weights: Weights) -> Callable[[int], Sides]:
    """One run of its local search on every graph; they are made here, once."""
    import networkx as nx

    graphs = [nx.from_numpy_array(each) for each in weights.cpu().numpy()]

    def once(seed: int) -> Sides:
        sides = torch.ones(len(weights), 1, weights.shape[-1])
        for k, graph in enumerate(graphs):
            _, (left, _) = nx.approximation.one_exchange(graph, seed=seed, weight="weight")
            sides[k, 0, list(left)] = -1
        return sides.to(weights)

    return once
