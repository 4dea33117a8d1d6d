"""The benchmarks: what they measure against is what was published, and every script runs."""

import copy
import importlib
from argparse import Namespace
from pathlib import Path

import before_after
import metrics
import page
import pytest
import torch
from _shared import Benchmark
from _timing import Timing, interleaved
from published import LAM, PublishedLoop, PublishedNetwork
from solving import fewest_steps
from step import ours, points_in_a_step

import proxlearn as px
from proxlearn.common.files import read_rows
from proxlearn.common.seeds import generator_for
from proxlearn.errors import UnknownNameError
from proxlearn.instances import Vectors
from proxlearn.networks import architecture_from
from proxlearn.networks.coupling import CouplingNetwork
from proxlearn.networks.encoders.vector import Vector
from proxlearn.operators.shipped import shipped
from proxlearn.problems.base import held_out
from proxlearn.training.session import Session
from proxlearn.training.settings import training_from

pytestmark = pytest.mark.whole
ROOT = Path(__file__).parent.parent
CPU = torch.device("cpu")
SCRIPTS = [
    "step",
    "metrics",
    "quality",
    "solving",
    "solving_cpu",
    "growth",
    "precision",
    "minute",
    "imports",
    "loading",
    "checks",
    "encoding",
    "bounded",
    "distance",
    "symmetries",
    "listing",
    "budgets",
    "detection",
    "branches",
]
WITHOUT_CLOCK = ["shipped", "ship", "processes", "optimizers", "launches"]  # rows with no `seconds`


def copied(literal: PublishedNetwork, network: CouplingNetwork) -> None:
    """Give a network of the preset `paper` the weights of the literal one."""
    weights, width = {}, network.architecture.width
    for name, value in literal.state_dict().items():
        if name.startswith("of_"):
            weights[name] = value
    for k, block in enumerate(literal.blocks):
        first, second, third = block.hidden[0], block.hidden[2], block.hidden[4]
        weights[f"blocks.{k}.from_x.weight"] = first.weight[:, :width]
        weights[f"blocks.{k}.from_tau.weight"] = first.weight[:, width:]
        weights[f"blocks.{k}.from_tau.bias"] = first.bias
        for part in ("weight", "bias"):
            weights[f"blocks.{k}.hidden.0.linear.{part}"] = getattr(second, part)
            weights[f"blocks.{k}.hidden.1.linear.{part}"] = getattr(third, part)
            heads = getattr(block.scale[0], part), getattr(block.shift, part)
            weights[f"blocks.{k}.heads.{part}"] = torch.cat(heads)
    network.load_state_dict(weights)


def test_the_papers_preset_is_the_published_network():
    """Computing tau's share once per tau changes where the work is done, not the result."""
    torch.manual_seed(0)
    literal, vectors = PublishedNetwork(2, 6), Vector(Vectors((-1.0,) * 6, (1.0,) * 6))
    network = CouplingNetwork(2, vectors, architecture_from("paper"))
    copied(literal, network)
    x, tau = torch.rand(3, 7, 2) * 2 - 1, torch.rand(3, 6) * 2 - 1
    expected = literal(x, tau)
    assert expected.shape == (3, 7, 2)
    torch.testing.assert_close(
        network(x, network.prepare(tau, torch.ones(3))), expected, atol=1e-5, rtol=1e-5
    )
    count = [sum(p.numel() for p in each.parameters()) for each in (literal, network)]
    assert count[0] == count[1]
    assert 4 * count[0] < 2e6  # "under 2 MB"


def test_a_published_step_by_hand():
    """Every application's loss is trained on, and no gradient flows from one to the one before."""
    conic = px.problem("conic")
    loop = PublishedLoop(conic, CPU, instances=3, points=4, applications=2)
    network = copy.deepcopy(loop.network)
    generator = generator_for(0, "published")
    tau = conic.sample(3, "train", generator)
    x = conic.space.sample(3, 4, generator=generator)
    y = network(x, tau)
    z = network(y.detach(), tau)
    first = conic.objective(y, tau) + LAM / 2 * (y - x).square().sum(-1)
    second = conic.objective(z, tau) + LAM / 2 * (z - y.detach()).square().sum(-1)
    loss = (first.mean() + second.mean()) / 2
    loss.backward()
    assert loop.step() == pytest.approx(loss.item(), rel=1e-5)
    for before, after in zip(network.parameters(), loop.network.parameters()):
        torch.testing.assert_close(after.grad, before.grad)
        assert (after - before).abs().max() <= 1.01e-4  # one step of Adam


def test_one_witness_at_a_time_gives_the_same_metrics():
    conic = px.problem("conic")
    tau = held_out(conic, 6)
    found = px.solve(conic, tau, "operator", 64, 0, "cpu")
    truth = px.solve(conic, tau, "lbfgs", 64, 1, "cpu", steps=20)
    witnesses = conic.space.sample(32, generator=generator_for(0, "witnesses"))
    for one, other in zip(
        metrics.literal(found, truth, witnesses), metrics.batched(found, truth, witnesses)
    ):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("empty", [(True, False), (True, True)])
def test_empty_sets_differ_alike(empty: tuple[bool, bool]):
    space = px.Box(-1.0, 1.0, dim=2)
    points = space.sample(1, 5, generator=generator_for(0, "points"))
    sets = [
        px.Solutions(space, points, points, torch.ones(1, 5).bool(), torch.full((1, 5), float(e)))
        for e in empty  # a value of 1 is above the threshold
    ]
    witnesses = space.sample(3, generator=generator_for(0, "witnesses"))
    for one, other in zip(metrics.literal(*sets, witnesses), metrics.batched(*sets, witnesses)):
        torch.testing.assert_close(one, other)


def test_calls_take_turns():
    calls = []
    timings = interleaved(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, CPU, rounds=3, seconds=0
    )
    assert "".join(calls) == "aabb" + "ababab"  # warm-up and a first look, then the rounds
    assert [len(each.seconds) for each in timings.values()] == [3, 3]


def test_a_ratio_is_taken_round_by_round():
    slow, fast = Timing((2.0, 9.0, 6.0)), Timing((1.0, 3.0, 3.0))
    assert slow.over(fast) == 2.0
    assert slow.fields() == {
        "seconds": 6.0,
        "seconds_low": 4.0,
        "seconds_high": 7.5,
        "rounds": 3,
    }


def test_the_fewest_steps():
    for needed in (1, 2, 7, 8, 9):
        assert fewest_steps(lambda k, needed=needed: float(k < needed), 0.5, most=9) == needed
    assert fewest_steps(lambda k: float(k < 10), 0.5, most=9) is None


@pytest.mark.parametrize("settings", [{}, {"instances": 30, "points": 34}, {"instances": 4}])
def test_the_points_of_a_step_are_those_of_the_pool(settings: dict):
    conic, training = px.problem("conic"), training_from(settings)
    pool = Session(conic, training, CPU).sampler
    assert points_in_a_step(conic, training, CPU) == pool.x[: pool.batch, :, 0].numel()


def test_an_unknown_setting_of_a_variant_is_an_error():
    with pytest.raises(UnknownNameError):
        ours(px.problem("conic"), {"precisoin": "bf16"}, CPU)


def test_rows_of_the_other_device_stay(tmp_path: Path):
    for ran_on in ("cuda", "cpu", "cpu"):
        run = Benchmark("step", Namespace(quick=True, device="cpu", out=tmp_path))
        run.device = torch.device(ran_on)
        run.add(CPU)
        run.save()
    assert [row["ran_on"] for row in read_rows(tmp_path / "step.jsonl")] == ["cuda", "cpu"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where every script has left its rows."""
    folder = tmp_path_factory.mktemp("speed")
    for name in SCRIPTS + WITHOUT_CLOCK:
        importlib.import_module(name).main(["--quick", "--out", str(folder)])
    return folder


@pytest.mark.parametrize("name", SCRIPTS + WITHOUT_CLOCK)
def test_every_script_leaves_rows(name: str, folder: Path):
    rows = read_rows(folder / f"{name}.jsonl")
    assert len(rows) >= 2
    for row in rows:
        assert row["benchmark"] == name
        assert row["quick"]
        assert row["command"] == f"python benchmarks/{name}.py --quick"
        assert "CPU" in row["machine"] or row["ran_on"] == "cuda"
        assert name in WITHOUT_CLOCK or row["seconds"] > 0


def test_the_page_is_made_of_rows(folder: Path, tmp_path: Path):
    made = tmp_path / "speed.md"
    made.write_text(f"before\n{page.BEGIN}what was there\n{page.END}after\n")
    page.main(["--rows", str(folder), "--page", str(made)])
    text = made.read_text()
    assert text.startswith(f"before\n{page.BEGIN}")
    assert text.endswith(f"{page.END}after\n")
    assert "what was there" not in text
    assert "| published loop |" in text
    assert (tmp_path / "images/speed.png").is_file()
    assert (tmp_path / "images/growth.png").is_file()


def test_the_committed_page_is_that_of_the_rows():
    """`python benchmarks/page.py` would change nothing."""
    section = page.section(page.Rows(ROOT / "results/speed"))
    assert page.BEGIN + section + page.END in (ROOT / "docs/speed.md").read_text()


def test_an_operator_is_compared_with_the_one_before(tmp_path: Path):
    file, rows = str(shipped()["conic"]), tmp_path / "rows.jsonl"
    sizes = "--instances 2 --starts 32 --threshold 0.05 --device cpu --out"
    before_after.main(["conic", file, file, *sizes.split(), str(rows)])
    before, after, best = read_rows(rows)
    assert [r["label"] for r in (before, after, best)] == ["before", "after", before_after.BEST]
    assert before["wd"] == after["wd"] > 0
    assert before["applications"] == px.load(file).applications


@pytest.mark.slow
def test_two_versions_are_compared(tmp_path: Path):
    """Here the same one twice."""
    versions = importlib.import_module("versions")
    versions.main(["--quick", "--before", str(ROOT / "src"), "--out", str(tmp_path)])
    (row,) = read_rows(tmp_path / "versions.jsonl")
    assert row["ratio"] == pytest.approx(row["after"] / row["before"])
