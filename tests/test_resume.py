"""Resuming: a training that was stopped, or killed, ends in the weights of one that was not."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import proxlearn as px
from proxlearn.common.files import read_rows
from proxlearn.instances.picture import Pictures
from proxlearn.networks.encoders.picture import Picture
from proxlearn.training import checkpoint
from proxlearn.training.learn import Session
from proxlearn.training.settings import training_from

pytestmark = [pytest.mark.whole, pytest.mark.usefixtures("report_each_step")]


class Spots(px.Problem):
    """Structured and noisy: tau is a picture and where its bright spot is, the operator sees the
    picture alone, and where the spot is taken to be is drawn anew at every step."""

    name = "spots"
    space = px.Box(0.0, 1.0, dim=2)
    instances = Pictures(1, 4, 4)

    def sample(self, count, split, generator):
        spot = torch.rand(count, 2, generator=generator)
        cell = (spot * 4).long()
        picture = torch.zeros(count, 1, 4, 4)
        picture[torch.arange(count), 0, cell[:, 0], cell[:, 1]] = 1.0
        return {"picture": picture, "spot": spot}

    def observe(self, tau):
        return tau["picture"]

    def encoder(self):
        return Picture(self.instances, size=4, features=2)

    def objective(self, x, tau):
        return (x - tau["spot"][:, None]).square().sum(-1)

    def refresh(self, tau, generator):
        noise = 0.1 * torch.randn(tau["spot"].shape, generator=generator)
        return tau | {"spot": tau["spot"] + noise}


def interrupted_and_resumed(
    problem: px.Problem, out: Path, stops: list[Any], settings: dict[str, Any]
) -> px.Operator:
    for k, watch in enumerate(stops):
        px.learn(problem, out=out, resume=k > 0, watch=watch, **settings)
    torch.manual_seed(777)  # another process would have another global generator
    return px.learn(problem, out=out, resume=True, **settings)


@pytest.mark.parametrize("sampling", ["pool", "unfold"])
@pytest.mark.parametrize("rule", ["proximal", "gradient"])
def test_a_resumed_training_is_the_uninterrupted_one(
    wells: px.Problem, tiny: dict, tmp_path: Path, interrupt_at, same_weights, sampling, rule
):
    lam = None if rule == "gradient" else 1.0
    settings = tiny | {"steps": 25, "sampling": sampling, "rule": rule, "lam": lam, "seed": 2}
    straight = px.learn(wells, **settings)
    stops = [interrupt_at(7), interrupt_at(16)]
    resumed = interrupted_and_resumed(wells, tmp_path, stops, settings)
    assert same_weights(straight, resumed)
    assert same_weights(straight, px.load(tmp_path / "operator.safetensors", "cpu"))
    assert resumed.provenance["steps"] == 25


@pytest.mark.parametrize("sampling", ["pool", "unfold"])
def test_noise_and_structured_taus_are_resumed_too(
    tiny: dict, tmp_path: Path, interrupt_at, same_weights, sampling
):
    settings = tiny | {"steps": 20, "sampling": sampling}
    straight = px.learn(Spots(), **settings)
    resumed = interrupted_and_resumed(Spots(), tmp_path, [interrupt_at(9)], settings)
    assert same_weights(straight, resumed)


@pytest.mark.parametrize("sampling", ["pool", "unfold"])
def test_a_checkpoint_holds_all_that_changes_in_training(tiny: dict, tmp_path: Path, sampling):
    """Whatever a later version of the training remembers must be in the checkpoint as well."""
    settings = {k: v for k, v in tiny.items() if k not in ("device", "progress")}
    training = training_from(settings | {"steps": 20, "sampling": sampling})
    with torch.random.fork_rng():
        session = Session(Spots(), training, torch.device("cpu"))
        for _ in zip(range(7), session.run()):
            pass
        checkpoint.save(session, tmp_path)
        other = Session(Spots(), training, torch.device("cpu"))
        checkpoint.restore(other, tmp_path)
    for name in vars(session).keys() - {"rate"}:  # which is set anew before every step
        ours, theirs = getattr(session, name), getattr(other, name)
        if isinstance(ours, torch.Generator):
            ours, theirs = ours.get_state(), theirs.get_state()
        if isinstance(ours, (torch.Tensor, float, int, dict)):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=0, msg=name)


def test_a_finished_training_resumed_is_itself(wells, tiny, tmp_path: Path, same_weights):
    first = px.learn(wells, steps=5, out=tmp_path, **tiny)
    again = px.learn(wells, steps=5, out=tmp_path, resume=True, **tiny)
    assert same_weights(first, again)


def test_seconds_already_spent_count(wells, tiny, tmp_path: Path, interrupt_at):
    px.learn(wells, seconds=1.0, out=tmp_path, watch=interrupt_at(3), **tiny)
    before = torch.load(tmp_path / checkpoint.NAME, weights_only=True)
    assert 0 < before["elapsed"] < 1.0
    time.sleep(1.0)  # time between the two does not count
    operator = px.learn(wells, seconds=1.0, out=tmp_path, resume=True, **tiny)
    assert operator.provenance["steps"] > 3
    assert operator.provenance["seconds"] >= 1.0


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"lam": 2.0}, {"points": 9}, {"depth": 3}], ids=str
)
def test_other_settings_are_refused_and_nothing_is_lost(
    wells: px.Problem, tiny: dict, tmp_path: Path, interrupt_at, change
):
    settings = tiny | {"steps": 20, "seed": 0}
    px.learn(wells, out=tmp_path, watch=interrupt_at(5), **settings)
    before = (tmp_path / checkpoint.NAME).read_bytes()
    (name,) = change
    with pytest.raises(px.InputError, match=f"{name} = .* but {name} = {change[name]} was asked"):
        px.learn(wells, out=tmp_path, resume=True, **settings | change)
    assert (tmp_path / checkpoint.NAME).read_bytes() == before


def test_another_problem_is_refused(wells, tiny, tmp_path: Path, interrupt_at):
    px.learn(wells, steps=20, out=tmp_path, watch=interrupt_at(5), **tiny)
    with pytest.raises(px.InputError, match=r"problem = wells.*problem = spots"):
        px.learn(Spots(), steps=20, out=tmp_path, resume=True, **tiny)


def test_a_problem_that_changed_meanwhile_is_refused(tiny, tmp_path: Path, interrupt_at):
    """The range of tau is in the weights' scale: going on with another would spoil them."""

    def family(high: float) -> px.Problem:
        return px.Problem.from_function(
            lambda x, tau: (x - tau).square().sum(-1),
            px.Box(-1.0, 1.0, dim=2),
            px.Box(-1.0, high, dim=2),
        )

    px.learn(family(1.0), steps=20, out=tmp_path, watch=interrupt_at(5), **tiny)
    with pytest.raises(px.InputError, match="instances_of"):
        px.learn(family(2.0), steps=20, out=tmp_path, resume=True, **tiny)


def scaled_wells(scale: float) -> px.Problem:
    """Other objectives, with the same name, space and range."""
    return px.Problem.from_function(
        lambda x, tau: scale * (x.square() - tau.square()).square().sum(-1),
        px.Box(-2.0, 2.0, dim=2),
        px.Box(0.5, 1.5, dim=2),
        name="wells",
    )


@pytest.mark.parametrize("lam", [1.0, None], ids=["given", "estimated from the objective"])
def test_another_objective_of_the_same_name_is_refused(tiny, tmp_path: Path, interrupt_at, lam):
    tiny["lam"] = lam
    px.learn(scaled_wells(1.0), steps=20, out=tmp_path, watch=interrupt_at(5), **tiny)
    with pytest.raises(px.InputError, match=r"of another objective: it had .* at a point where"):
        px.learn(scaled_wells(1.1), steps=20, out=tmp_path, resume=True, **tiny)
    px.learn(scaled_wells(1.0), steps=20, out=tmp_path, resume=True, **tiny)


def test_another_lam_of_the_problem_is_refused(wells, tiny, tmp_path: Path, interrupt_at):
    del tiny["lam"]
    wells.lam = 1.0
    px.learn(wells, steps=20, out=tmp_path, watch=interrupt_at(5), **tiny)
    wells.lam = 2.0
    with pytest.raises(px.InputError, match=r"the rule's lam = 1.0, but the rule's lam = 2.0 was"):
        px.learn(wells, steps=20, out=tmp_path, resume=True, **tiny)


def test_a_random_objective_can_be_resumed(tiny, tmp_path: Path, interrupt_at):
    """A costly one, of which that is not found out, has no values to tell it from another."""
    noisy = px.Problem.from_function(
        lambda x, tau: ((x - tau).square() * (1 + torch.rand(()))).sum(-1),
        px.Box(-1.0, 1.0, dim=2),
        px.Box(-1.0, 1.0, dim=2),
    )
    noisy.costly = True
    px.learn(noisy, steps=10, out=tmp_path, watch=interrupt_at(5), **tiny)
    resumed = px.learn(noisy, steps=10, out=tmp_path, resume=True, **tiny)
    assert resumed.provenance["steps"] == 10
    assert "interrupted" not in resumed.provenance


def test_a_training_can_be_made_longer(wells, tiny, tmp_path: Path):
    px.learn(wells, steps=5, out=tmp_path, **tiny)
    longer = px.learn(wells, steps=12, out=tmp_path, resume=True, **tiny)
    assert longer.provenance["steps"] == 12
    assert [row["step"] for row in read_rows(tmp_path / "training.jsonl")] == list(range(1, 13))


def test_the_curve_has_every_row_once(wells, tiny, tmp_path: Path, interrupt_at):
    """Also where a killed training wrote rows, and half of one, after its last checkpoint."""
    curve = tmp_path / "training.jsonl"
    px.learn(wells, steps=20, out=tmp_path, watch=interrupt_at(5), **tiny)
    with curve.open("a") as file:
        file.write('{"step": 6, "loss": 1.0}\n{"step": 7, "lo')
    for _ in range(2):  # the second time it has finished already
        px.learn(wells, steps=20, out=tmp_path, resume=True, **tiny)
        assert [row["step"] for row in read_rows(curve)] == [1, 2, 3, 4, *range(6, 21)]


def test_a_damaged_checkpoint_offers_the_one_before_it(
    wells, tiny, tmp_path: Path, interrupt_at, same_weights
):
    px.learn(wells, steps=20, out=tmp_path, watch=interrupt_at(5), **tiny)
    path, older = tmp_path / checkpoint.NAME, tmp_path / checkpoint.PREVIOUS
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1  # one bit
    path.write_bytes(content)
    with pytest.raises(px.FileError, match=r"is whole: to go on from there, give it the name"):
        px.learn(wells, steps=20, out=tmp_path, resume=True, **tiny)
    older.rename(path)
    resumed = px.learn(wells, steps=20, out=tmp_path, resume=True, **tiny)
    assert same_weights(resumed, px.learn(wells, steps=20, **tiny))


def test_a_checkpoint_that_is_the_one_before_it_leaves_nothing_over(
    wells, tiny, tmp_path: Path, interrupt_at
):
    """As where a training was killed between the two: a file does not get the name it has."""
    px.learn(wells, steps=20, out=tmp_path, watch=interrupt_at(5), **tiny)
    path, older = tmp_path / checkpoint.NAME, tmp_path / checkpoint.PREVIOUS
    older.unlink()
    os.link(path, older)
    px.learn(wells, steps=20, out=tmp_path, resume=True, **tiny)
    assert not [each for each in tmp_path.iterdir() if each.suffix == ".tmp"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("operator", {}),
        ("optimizer", {"momentum": torch.zeros(()), "adam": []}),
        ("usual_norm", torch.zeros(3)),
        ("generator", torch.zeros(5)),
        ("noise", "none"),
        ("step", "three"),
        ("step", -1),
        ("elapsed", float("nan")),
        ("names", ["loss"] * 9),
        ("names", ["a", [], "b"]),
        ("sampler", {"x": 1}),
    ],
    ids=str,
)
def test_a_checkpoint_of_anything_is_refused(
    wells, tiny, tmp_path: Path, interrupt_at, name, value
):
    """One that somebody has written: its checksum fits."""
    px.learn(wells, steps=20, out=tmp_path, watch=interrupt_at(2), **tiny)
    path = tmp_path / checkpoint.NAME
    state = torch.load(path, weights_only=True) | {name: value}
    torch.save(state, path)
    path.write_bytes(checkpoint.sealed(path.read_bytes()))
    with pytest.raises(px.FileError, match="no checkpoint of this training"):
        px.learn(wells, steps=20, out=tmp_path, resume=True, **tiny)


def test_nothing_to_resume_from(wells, tiny, tmp_path: Path):
    with pytest.raises(px.FileError, match="no checkpoint to resume from at"):
        px.learn(wells, steps=5, out=tmp_path, resume=True, **tiny)
    with pytest.raises(px.FileError, match="give out="):
        px.learn(wells, steps=5, resume=True, **tiny)


@pytest.mark.parametrize("damage", ["cut short", "empty", "text", "another file"])
def test_a_damaged_checkpoint_is_refused(wells, tiny, tmp_path: Path, interrupt_at, damage):
    px.learn(wells, steps=20, out=tmp_path, watch=interrupt_at(5), **tiny)
    path = tmp_path / checkpoint.NAME
    if damage == "another file":
        torch.save({"weights": torch.zeros(2)}, path)
    else:
        whole = path.read_bytes()
        cut = {"cut short": whole[: len(whole) // 2], "empty": b"", "text": b"what is this"}
        path.write_bytes(cut[damage])
    with pytest.raises(px.FileError, match="not a whole checkpoint"):
        px.learn(wells, steps=20, out=tmp_path, resume=True, **tiny)


TRAIN = """
import sys, time
import torch
import proxlearn as px
from proxlearn.training import learn as train
from proxlearn.training import session
from proxlearn.networks.coupling import Coupling

torch.set_num_threads(1)
session.REPORT_SECONDS, train.CHECKPOINT_SECONDS = 0.005, 0.02
train.judge = lambda *_: None  # which would take longer than the training

def wells(x, tau):
    time.sleep(0.005)  # slow enough to be killed on the way
    return (x.square() - tau.square()).square().sum(-1)

problem = px.Problem.from_function(wells, px.Box(-2, 2, dim=2), px.Box(0.5, 1.5, dim=2))
px.learn(problem, steps=200, lam=1.0, depth=2, applications=5, instances=6, points=8, seed=1,
         device="cpu", architecture=Coupling(1, 16, 16), progress=False,
         out=sys.argv[1], resume="resume" in sys.argv)
"""


def start_training(out: Path, *flags: str) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", TRAIN, str(out), *flags], env=dict(os.environ))


def kill_at_a_random_moment(training: subprocess.Popen, out: Path) -> None:
    """kill -9, some time after there is a first (or newer) checkpoint."""
    path, began = out / checkpoint.NAME, time.time()
    while not (path.exists() and path.stat().st_mtime > began):
        assert training.poll() is None, "it ended before there was a checkpoint"
        time.sleep(0.005)
    time.sleep(random.uniform(0.0, 0.3))
    training.kill()
    assert training.wait() == -9, "it ended before it could be killed"


def test_killed_and_resumed_in_new_processes_is_the_uninterrupted_one(tmp_path: Path, same_weights):
    straight = start_training(tmp_path / "straight")
    out = tmp_path / "killed"
    kill_at_a_random_moment(start_training(out), out)
    assert straight.wait() == 0
    kill_at_a_random_moment(start_training(out, "resume"), out)
    assert 0 < torch.load(out / checkpoint.NAME, weights_only=True)["step"] < 200
    assert not (out / "operator.safetensors").exists()
    assert start_training(out, "resume").wait() == 0
    weights = [
        px.load(tmp_path / run / "operator.safetensors", "cpu") for run in ("straight", "killed")
    ]
    assert same_weights(*weights)
