"""The baseline FN: the chamfer distance, its training, its file, and the method `fixed_number`."""

from pathlib import Path

import pytest
import torch
from torch import nn

import proxlearn as px
from proxlearn.common.weight_files import write_weights
from proxlearn.instances import Vectors
from proxlearn.networks.encoders.base import Encoder
from proxlearn.networks.encoders.vector import Vector
from proxlearn.solvers.fixed_number.learn import learn_fixed_number
from proxlearn.solvers.fixed_number.network import FixedNumber, chamfer, load_fixed_number
from proxlearn.solvers.solve import solve

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU"
))]  # fmt: skip
PLANE = px.Box(-1.0, 1.0, dim=2)
QUICK = {"count": 4, "rate": 5e-3, "instances": 32, "device": "cpu", "progress": False}


class Pairs(px.Problem):
    """Minima at tau and -tau; of a tau with a small first number, none is known."""

    name = "pairs of points"
    space = PLANE
    parameters = px.Box(-0.8, 0.8, dim=2)

    def objective(self, x, tau):
        known, _ = self.known(tau)
        return (x[:, :, None] - known[:, None]).square().sum(-1).amin(-1)

    def known(self, tau):
        some = tau[:, :1].abs() > 0.1
        return torch.stack((tau, -tau), 1), some.expand(-1, 2)


class Read(Pairs):
    """The same instances, as if they were read from files."""

    sampled_on = "cpu"


class Scaled(Encoder):
    """An encoder of one's own."""

    def __init__(self, instances: Vectors, size: int = 8):
        super().__init__(instances)
        self.size, self.layer = size, nn.Linear(2, size)

    def settings(self):
        return {"size": self.size}

    def forward(self, observed):
        return self.layer(observed).relu()


@pytest.fixture(scope="module")
def trained() -> FixedNumber:
    return learn_fixed_number(Pairs(), steps=300, **QUICK)


def test_the_chamfer_distance_by_hand():
    found = torch.tensor([[[0.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.0, 0.0]]])
    known = torch.tensor([[[0.0, 0.5], [9.0, 9.0]], [[0.0, 0.0], [0.5, 0.0]]])
    real = torch.tensor([[True, False], [True, True]])
    first = (0.25 + 1.25) / 2 + 0.25  # the second known solution of the first is padding
    second = (0.25 + 0.0) / 2 + (0.0 + 0.25) / 2
    expected = torch.tensor((first + second) / 2)
    torch.testing.assert_close(chamfer(PLANE, found, known, real), expected)
    assert chamfer(PLANE, known[1:], known[1:], real[1:]) == 0


def test_instances_without_known_solutions_count_for_nothing():
    found = torch.rand(3, 4, 2, requires_grad=True)
    known, real = torch.rand(3, 2, 2), torch.tensor([[True, True], [False, False], [True, False]])
    loss = chamfer(PLANE, found, known, real)
    some = [0, 2]
    torch.testing.assert_close(loss, chamfer(PLANE, found[some], known[some], real[some]))
    loss.backward()
    assert found.grad is not None
    assert found.grad.isfinite().all()
    assert (found.grad[1] == 0).all()
    assert chamfer(PLANE, found, known, torch.zeros_like(real)) == 0


def test_distances_are_those_of_the_space():
    """A plane is the same from both sides."""
    plane = torch.tensor([[[0.0, 0.0, 1.0, 0.2]]])
    real = torch.ones(1, 1, dtype=torch.bool)
    assert chamfer(px.Planes(), plane, -plane, real) == 0


def test_points_end_at_the_known_solutions(trained: FixedNumber):
    found = trained.solve([[0.5, 0.3], [-0.2, 0.6]])
    assert found.points.shape == (2, 4, 2)
    assert found.inside.all()
    tau = torch.tensor([[0.5, 0.3], [-0.2, 0.6]])
    known = torch.stack((tau, -tau), 1)
    assert PLANE.pairwise(found.points, known).amin(2).max() < 0.15
    assert PLANE.pairwise(found.points, known).amin(1).max() < 0.15
    fresh = FixedNumber(PLANE, Pairs().instances, Pairs().encoder(), 4).solve(tau)
    assert PLANE.pairwise(fresh.points, known).amin(2).max() > 0.3


def test_it_says_how_it_was_trained(trained: FixedNumber):
    assert "4 points, trained for 'pairs of points' in 300 steps" in str(trained)
    assert trained.provenance["training"] == {
        "steps": 300, "seconds": None, "rate": 5e-3, "instances": 32, "precision": "fp32",
        "count": 4, "seed": 0,
    }  # fmt: skip
    assert not trained.training


def test_a_training_is_repeatable_and_leaves_the_global_generator_alone():
    before = torch.random.get_rng_state()
    first, again, other = (
        learn_fixed_number(Pairs(), steps=5, seed=seed, **QUICK) for seed in (3, 3, 4)
    )
    assert torch.equal(torch.random.get_rng_state(), before)
    points = [each.solve([0.5, 0.3]).points for each in (first, again, other)]
    assert torch.equal(points[0], points[1])
    assert not torch.equal(points[0], points[2])


@pytest.mark.parametrize("kind", [Pairs, Read])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("error::proxlearn.errors.SpeedWarning")  # on a GPU it is captured
def test_instances_may_come_from_files_and_training_may_be_timed(
    kind: type[px.Problem], device: str
):
    network = learn_fixed_number(kind(), seconds=0.3, **QUICK | {"device": device})
    assert network.provenance["steps"] > 3
    assert network.solve([0.5, 0.3]).points.device.type == device


def test_a_file_gives_the_same_points(trained: FixedNumber, tmp_path: Path):
    path = trained.save(tmp_path / "fixed.safetensors")
    again = load_fixed_number(path, device="cpu")
    assert again.provenance == trained.provenance
    tau = [0.5, 0.3]
    torch.testing.assert_close(again.solve(tau).points, trained.solve(tau).points)


def test_an_encoder_of_ones_own(tmp_path: Path):
    encoder = Scaled(Pairs().instances, size=5)
    network = learn_fixed_number(Pairs(), steps=2, encoder=encoder, **QUICK)
    assert network.encoder is encoder
    path = network.save(tmp_path / "own.safetensors")
    again = load_fixed_number(path, device="cpu", encoder=Scaled(Pairs().instances, 5))
    points = [each.solve([0.5, 0.3]).points for each in (again, network)]
    torch.testing.assert_close(*points)
    with pytest.raises(px.FileError, match="'Scaled' of this file is not part of proxlearn"):
        load_fixed_number(path, device="cpu")


def test_files_of_other_kinds_are_refused(tmp_path: Path):
    write_weights(tmp_path / "other.safetensors", "swarm", 1, {}, {})
    with pytest.raises(px.FileError, match="holds no proxlearn fixed-number"):
        load_fixed_number(tmp_path / "other.safetensors")
    write_weights(tmp_path / "empty.safetensors", "fixed-number", 1, {}, {})
    with pytest.raises(px.FileError, match="cannot be read"):
        load_fixed_number(tmp_path / "empty.safetensors")


def test_it_is_a_method_of_solve(trained: FixedNumber):
    """With as many solutions as it gives, whatever the starts."""
    tau = torch.tensor([[0.5, 0.3], [-0.2, 0.6]])
    found = solve(Pairs(), tau, "fixed_number", starts=7, device="cpu", network=trained)
    assert torch.equal(found.points, trained.solve(tau).points)
    assert found.values is not None
    assert found.values.max() < 0.03
    assert found.method == "fixed_number"


def test_without_a_network_one_is_trained_first():
    found = solve(Pairs(), [0.5, 0.3], "fixed_number", starts=2, device="cpu", training=2)
    assert found.points.shape == (1, 20, 2)


def test_bad_input_is_an_error_in_a_sentence(trained: FixedNumber, wells: px.Problem):
    with pytest.raises(px.InputError, match="'conic' knows no solutions"):
        learn_fixed_number(px.problem("conic"), steps=1)
    with pytest.raises(px.InputError, match="count must be a positive number"):
        learn_fixed_number(Pairs(), **QUICK | {"count": 0})
    with pytest.raises(px.InputError, match="steps or seconds, not both"):
        learn_fixed_number(Pairs(), steps=1, seconds=1.0)
    with pytest.raises(px.InputError, match="give one trained for it"):
        trained.check_fits(wells)
    assert isinstance(trained.encoder, Vector)


def test_a_loss_that_is_no_number_is_said():
    class Broken(Pairs):
        def known(self, tau):
            known, real = super().known(tau)
            return known * torch.nan, real

    with pytest.raises(px.TrainingError, match="stopped being a number"):
        learn_fixed_number(Broken(), steps=3, **QUICK)
