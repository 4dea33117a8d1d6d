"""What a user brings along, such as a space, and what looking at a tau never does."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import proxlearn as px
from proxlearn.cli.main import main
from proxlearn.networks import architecture_from
from proxlearn.training import session

DOTS = Path(__file__).parent.parent / "examples" / "dots.py"


@dataclass(frozen=True)
class Ring(px.Space):
    """The plane between two circles: sampled and measured, but not known to proxlearn."""

    inner: float = 0.5

    dim = 2
    diameter = 2.0

    def sample(self, *shape, generator=None, device="cpu"):
        r, angle = torch.rand(*shape, 2, generator=generator, device=device).unbind(-1)
        r, angle = self.inner + (1 - self.inner) * r, 2 * torch.pi * angle
        return torch.stack((r * angle.cos(), r * angle.sin()), -1)

    def project(self, x):
        r = x.norm(dim=-1, keepdim=True).clamp(min=1e-6)
        return x / r * r.clamp(self.inner, 1.0)

    def contains(self, x, edge=1e-3):
        r = x.norm(dim=-1)
        return (r >= self.inner - edge) & (r <= 1 + edge)


def hill() -> px.Problem:
    return px.Problem.from_function(
        lambda x, tau: (x - tau).square().sum(-1), Ring(0.3), px.Box(-0.5, 0.5, dim=2), name="hill"
    )


def test_a_space_of_ones_own_is_saved_and_loaded_by_passing_it(tiny: dict, tmp_path: Path):
    operator = px.learn(hill(), steps=20, **tiny)
    path = operator.save(tmp_path / "hill.safetensors")
    with pytest.raises(px.FileError, match=r"The space 'Ring' of this file .* space=\.\.\."):
        px.load(path)
    for own in (Ring, Ring(0.3)):
        loaded = px.load(path, "cpu", space=own)
        assert loaded.space == Ring(0.3)
        tau = [0.2, 0.1]
        found = loaded.solve(tau, 8)
        assert torch.equal(found.points, operator.solve(tau, 8).points)
        again = px.Solutions.load(found.save(tmp_path / "found.npz"), own)
        assert again.space == Ring(0.3)
    with pytest.raises(px.FileError, match="pass the one it was made with"):
        px.load(path, space=Ring(0.4))


def test_a_space_of_ones_own_may_be_part_of_a_product(tmp_path: Path):
    both = px.Product(Ring(0.3), px.Circles(1))
    problem = px.Problem.from_function(lambda x: x.square().sum(-1), both, name="both")
    operator = px.Operator.untrained(problem, {"blocks": 1, "width": 8, "shared": 8})
    path = operator.save(tmp_path / "both.safetensors")
    assert px.load(path, "cpu", space=Ring).space == both


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that are built while a test runs."""
    made: list[str] = []
    init = nn.Module.__init__

    def noted(self, *arguments, **more):
        made.append(type(self).__name__)
        init(self, *arguments, **more)

    monkeypatch.setattr(nn.Module, "__init__", noted)
    return made


@pytest.mark.parametrize("name", ["conic", "maxcut", "sparse-general", str(DOTS)])
def test_looking_at_a_tau_builds_no_network_and_moves_no_random_state(
    name: str, tiny: dict, built: list[str]
):
    problem = px.problem(name)
    settings = {k: v for k, v in tiny.items() if k != "architecture"}
    operator = px.learn(problem, steps=1, **settings)
    tau = problem.sample(2, "test", torch.Generator().manual_seed(0))
    built.clear()
    before = torch.get_rng_state()
    problem.batch(tau)
    problem.instances.batch(problem.observe(tau))
    operator.bind(problem.observe(tau))
    px.solve(problem, problem.observe(tau), "operator", starts=4, device="cpu", operator=operator)
    operator.check_fits(problem)
    assert built == []
    assert torch.equal(torch.get_rng_state(), before)


def test_sizes_that_a_network_does_not_have_are_refused():
    with pytest.raises(px.UnknownNameError, match=r"'sinusoids'.*blocks"):
        architecture_from({"kind": "cut_circles", "sinusoids": 64})
    with pytest.raises(px.UnknownNameError, match=r"no architecture 'coupled'.*coupling"):
        architecture_from("coupled")


def test_a_picture_alone_is_solved_on_the_command_line(
    tmp_path: Path, tiny: dict, capsys: pytest.CaptureFixture
):
    dots = px.problem(str(DOTS))
    px.learn(dots, steps=20, **tiny).save(tmp_path / "dots.safetensors")
    picture = dots.sample(1, "test", torch.Generator().manual_seed(0))["picture"][0]
    np.save(tmp_path / "a.npy", picture)
    command = ["solve", str(DOTS), "--operator", str(tmp_path / "dots.safetensors")]
    more = ["--starts", "32", "--device", "cpu"]
    with pytest.raises(SystemExit) as end:
        main([*command, "--tau", str(tmp_path / "a.npy"), "--npz", str(tmp_path / "s.npz"), *more])
    assert not end.value.code
    found = px.Solutions.load(tmp_path / "s.npz")
    assert found.values is None
    loaded = px.load(tmp_path / "dots.safetensors", "cpu")
    torch.testing.assert_close(found.points, loaded.solve(picture, starts=32).points)
    with pytest.raises(SystemExit):
        main([*command, "--tau", "1,2", *more])
    assert "must be the path of a .npy file with a picture (1, 16, 16)" in capsys.readouterr().err


def test_the_clock_of_a_training_starts_with_it(
    wells: px.Problem, tiny: dict, monkeypatch: pytest.MonkeyPatch
):
    """Nothing is compiled in the first step, so all of it counts: seconds are seconds."""
    step = session.Session._one_step

    def slow(self):
        time.sleep(0.3)
        step(self)

    monkeypatch.setattr(session.Session, "_one_step", slow)
    operator = px.learn(wells, seconds=0.5, **tiny)
    assert operator.provenance["steps"] <= 2
    assert 0.5 <= operator.provenance["seconds"] < 1.0
