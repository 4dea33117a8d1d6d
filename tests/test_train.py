"""Training: seeds, budgets, reports, and what happens when it goes wrong."""

import itertools
import math
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import proxlearn as px
from proxlearn.common.files import read_rows
from proxlearn.training import checkpoint
from proxlearn.training import session as sessions
from proxlearn.training.optimizer import schedule
from proxlearn.training.progress import Bar
from proxlearn.training.session import Session, settled_after
from proxlearn.training.settings import (
    Training,
    estimate_lam,
    estimate_rate,
    make_rule,
    training_from,
)

WAITS = ("_local_scalar_dense", "nonzero", "is_nonzero", "equal")  # these wait for the device


class Failing(px.Problem):
    """A bowl whose value is NaN, or that presses Ctrl-C, at a certain step of the training."""

    name = "failing"
    space = px.Box(-1.0, 1.0, dim=2)
    costly = True  # so that it is not called for checks between the steps

    def __init__(self, nan_at: int | None = None, interrupt_at: int | None = None):
        self.nan_at, self.interrupt_at = nan_at, interrupt_at
        self.calls = -3  # the first calls are checks before the training

    def objective(self, x: Tensor, tau: Any) -> Tensor:
        self.calls += 1
        if self.calls == self.interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)  # the signal is on its way
        value = x.square().sum(-1)
        return value * math.nan if self.calls == self.nan_at else value


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C is heard, also where the tests themselves run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def saved(folder: Path) -> dict[str, Any]:
    return torch.load(folder / checkpoint.NAME, weights_only=True)


def test_same_seed_same_weights(wells: px.Problem, tiny: dict, same_weights):
    first = px.learn(wells, steps=15, seed=3, **tiny)
    torch.manual_seed(12345)  # what happened elsewhere does not matter
    assert same_weights(first, px.learn(wells, steps=15, seed=3, **tiny))
    assert not same_weights(first, px.learn(wells, steps=15, seed=4, **tiny))


def test_training_leaves_the_global_generator_alone(wells: px.Problem, tiny: dict):
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    px.learn(wells, steps=2, **tiny)
    assert torch.equal(torch.rand(3), expected)


def test_training_lowers_the_loss_and_finds_the_optima(wells: px.Problem, tiny: dict):
    operator = px.learn(wells, steps=1500, **tiny | {"rate": 5e-3})
    solutions = operator.solve([1.0, 0.7], starts=400, steps=20)
    optima = torch.tensor([[sx, 0.7 * sy] for sx in (-1.0, 1.0) for sy in (-1.0, 1.0)])
    distance = wells.space.pairwise(optima, solutions.points[0])
    assert distance.amin(1).max() < 0.15  # every optimum is found
    assert (
        solutions.values.mean()
        < 0.1 * wells.objective(solutions.starts, torch.tensor([[1.0, 0.7]])).mean()
    )


def test_budget_of_steps(wells: px.Problem, tiny: dict):
    assert px.learn(wells, steps=7, **tiny).provenance["steps"] == 7


def test_budget_of_seconds(wells: px.Problem, tiny: dict):
    started = time.monotonic()
    operator = px.learn(wells, seconds=0.5, **tiny)
    assert time.monotonic() - started >= 0.45  # the rest is for judging
    assert operator.provenance["steps"] > 1
    assert 0.45 <= operator.provenance["seconds"] < 5  # a slow step may overrun, not by much


def test_the_learning_rate_warms_up_and_falls_to_0():
    rates = [schedule(k / 1000) for k in range(1001)]
    assert rates[0] == 0
    assert max(rates) == pytest.approx(1, abs=1e-2)
    assert rates.index(max(rates)) == 10
    assert all(a >= b for a, b in itertools.pairwise(rates[10:]))
    assert rates[-1] == pytest.approx(0, abs=1e-12)


@pytest.mark.usefixtures("report_each_step")
def test_reports_name_the_terms(wells: px.Problem, tiny: dict):
    reports = []
    px.learn(wells, steps=6, watch=lambda report, _: reports.append(report), **tiny)
    assert [report.step for report in reports] == [1, 2, 3, 4, 5, 6]
    assert reports[-1].spent == 1
    for report in reports:
        terms = report.terms
        assert set(terms) == {"loss", "value", "proximal"}
        assert terms["loss"] == pytest.approx(terms["value"] + terms["proximal"], rel=1e-4)


@pytest.mark.usefixtures("report_each_step")
def test_out_gets_the_operator_the_curve_and_a_checkpoint(
    wells: px.Problem, tiny: dict, tmp_path: Path, same_weights
):
    operator = px.learn(wells, steps=5, out=tmp_path / "run", **tiny)
    assert same_weights(px.load(tmp_path / "run" / "operator.safetensors", "cpu"), operator)
    rows = read_rows(tmp_path / "run" / "training.jsonl")
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
    assert all(math.isfinite(row["loss"]) for row in rows)
    assert saved(tmp_path / "run")["step"] == 5
    leftovers = [path.name for path in (tmp_path / "run").iterdir() if "tmp" in path.name]
    assert not leftovers


def test_provenance_says_how_it_was_made(wells: px.Problem, tiny: dict):
    provenance = px.learn(wells, steps=2, seed=5, **tiny).provenance
    assert provenance["problem"] == "wells"
    assert provenance["training"]["seed"] == 5
    assert provenance["rule"]["lam"] == 1.0
    assert provenance["versions"]["torch"] == torch.__version__


class Waits(TorchDispatchMode):
    """Counts the operations that make the host wait for the device."""

    def __init__(self):
        super().__init__()
        self.all, self.waits = 0, Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.all += 1
        name = function.overloadpacket.__name__
        if name in WAITS:
            self.waits[name] += 1
        return function(*args, **kwargs or {})


@pytest.mark.parametrize("sampling", ["pool", "unfold"])
@pytest.mark.parametrize("rule", ["proximal", "gradient"])
def test_no_step_waits_for_the_device(
    wells: px.Problem, tiny: dict, monkeypatch: pytest.MonkeyPatch, sampling, rule
):
    monkeypatch.setattr(sessions, "REPORT_SECONDS", 1000.0)
    settings = {k: v for k, v in tiny.items() if k not in ("device", "progress")}
    lam = None if rule == "gradient" else 1.0
    settings |= {"steps": 10, "sampling": sampling, "rule": rule, "lam": lam}
    session = Session(wells, training_from(settings), torch.device("cpu"))
    read_back, tolist = [], Tensor.tolist
    monkeypatch.setattr(Tensor, "tolist", lambda self: read_back.append(1) or tolist(self))
    with Waits() as counted:
        reports = list(session.run())
    assert counted.all > 500  # the mode did see the steps
    assert not counted.waits
    assert len(reports) == len(read_back) == 1  # the losses are read once, at the end


def test_a_loss_that_is_no_number_stops_and_names_the_step(tiny: dict):
    """Found at the next report, but the step named is the one that broke."""
    with pytest.raises(px.TrainingError, match=r"at step 6\b"):
        px.learn(Failing(nan_at=6), steps=20, **tiny)


def test_a_loss_that_is_a_number_again_later_still_stops(tiny: dict):
    """Not a number on a part of the space that only some steps visit."""
    calls = []

    def sometimes(x: Tensor, tau: Tensor) -> Tensor:
        calls.append(None)
        return x.square().sum(-1) + (math.nan if len(calls) == 9 else 0.0)

    problem = px.Problem.from_function(sometimes, px.Box(-2.0, 2.0, dim=2), px.Box(0.5, 1.5, dim=2))
    with pytest.raises(px.TrainingError, match="stopped being a number at step"):
        px.learn(problem, steps=60, **tiny)


def test_a_gradient_that_is_no_number_stops_too(tiny: dict):
    """The loss may stay finite where its gradient does not: sqrt(0) is the usual case."""

    class Kink(px.Problem):
        space = px.Box(-1.0, 1.0, dim=2)
        calls = 0

        def objective(self, x: Tensor, tau: Any) -> Tensor:
            Kink.calls += 1
            return (x.sum(-1) * (Kink.calls < 8)).square().sqrt() + x.square().sum(-1)

    with pytest.raises(px.TrainingError, match="at step"):
        px.learn(Kink(), steps=20, **tiny)


@pytest.mark.usefixtures("report_each_step")
def test_the_last_good_checkpoint_is_kept(tiny: dict, tmp_path: Path, same_weights):
    with pytest.raises(px.TrainingError, match=r"at step 6\b"):
        px.learn(Failing(nan_at=6), steps=20, out=tmp_path, **tiny)
    assert saved(tmp_path)["step"] == 5
    assert all(weights.isfinite().all() for weights in saved(tmp_path)["operator"].values())
    assert not (tmp_path / "operator.safetensors").exists()
    resumed = px.learn(Failing(), steps=20, out=tmp_path, resume=True, **tiny)
    assert same_weights(resumed, px.learn(Failing(), steps=20, **tiny))


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupt_after_the_loss_broke_does_not_save_it(
    tiny: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sessions, "REPORT_SECONDS", 1000.0)
    with pytest.raises(px.TrainingError, match=r"at step 6\b"):
        px.learn(Failing(nan_at=6, interrupt_at=8), steps=20, out=tmp_path, **tiny)
    assert not (tmp_path / checkpoint.NAME).exists()


@pytest.mark.usefixtures("report_each_step")
def test_ctrl_c_saves_says_how_to_resume_and_returns_the_operator(
    wells: px.Problem, tiny: dict, tmp_path: Path, interrupt_at, capsys
):
    tiny["progress"] = True
    operator = px.learn(wells, steps=50, out=tmp_path, watch=interrupt_at(4), **tiny)
    assert operator.provenance["steps"] == 4
    assert operator.solve([1.0, 1.0], starts=3).points.isfinite().all()
    assert saved(tmp_path)["step"] == 4
    assert not (tmp_path / "operator.safetensors").exists()  # it is not finished
    said = " ".join(capsys.readouterr().err.split())
    assert "Stopped at step 4" in said
    assert "--resume" in said


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_the_middle_of_a_step_lets_it_finish(tiny: dict, tmp_path: Path, same_weights):
    """Half a step in a checkpoint would make the resumed training another one."""
    stopped = px.learn(Failing(interrupt_at=8), steps=20, out=tmp_path, **tiny)
    assert 0 < stopped.provenance["steps"] < 20
    resumed = px.learn(Failing(), steps=20, out=tmp_path, resume=True, **tiny)
    assert same_weights(resumed, px.learn(Failing(), steps=20, **tiny))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler  # as it was before


def test_training_in_another_thread(wells: px.Problem, tiny: dict, same_weights):
    """A thread hears no signals; it trains all the same."""
    with ThreadPoolExecutor(1) as pool:
        operator = pool.submit(px.learn, wells, steps=5, **tiny).result()
    assert same_weights(operator, px.learn(wells, steps=5, **tiny))


def test_operators_are_applied_until_the_objective_settles(tiny: dict, monkeypatch):
    """A third of x leaves 9^-k of |x|^2: a thousandth is passed between 3 and 5 applications."""
    bowl = px.Problem.from_function(lambda x: x.square().sum(-1), px.Box(-1.0, 1.0, dim=2))
    operator = px.learn(bowl, steps=1, **tiny)
    third = lambda self, x, prepared, space=None: x / 3 + 0 * prepared["share"].mean()  # noqa: E731
    monkeypatch.setattr(px.Operator, "step", third)
    assert settled_after(operator, bowl, seed=0) == 5
    trained = px.learn(bowl, steps=1, **tiny | {"applications": None})
    assert trained.applications == 5
    trained.arrival = None  # or it would know by itself
    assert trained.solve(starts=3).applications.tolist() == [[5, 5, 5]]


def test_lam_is_estimated_from_the_negative_curvature():
    """-cos(k x) is weakly convex with constant k^2; the estimate is of about half of it."""
    k = 7.0
    waves = px.Problem.from_function(lambda x: -(k * x[..., 0]).cos(), px.Box(-3.0, 3.0, dim=1))
    assert 0.4 * k**2 < estimate_lam(waves) < 0.55 * k**2
    bowl = px.Problem.from_function(lambda x: x.square().sum(-1), px.Box(-3.0, 3.0, dim=2))
    assert 0 < estimate_lam(bowl) < 10
    assert estimate_rate(bowl) == pytest.approx(0.5, rel=1e-2)  # one over the curvature, 2


def test_descent_on_an_objective_without_curvature_takes_short_steps():
    """Of |x|, the slope is 1 and the diameter 6: a step of 0.5% of it is 0.03."""
    kink = px.Problem.from_function(lambda x: x[..., 0].abs(), px.Box(-3.0, 3.0, dim=1))
    assert estimate_rate(kink) == pytest.approx(0.03, rel=1e-3)


def test_which_lam_is_used(wells: px.Problem):
    def lam(**settings: Any) -> Any:
        return make_rule(wells, Training(**settings), torch.device("cpu")).lam

    assert lam(lam=0.0) == 0.0  # 0 is a weight like any other
    assert lam() == pytest.approx(estimate_lam(wells))
    wells.lam = 0.7
    assert lam() == 0.7


def test_a_bar_is_full_only_in_the_end(capsys: pytest.CaptureFixture[str]):
    for ended in (False, True):
        with Bar("wells", enabled=True) as bar:
            bar.show_arrival(0.99, 0.5)  # the clock may stop short of all
            if ended:
                bar.full()
        assert ("100%" in capsys.readouterr().err) == ended
