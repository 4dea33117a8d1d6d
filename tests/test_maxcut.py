"""Max-cut: the relaxation, its rounding and counting against enumeration, the equivariant network,
graphs of any size, and graphs that are none."""

import itertools
import math
import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from making import untrained
from torch import Tensor

import proxlearn as px
from proxlearn.answers.solutions import Solutions
from proxlearn.common.seeds import generator_for
from proxlearn.instances._graph_files import read_graph
from proxlearn.instances.graph import at_unit_scale, unit_scale
from proxlearn.measure.evaluate import evaluate
from proxlearn.networks.coupling import Coupling
from proxlearn.networks.cut_circles import CutCircles, CutCirclesNetwork
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import held_out
from proxlearn.problems.maxcut.cuts import (
    Cuts,
    all_cuts,
    best_half_circles,
    cut_values,
    enumerated,
    one_exchange,
)
from proxlearn.problems.maxcut.maxcut import Maxcut
from proxlearn.spaces import Signs
from proxlearn.training.settings import Training, pick_precision

SMALL = CutCircles(blocks=2, width=8)
DATA = Path(os.environ.get("PROXLEARN_MAXCUT", "../shared/data/maxcut"))


def random_graphs(count: int, vertices: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    half = torch.randn(count, vertices, vertices, generator=generator).triu(1)
    half = half * (torch.rand(half.shape, generator=generator) < 0.7)
    return half + half.mT


def circles(*shape: int, vertices: int = 8, seed: int = 0) -> Tensor:
    return px.Circles(vertices).sample(*shape, generator=torch.Generator().manual_seed(seed))


def angles(x: Tensor) -> Tensor:
    return torch.atan2(*x.unflatten(-1, (-1, 2)).flip(-1).unbind(-1))


def on_circles(angle: Tensor) -> Tensor:
    return torch.stack((angle.cos(), angle.sin()), -1).flatten(-2)


def network(seed: int = 0, lam: bool = False) -> CutCirclesNetwork:
    """With random weights everywhere, so that it does not stand still."""
    torch.manual_seed(seed)
    net = CutCirclesNetwork(False, SMALL, (0.1, 10.0) if lam else None)
    for weight in net.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return net


def applied(net: CutCirclesNetwork, x: Tensor, weights: Tensor) -> Tensor:
    return net(x, net.prepare(net.encode(weights), torch.ones(len(weights))))


# The relaxation and its instances.


def test_objective_is_half_the_sum_of_cosines():
    weights, x = random_graphs(3, 5), circles(3, 4, vertices=5)
    theta = angles(x)
    expected = torch.zeros(3, 4)
    for a, b in itertools.combinations(range(5), 2):
        expected += 0.5 * weights[:, None, a, b] * (theta[..., a] - theta[..., b]).cos()
    torch.testing.assert_close(Maxcut(5).objective(x, weights), expected)


def test_at_a_cut_the_relaxation_is_the_weight_left_over():
    """`w cos` is -w where an edge is cut and w where not: f = total/2 - cut."""
    weights, sides = random_graphs(2, 7), Signs(7).sample(2, 6)
    at_cut = torch.stack((sides, torch.zeros_like(sides)), -1).flatten(-2)
    total = weights.sum((1, 2)) / 2
    expected = total[:, None] / 2 - cut_values(sides, weights)
    torch.testing.assert_close(Maxcut(7).objective(at_cut, weights), expected, atol=1e-5, rtol=1e-5)


def test_instances_are_the_papers():
    tau = held_out(Maxcut(), 400)
    simple, uniform = tau[::2], tau[1::2]
    assert torch.equal(tau, tau.mT)
    assert not tau.diagonal(dim1=1, dim2=2).any()
    assert set(simple.unique().tolist()) == {0.0, 1.0}
    assert simple.sum() / (200 * 56) == pytest.approx(0.5, abs=0.03)
    above = uniform[:, *torch.triu_indices(8, 8, 1)]
    assert above.mean() == pytest.approx(0.5, abs=0.02)
    assert (above > 0).all()
    assert (above < 1).all()


def test_mixed_instances_have_all_sizes_signs_and_one_scale():
    tau = held_out(Maxcut(8, 20), 400)
    vertices = 20 - (tau == 0).all(-1).flip(-1).long().cumprod(-1).sum(-1)
    assert tau.shape == (400, 20, 20)
    assert vertices.max() == 20
    assert (vertices <= 8).float().mean() > 0.3  # a sparse graph may end in isolated vertices
    assert {int(v) for v in vertices} >= {*range(9, 20)}
    assert (tau < 0).any(-1).any(-1).float().mean() == pytest.approx(0.5, abs=0.06)
    sizes = unit_scale(tau)  # of a graph that has no edge by chance it is 0
    torch.testing.assert_close(sizes[sizes > 0], torch.ones(int((sizes > 0).sum())))
    assert (sizes > 0).sum() > 390


# Cuts.


@given(vertices=st.integers(2, 9), seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_rounding_is_the_best_of_all_half_circles(vertices: int, seed: int):
    weights, x = random_graphs(2, vertices, seed), circles(2, 5, vertices=vertices, seed=seed)
    found = cut_values(best_half_circles(x, weights), weights)
    theta = angles(x)
    ahead = (theta[..., None, :] - theta[..., :, None]) % (2 * math.pi) < math.pi
    sides = torch.where(ahead | torch.eye(vertices).bool(), 1.0, -1.0)  # (i n k v): begun at k
    every = torch.stack([cut_values(sides[:, :, k], weights) for k in range(vertices)], -1)
    torch.testing.assert_close(found, every.amax(-1), atol=1e-4, rtol=1e-4)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_a_cut_on_the_circles_rounds_to_itself_however_it_is_turned(seed: int):
    weights = held_out(Maxcut(), 1, seed=seed)
    (best,) = enumerated(weights)
    turn = torch.rand(1, generator=torch.Generator().manual_seed(seed)) * 7
    x = on_circles(torch.where(best > 0, 0.0, math.pi) + turn)[None]
    found = cut_values(best_half_circles(x, weights), weights)
    torch.testing.assert_close(found, cut_values(best[None], weights))


def test_enumeration_is_that_of_plain_python():
    weights = held_out(Maxcut(6), 5)
    for one, found in zip(weights, enumerated(weights)):
        values = {}
        for sides in itertools.product((1, -1), repeat=5):
            side = (1, *sides)
            cut = [one[a, b] for a in range(6) for b in range(a) if side[a] != side[b]]
            values[side] = float(sum(cut))
        best = {side for side, value in values.items() if value > max(values.values()) - 1e-5}
        assert {tuple(map(int, each)) for each in found.tolist()} == best


def test_all_cuts_are_all_different_and_of_few_vertices():
    cuts = all_cuts(7, torch.zeros(1))
    assert len({tuple(each) for each in cuts.tolist()}) == 64
    assert (cuts[:, 0] == 1).all()
    with pytest.raises(px.InputError, match="2\\^29 cuts, too many"):
        all_cuts(30, torch.zeros(1))


def test_a_cut_and_its_complement_are_one():
    weights = held_out(Maxcut(), 1)
    sides = all_cuts(8, weights)
    both = torch.cat((sides, -sides, sides))[None]
    cuts = Solutions.of(Signs(8), both, both).valued(Cuts(8), weights).unique(smallest_share=0.0)
    assert len(cuts) == 128
    assert set(cuts.kind) == {"point"}  # corners of a cube are no curve, however many
    assert cuts.hits.tolist() == [3] * 128
    assert (cuts.points[:, 0] == 1).all()


def test_descent_finds_nearly_all_maximum_cuts_of_small_graphs():
    weights = held_out(Maxcut(), 12)[::2]
    cuts = px.solve(Maxcut(), weights, "lbfgs", starts=128, device="cpu").rounded()
    found = known = 0
    for k, best in enumerate(enumerated(weights)):
        optima = cuts[k].unique(smallest_share=0.0)
        most = cut_values(best[None], weights[k : k + 1]).max()
        assert (optima.values >= -most - 1e-4).all()  # nothing is better than the best
        found += int((optima.values <= -most + 1e-4).sum())
        known += len(best)
    assert 0.9 * known <= found <= known


def test_one_exchange_ends_where_no_vertex_gains():
    weights = random_graphs(3, 12)
    before = Signs(12).sample(3, 20, generator=torch.Generator().manual_seed(0))
    after = one_exchange(before, weights)
    assert set(after.unique().tolist()) == {-1.0, 1.0}
    assert (cut_values(after, weights) >= cut_values(before, weights) - 1e-4).all()
    assert (after * (after @ weights) <= 1e-3).all()
    graph = nx.from_numpy_array(weights[0].numpy())
    value, _ = nx.approximation.one_exchange(graph, seed=0, weight="weight")
    assert cut_values(after, weights)[0].max() >= value - 1e-3  # the best of 20 against one


def test_turned_and_mirrored_solutions_are_one_optimum():
    weights, x = random_graphs(1, 8), circles(1, 1)
    turns = torch.rand(40, 1, generator=torch.Generator().manual_seed(0)) * 2 * math.pi
    signs = torch.where(torch.arange(40) % 2 == 0, 1.0, -1.0)[:, None]
    points = on_circles(signs * angles(x)[0] + turns)[None]
    solutions = Solutions.of(px.Circles(8), points, points).valued(Maxcut(), weights)
    optima = solutions.unique(verify=False)
    assert optima.hits.tolist() == [40]
    torch.testing.assert_close(optima.points[0, :2], torch.tensor([1.0, 0.0]), atol=1e-5, rtol=0)


# The network.


@given(seed=st.integers(0, 10_000), vertices=st.integers(2, 9), turn=st.floats(-4, 4))
@settings(max_examples=20, deadline=None)
def test_network_turns_and_mirrors_with_the_circle(seed: int, vertices: int, turn: float):
    net, weights = network(seed), random_graphs(2, vertices, seed)
    x = circles(2, 3, vertices=vertices, seed=seed)
    result = angles(applied(net, x, weights))
    for sign in (1, -1):
        moved = on_circles(sign * angles(x) + turn)
        expected = on_circles(sign * result + turn)
        torch.testing.assert_close(applied(net, moved, weights), expected, atol=2e-4, rtol=1e-4)


@given(seed=st.integers(0, 10_000), vertices=st.integers(2, 9))
@settings(max_examples=20, deadline=None)
def test_network_does_not_care_how_vertices_are_numbered(seed: int, vertices: int):
    net, weights = network(seed), random_graphs(2, vertices, seed)
    x = circles(2, 3, vertices=vertices, seed=seed)
    order = torch.randperm(vertices, generator=torch.Generator().manual_seed(seed))
    renumbered = x.unflatten(-1, (-1, 2))[:, :, order].flatten(-2)
    expected = applied(net, x, weights).unflatten(-1, (-1, 2))[:, :, order].flatten(-2)
    result = applied(net, renumbered, weights[:, order][:, :, order])
    torch.testing.assert_close(result, expected, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("vertices", [2, 8])
def test_without_gradients_a_cpu_computes_the_same(vertices: int):
    net, weights, x = (
        network(lam=True),
        random_graphs(3, vertices),
        circles(3, 5, vertices=vertices),
    )
    with torch.no_grad():
        found = applied(net, x, weights)
    expected = applied(net, x, weights).detach()
    assert (expected - x).abs().max() > 0.05
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-5)


def test_isolated_vertices_stay_and_change_nothing():
    """Which is why graphs may be filled up with them."""
    net, weights, x = network(), random_graphs(2, 8), circles(2, 3, vertices=11)
    wide = torch.zeros(2, 11, 11)
    wide[:, :8, :8] = weights
    result = applied(net, x, wide)
    torch.testing.assert_close(result[..., 16:], x[..., 16:], atol=1e-5, rtol=0)
    torch.testing.assert_close(result[..., :16], applied(net, x[..., :16], weights))
    assert (result - x).abs().max() > 0.05


def test_stationary_points_stay_exactly():
    weights = held_out(Maxcut(), 3)
    minima = px.solve(Maxcut(), weights, "lbfgs", starts=16, device="cpu").polished().points
    torch.testing.assert_close(applied(network(), minima, weights), minima, atol=1e-3, rtol=0)
    cut = on_circles(torch.where(Signs(8).sample(3, 16) > 0, 0.0, math.pi))  # a saddle, mostly
    torch.testing.assert_close(applied(network(), cut, weights), cut, atol=1e-4, rtol=0)


def test_network_sees_lam_where_there_is_a_range():
    weights, x, net = random_graphs(1, 8), circles(1, 4), network(lam=True)
    low, high = (net(x, net.prepare(weights, torch.tensor([lam]))) for lam in (0.1, 10.0))
    assert (low - high).abs().max() > 1e-3
    low, high = (
        network()(x, network().prepare(weights, torch.tensor([lam]))) for lam in (0.1, 10.0)
    )
    assert torch.equal(low, high)


def test_graph_network_begins_as_the_identity():
    net = CutCirclesNetwork(False, CutCircles())
    x, weights = circles(2, 5), random_graphs(2, 8)
    torch.testing.assert_close(applied(net, x, weights), x)


def test_a_short_training_gets_near_the_true_proximal_step():
    """Against many small steps down `f(y) + lam/2 |y - x|^2` itself."""
    problem = Maxcut()
    how = {"instances": 24, "points": 4, "rate": 3e-3, "applications": 1, "device": "cpu"}
    operator = px.learn(problem, steps=100, lam=2.5, seed=1, progress=False, **how)
    weights, x = held_out(problem, 6), circles(6, 8, seed=3)

    def loss(y: Tensor) -> Tensor:
        return problem.objective(y, weights) + 2.5 / 2 * (y - x).square().sum(-1)

    true = x.clone().requires_grad_()
    for _ in range(400):
        (slope,) = torch.autograd.grad(loss(problem.space.retract(true)).sum(), true)
        true = problem.space.retract(true.detach() - 0.05 * slope).requires_grad_()
    ours = operator.solve(weights, starts=x, steps=1).points
    gained = (loss(x) - loss(ours)).mean() / (loss(x) - loss(true)).mean()
    assert gained > 0.97


def test_relative_thresholds_are_times_the_best_that_the_reference_found():
    problem, how = Maxcut(), {"steps": 60, "rate": 0.05}
    sizes = {"instances": 3, "starts": 40, "witnesses": 8, "trials": 1, "device": "cpu"}
    (row,) = evaluate(
        problem,
        [("PD", "descent", how)],
        reference=("descent", how),
        thresholds=(0.99,),
        relative=True,
        **sizes,
    )
    values = px.solve(problem, held_out(problem, 3), "descent", 40, 1, "cpu", **how).values
    expected = (values <= 0.99 * values.amin(1, keepdim=True)).float().mean().item()
    assert row["rho_gt"] == pytest.approx(expected)
    assert 0.1 < expected < 0.99


def test_the_shipped_operator_finds_the_maximum_cuts_of_small_graphs():
    weights = held_out(Maxcut(), 16, seed=5)[::2]
    cuts = px.pretrained("maxcut", "cpu").solve(weights, starts=128, steps=40).rounded()
    shares = []
    for k, best in enumerate(enumerated(weights)):
        most = cut_values(best[None], weights[k : k + 1]).max()
        values = cuts[k].unique(smallest_share=0.0).values
        shares.append((values <= -most + 1e-4).sum().item() / len(best))
    assert np.mean(shares) > 0.95


def test_the_shipped_operator_cuts_larger_graphs_better_than_local_search():
    weights = held_out(Maxcut(60), 2, seed=5)
    cuts = px.pretrained("maxcut", "cpu").solve(weights, starts=8, steps=40).rounded()
    random = Signs(60).sample(2, 8, generator=generator_for(0, "sides"))
    local = cut_values(one_exchange(random, weights), weights)
    assert (-cuts.values.mean(1) >= local.mean(1)).all()  # start by start; a start costs more


@pytest.mark.parametrize("vertices", [8, 31, 32, 33])  # the largest it was trained on has 32
def test_the_shipped_operator_takes_graphs_of_any_size(vertices: int):
    ring = torch.eye(vertices).roll(1, 0)
    found = px.pretrained("maxcut", "cpu").solve(ring + ring.T, starts=8, steps=2)
    assert found.points.shape == (1, 8, 2 * vertices)
    assert found.rounded().points.shape == (1, 8, vertices)


# Graphs of any size, and what is no graph.


def any_size() -> Operator:
    torch.manual_seed(0)
    problem = Maxcut(8, 12)
    return Operator.untrained(problem, SMALL, 2.5)


def test_an_operator_for_any_size_takes_other_sizes_and_scales(tmp_path: Path):
    operator = px.load(any_size().save(tmp_path / "any.safetensors"), device="cpu")
    torch.nn.init.normal_(operator.network.blocks[0].move.weight)
    weights = random_graphs(2, 30)
    found = operator.solve(weights, starts=5, steps=2)
    assert found.space == px.Circles(30)
    assert found.inside.all()
    scaled = operator.solve(1000 * weights, starts=5, steps=2)
    torch.testing.assert_close(found.points, scaled.points, atol=1e-4, rtol=1e-4)
    assert operator.space == px.Circles(12)  # itself, it stays as it was


def test_what_is_replayed_on_a_gpu_is_kept_from_call_to_call():
    operator, weights = any_size(), random_graphs(1, 20)
    first, second = operator.bind(weights), operator.bind(weights)
    assert first.operator.repeated is second.operator.repeated is operator.repeated
    assert first.space == second.space == px.Circles(20)


def test_trainings_on_graphs_are_exact_unless_asked_otherwise():
    gpu, usual = torch.device("cuda"), Training()
    assert pick_precision(usual, CutCircles(), gpu) == "fp32"
    assert pick_precision(usual, Coupling(), gpu) == "tf32"
    assert pick_precision(Training(precision="tf32"), CutCircles(), gpu) == "tf32"


def test_px_solve_fits_problem_and_operator_to_the_graph():
    weights = random_graphs(1, 20)[0]
    found = px.solve(
        px.problem("maxcut"), weights, "operator", 6, device="cpu", operator=any_size(), steps=1
    )
    assert found.points.shape == (1, 6, 40)
    assert found.problem.space == px.Circles(20)
    assert found.rounded().points.shape == (1, 6, 20)
    torch.testing.assert_close(found.values, Maxcut(20).objective(found.points, weights[None]))


def test_a_stream_of_graphs_is_of_one_size():
    operator, weights = any_size(), random_graphs(3, 9)
    (found,) = operator.stream(weights, starts=4, steps=1)
    assert found.points.shape == (3, 4, 18)
    assert torch.equal(found.starts[0], operator.solve(weights[0], starts=4).starts[0])
    with pytest.raises(px.InputError, match="of different sizes"):
        list(operator.stream([weights[0], random_graphs(1, 10)[0]], starts=4))


def test_an_operator_for_one_size_refuses_another():
    problem = Maxcut()
    operator = untrained(problem.space, problem.instances, SMALL, 2.5)
    with pytest.raises(px.InputError, match="has 9 vertices, but this operator is for graphs of 8"):
        operator.solve(random_graphs(1, 9)[0])
    with pytest.raises(px.InputError, match="has 9 vertices, but this operator is for graphs of 8"):
        px.solve(problem, random_graphs(1, 9)[0], "operator", 4, operator=operator)
    with pytest.raises(px.InputError, match="a coupling network is of one size"):
        Operator.untrained(Maxcut(4, 8), Coupling(), 2.5)


@pytest.mark.parametrize("sizes", [(1,), (-3,), (8, 4)])
def test_sizes_that_no_graph_has_are_said(sizes: tuple):
    with pytest.raises(px.InputError, match="must be a whole number"):
        Maxcut(*sizes)


def test_the_cut_network_is_for_graphs_alone():
    with pytest.raises(px.InputError, match="is for graphs, with a circle for"):
        px.learn(
            px.problem("conic"), architecture="cut_circles", steps=1, device="cpu", progress=False
        )


@pytest.mark.parametrize("size", [1e-36, 1e-20, 1e14])
def test_graphs_of_any_weight_come_to_one_scale(size: float):
    weights = random_graphs(2, 30)
    expected = at_unit_scale(weights)
    torch.testing.assert_close(at_unit_scale(size * weights), expected, atol=1e-4, rtol=1e-3)
    found = any_size().solve(size * weights, starts=4, steps=2)
    assert found.points.isfinite().all()


def test_mixed_sizes_train_together(tiny: dict):
    operator = px.learn(Maxcut(4, 6), **tiny | {"steps": 3, "architecture": SMALL})
    assert operator.instances.any_size
    assert operator.solve(random_graphs(1, 9)[0], starts=4).points.shape == (1, 4, 18)


def broken(change) -> Tensor:
    weights = random_graphs(1, 4)[0]
    change(weights)
    return weights


@pytest.mark.parametrize(
    ("tau", "said"),
    [
        (broken(lambda w: w[1].fill_(math.nan)), "between vertices 2 and 1 is nan"),
        (broken(lambda w: w[2].fill_(math.inf)), "finite number"),
        (broken(lambda w: w[2].fill_(-1e19)), "3 and 1 is -1e\\+19; .* 1e\\+15 at most"),
        (broken(lambda w: w[0, 1].add_(1)), "not symmetric: vertices 1 and 2 have"),
        (
            torch.stack((torch.zeros(2, 2), torch.tensor([[0.0, 3.0], [4.0, 0.0]]))),
            "vertices 1 and 2 of graph 2 have 3 one way and 4 the other",
        ),
        (1j * random_graphs(1, 4)[0], "complex; they must be real"),
        (broken(lambda w: w.fill_diagonal_(1)), "edge to itself"),
        (torch.zeros(3, 4), r"tau has shape \(3, 4\); expected a square matrix"),
        (torch.zeros(0, 0), "expected a square matrix .* with two vertices or more"),
        (torch.zeros(1, 1), "nothing to cut"),
        ([[0, 1, None], [1, 0, 1], [None, 1, 0]], "it holds what is no number"),
        ([[0, 1], [1]], "not of one length"),
        (None, "give tau"),
        ("nowhere.txt", "no graph at nowhere.txt"),
    ],
)
def test_what_is_no_graph_is_said(tau, said: str):
    for solve in (px.problem("maxcut").batch, any_size().solve):
        with pytest.raises(px.ProxlearnError, match=said):
            solve(tau)


def test_negative_weights_and_graphs_in_pieces_are_fine():
    weights = torch.zeros(6, 6)
    weights[0, 1] = weights[1, 0] = -2.0
    weights[2, 3] = weights[3, 2] = 1.0
    found = px.solve(Maxcut(), weights, "lbfgs", starts=16, device="cpu").rounded()
    assert found.values.min() == -1.0
    empty = px.solve(Maxcut(), torch.zeros(4, 4), "descent", starts=3, device="cpu", steps=2)
    assert not empty.values.any()
    assert at_unit_scale(torch.zeros(1, 3, 3)).isfinite().all()


# Files.


def written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "graph.txt").write_text(text)
    return tmp_path / "graph.txt"


def test_a_graph_is_read_from_text_and_from_an_array(tmp_path: Path):
    file = written(tmp_path, "3 2\n1 2 1.5\n3 1 -2\n")
    expected = np.array([[0, 1.5, -2], [1.5, 0, 0], [-2, 0, 0]], dtype=np.float32)
    assert (read_graph(file) == expected).all()
    np.save(tmp_path / "graph.npy", expected)
    assert (Maxcut().batch(tmp_path / "graph.npy").numpy() == expected).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("a\n", "the edge 'a'; expected `i j weight`"),
        ("3 2\n1 2 1\n", "it has 2 edges but lists 1: add the missing edge or correct"),
        ("3 3\n", "it has 3 edges but lists 0: add the missing edges or"),
        ("3 1\n1 2 1\n2 3 1\n", "has 1 edge but lists 2: remove the extra edge or"),
        ("0 0\n", r"A graph needs at least two vertices, and .* has 0\."),
        ("3 1\n1 4 1\n", "from 1 to 3"),
        ("3 1\n2 2 1\n", "two different vertices"),
        ("3 1\n1 2 x\n", "the edge '1 2 x'"),
        ("3 2\n1 2 1\n2 1 3\n", "has the edge 2 1 twice"),
        ("1000000 1\n1 2 1\n", "1,000,000 vertices, .* too large: 20,000"),
    ],
)
def test_a_file_that_holds_no_graph_is_said(tmp_path: Path, text: str, said: str):
    file = written(tmp_path, text)
    with pytest.raises(px.FileError, match=said) as caught:
        read_graph(file)
    assert str(caught.value).count(str(file)) == 1


TRIANGLE = np.array([[0, 1, 2], [1, 0, 0], [2, 0, 0]], dtype=np.float32)


@pytest.mark.parametrize(
    "text",
    [
        "3 2\n1 2 1\n1 3 2\n",
        "# a comment\n3 2\n\n1 2 # of weight 1\n1 3 2\n",
        "3 2\n0 1 1\n0 2 2\n",
        "1 2\n1 3 2\n",
        "1 2 1\n1 3 2\n",
        "0 1\n0 2 2\n",
        "10 11 1.0\n10 12 2\n",
        "a b\na c 2.0\n",
        "0 1 {}\n0 2 {'weight': 2.0, 'colour': 'red'}\n",
    ],
)
def test_files_as_people_have_them(tmp_path: Path, text: str):
    """Without weights, with comments, counted from 0, without a first line, with names."""
    assert (read_graph(written(tmp_path, text)) == TRIANGLE).all()


def test_a_list_of_edges_has_no_first_line(tmp_path: Path):
    """`2 1` and `1 3` are then edges, not 2 vertices and 1 edge."""
    file = tmp_path / "graph.edgelist"
    file.write_text("2 1\n1 3 2\n")
    assert (read_graph(file) == TRIANGLE).all()
    with pytest.raises(px.FileError, match="A list of edges alone is a file"):
        read_graph(written(tmp_path, "2 3\n1 2\n"))


def test_graphs_of_networkx_and_their_files(tmp_path: Path):
    graph = nx.Graph()
    graph.add_edge("a", "b")
    graph.add_edge("a", "c", weight=2.0)
    assert (Maxcut().batch(graph)[0].numpy() == TRIANGLE).all()
    formats = {"graphml": "graphml", "edgelist": "edgelist", "gml": "gml", "gexf": "gexf"}
    for ending, kind in (formats | {"net": "pajek"}).items():
        file = tmp_path / f"graph.{ending}"
        getattr(nx, f"write_{kind}")(graph, file)
        assert (read_graph(file) == TRIANGLE).all(), ending
        if ending != "edgelist":
            file.write_text("<graphml [")
            with pytest.raises(px.FileError, match=rf"graph\.{ending} holds no graph"):
                read_graph(file)
    (tmp_path / "graph.adjlist").write_text("a b c\n")
    assert (read_graph(tmp_path / "graph.adjlist") == np.minimum(TRIANGLE, 1)).all()
    unnamed = "graph [ node [ id 7 ] node [ id 3 ] edge [ source 7 target 3 weight 2 ] ]"
    (tmp_path / "unnamed.gml").write_text(unnamed)
    assert (read_graph(tmp_path / "unnamed.gml") == [[0, 2], [2, 0]]).all()
    with pytest.raises(px.InputError, match="directed"):
        Maxcut().batch(graph.to_directed())


def test_a_graph_of_networkx_is_solved_by_the_name_of_the_problem():
    graph = nx.cycle_graph(["a", "b", "c", "d"])
    cuts = px.solve("maxcut", graph, starts=16).rounded().unique()
    assert cuts.values is not None
    assert cuts.values[0] == -4
    one_side = {node for node, side in zip(graph, cuts.points[0]) if side > 0}
    assert one_side in ({"a", "c"}, {"b", "d"})


def test_an_array_that_is_none_and_one_of_several_graphs_are_said(tmp_path: Path):
    file = tmp_path / "graph.npy"
    file.touch()
    with pytest.raises(px.FileError, match="cannot be read as a graph"):
        read_graph(file)
    np.save(file, random_graphs(2, 4).numpy())
    with pytest.raises(px.InputError, match="holds 2 graphs; --tau takes one"):
        Maxcut().instances.read(str(file))
    assert len(Maxcut().batch(file)) == 2


def test_a_file_with_a_weight_that_is_no_number_is_said(tmp_path: Path):
    with pytest.raises(px.InputError, match="between vertices 1 and 2 is nan"):
        Maxcut().batch(written(tmp_path, "3 1\n1 2 nan\n"))


def test_solving_a_file_on_the_command_line_lists_its_cuts(tmp_path: Path, capsys):
    import json

    from proxlearn.cli.main import main

    file = written(tmp_path, "4 4\n1 2 1\n2 3 1\n3 4 1\n4 1 1\n")  # a square: one maximum cut, 4
    with pytest.raises(SystemExit) as end:
        main(f"solve maxcut --tau {file} --method lbfgs --starts 32 --json - --device cpu".split())
    assert end.value.code == 0
    (optimum,) = json.loads(capsys.readouterr().out)["optima"]
    assert optimum["value"] == -4
    assert optimum["point"] == [1, -1, 1, -1]


@pytest.mark.parametrize(("vertices", "edges"), [(5, 2), (40, 0)])
def test_cuts_are_drawn_with_their_edges_where_they_can_be_seen(vertices: int, edges: int):
    from matplotlib.collections import LineCollection

    from proxlearn.figures.draw import figure

    weights = torch.ones(1, vertices, vertices) - torch.eye(vertices)
    solutions = px.solve(Maxcut(), weights, "lbfgs", starts=4, device="cpu", steps=3)
    drawn = figure(Maxcut(), weights, solutions).subfigs[0].axes[0]
    lines = [each for each in drawn.collections if isinstance(each, LineCollection)]
    assert len(lines) == edges  # those that stay and those that are cut
    assert len(drawn.collections[-1].get_offsets()) == vertices


def test_light_edges_are_wide_enough_to_be_seen_as_dashed():
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    from proxlearn.problems.maxcut.picture import draw_cut

    weights = torch.tensor([[0.0, 1.0, 0.05], [1.0, 0.0, 0.3], [0.05, 0.3, 0.0]])
    axes = Figure().subplots()
    draw_cut(axes, weights, torch.tensor([1.0, -1.0, -1.0]))
    lines = [each for each in axes.collections if isinstance(each, LineCollection)]
    widths = [width for each in lines for width in each.get_linewidths()]
    assert len(widths) == 3
    assert min(widths) >= 0.8
    assert max(widths) > 1.5  # the heaviest


def test_gset_graphs_are_cut_no_better_than_is_known():
    file = DATA / "gset" / "G11.txt"
    if not file.is_file():
        pytest.skip("no Gset graphs at $PROXLEARN_MAXCUT")
    weights = torch.from_numpy(read_graph(file))[None]
    assert weights.shape == (1, 800, 800)
    start = Signs(800).sample(1, 4, generator=generator_for(0, "sides"))
    best = cut_values(one_exchange(start, weights), weights).max()
    assert 400 < best <= 564  # best known
